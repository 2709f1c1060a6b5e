package store

import (
	"sync/atomic"
	"time"
)

// clock tells the time in milliseconds. It reads the wall clock once, when it is made, and counts from there: steps of the
// wall clock neither move store times nor schedules.
type clock struct {
	start time.Time
	last  atomic.Int64
}

func newClock() *clock { return &clock{start: time.Now()} }

// now never goes back, nor below what atLeast was told.
func (c *clock) now() int64 { return c.start.UnixMilli() + time.Since(c.start).Milliseconds() }

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
