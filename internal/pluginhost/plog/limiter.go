package plog

import "time"

// limiter lets a burst of lines through, then a steady rate, then samples: of the surplus, each 1,000th.
type limiter struct {
	rate, burst float64 // lines a second; lines
	tokens      float64
	last        time.Time
	surplus     int
	dropped     int // since the last report
}

const sampleEvery = 1000

func newLimiter(rate, burst float64) *limiter {
	return &limiter{rate: rate, burst: burst, tokens: burst}
}

// allow decides about one line. dropped is the number of lines to report as left out before this one, else 0.
func (l *limiter) allow(now time.Time) (ok bool, dropped int) {
	if !l.last.IsZero() {
		l.tokens = min(l.burst, l.tokens+now.Sub(l.last).Seconds()*l.rate)
	}
	l.last = now
	if l.tokens >= 1 {
		l.tokens--
		l.surplus = 0
		return true, l.take()
	}
	l.surplus++
	if l.surplus%sampleEvery == 0 {
		return true, l.take()
	}
	l.dropped++
	return false, 0
}

// take returns and clears the count of dropped lines.
func (l *limiter) take() int {
	n := l.dropped
	l.dropped = 0
	return n
}
