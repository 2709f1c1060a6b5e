package telemetry

import (
	"fmt"
	"testing"
	"time"
)

func TestLimiter_tellsTenAMinuteAndCountsTheRest(t *testing.T) {
	t.Parallel()
	l := limiter{perMinute: 10}
	now := time.Unix(0, 0)
	told := 0
	for range 100 {
		if _, ok := l.allow("k", now); ok {
			told++
		}
	}
	if told != 10 {
		t.Errorf("told %d, want 10", told)
	}
	if held, ok := l.allow("other", now); !ok || held != 0 {
		t.Error("another key is held back")
	}
	if held, ok := l.allow("k", now.Add(time.Minute)); !ok || held != 90 {
		t.Errorf("after a minute: %d %v, want 90 suppressed and told", held, ok)
	}
	if _, ok := l.allow("k", now.Add(-time.Hour)); !ok {
		t.Error("a clock that went back silences the key")
	}
	for i := range 3 * maxKeys {
		l.allow(fmt.Sprint(i), now)
	}
	if len(l.keys) > maxKeys+1 {
		t.Errorf("%d keys held, the bound is %d", len(l.keys), maxKeys)
	}
}
