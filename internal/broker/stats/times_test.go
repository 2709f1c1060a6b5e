package stats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker/stats"
	"github.com/streamd/streamd/internal/bubbletest"
)

func TestTimes_ofTheLastMinute(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		times := stats.NewTimes()
		if times.Percentile(0.99) != 0 || times.Most() != 0 || !strings.HasPrefix(times.Distribution(), "[<=0ms]:0 [0~10ms]:0 ") {
			t.Errorf("of nothing: %v %v %s", times.Percentile(0.99), times.Most(), times.Distribution())
		}
		for range 990 {
			times.Add(3 * time.Millisecond)
		}
		for range 9 {
			times.Add(150 * time.Millisecond)
		}
		times.Add(20 * time.Second)
		pass(time.Minute)
		if p99, p999 := times.Percentile(0.99), times.Percentile(0.999); p99 != 4 || p999 != 160 {
			t.Errorf("p99 %v and p99.9 %v ms, want 4 and 160", p99, p999)
		}
		if d := times.Distribution(); !strings.Contains(d, "[0~10ms]:990 ") || !strings.Contains(d, "[100~200ms]:9 ") || !strings.Contains(d, "[10s~]:1 ") {
			t.Errorf("distribution %s", d)
		}
		pass(2 * time.Minute)
		if times.Percentile(0.99) != 0 || times.Most() != 20_000 {
			t.Errorf("after two silent minutes p99 is %v and the most %d ms", times.Percentile(0.99), times.Most())
		}
	})
}
