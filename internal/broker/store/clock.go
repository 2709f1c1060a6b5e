package store

import (
	"sync/atomic"
	"time"
)

// clock tells the time in milliseconds. It reads the wall clock once, when it is made, and counts from there: steps of the
// wall clock neither move store times nor schedules. Time in which the machine slept counts.
type clock struct {
	start     time.Time
	suspended func() time.Duration // that the machine has slept
	before    time.Duration        // suspended at start
	slept     atomic.Int64         // since start, as far as it counts; nanoseconds
	look      atomic.Int64         // when, awake since start, that is looked at again
	last      atomic.Int64
}

// leastSleep is what sleeps must add up to before they count: the system's clocks are not read at the same moment. lookEvery
// is how often they are read.
const (
	leastSleep = time.Second
	lookEvery  = 50 * time.Millisecond
)

func newClock(suspended func() time.Duration) *clock {
	return &clock{start: time.Now(), suspended: suspended, before: suspended()}
}

// now never goes back.
func (c *clock) now() int64 {
	awake := time.Since(c.start)
	if next := c.look.Load(); int64(awake) >= next && c.look.CompareAndSwap(next, int64(awake+lookEvery)) {
		counted, slept := c.slept.Load(), int64(c.suspended()-c.before)
		if slept >= counted+int64(leastSleep) {
			c.slept.CompareAndSwap(counted, slept) // One that looked later has found no less.
		}
	}
	return c.start.UnixMilli() + (awake + time.Duration(c.slept.Load())).Milliseconds()
}

// stamp is now for a message that is stored, or the last stamp when the clock was ahead before a restart.
func (c *clock) stamp() int64 {
	now := c.now()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// atLeast makes stamps not go back behind one that was given before a restart.
func (c *clock) atLeast(millis int64) {
	if millis > c.last.Load() {
		c.last.Store(millis)
	}
}
