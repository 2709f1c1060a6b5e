package pluginhost

import (
	"strings"
	"testing"
	"time"
)

// TestSilence_counts gives, for each check, how long a thread of the process and one of the host waited since the last.
func TestSilence_counts(t *testing.T) {
	t.Parallel()
	const second = time.Second
	repeat := func(n int, wait time.Duration) (waits [][2]time.Duration) {
		for range n {
			waits = append(waits, [2]time.Duration{wait, 0})
		}
		return waits
	}
	for name, tt := range map[string]struct {
		waits  [][2]time.Duration
		over   int // the check that ends it
		spared int
	}{
		"a frozen process waits for nothing":       {repeat(3, 0), 3, 0},
		"less than half the time is not the cause": {repeat(3, second/2-1), 3, 0},
		"the first miss has nothing to compare":    {append(repeat(1, 9*second), repeat(2, 0)...), 3, 0},
		"a starved process is spared":              {append(append(repeat(1, 0), repeat(5, second/2)...), repeat(2, 0)...), 8, 5},
		"so is one that a starved host looks at":   {[][2]time.Duration{{0, 0}, {0, second}, {0, 0}, {0, 0}}, 4, 1},
		"there is an end to it":                    {repeat(30, second), 30, 27},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1000, 0)
			var sum [2]time.Duration
			s := silence{limit: 3, pids: []int{0, 1}, waits: func(pid int) map[int]time.Duration {
				return map[int]time.Duration{7: sum[pid]}
			}}
			told := 0
			for n, waited := range tt.waits {
				now = now.Add(second)
				sum[0] += waited[0]
				sum[1] += waited[1]
				over, first := s.miss(now)
				if first {
					told++
				}
				if over != (n+1 == tt.over) {
					t.Fatalf("check %d: over is %t, want it at %d", n+1, over, tt.over)
				}
			}
			if s.spared != tt.spared || told != min(tt.spared, 1) {
				t.Errorf("spared %d, told %d times; want %d", s.spared, told, tt.spared)
			}
			if strings.Contains(s.String(), "for want of a processor") != (tt.spared > 0) {
				t.Errorf("the text is %q", s.String())
			}
			s.heard()
			if over, _ := s.miss(now.Add(second)); over {
				t.Error("an answer is not the end of the silence")
			}
		})
	}
}
