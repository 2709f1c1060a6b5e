package remoting

import (
	"context"
	"time"
)

// watchTick is how often silence, idling and draining are looked at.
const watchTick = time.Second

func (c *Conn) watchLoop() {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.suspect:
			c.probe()
		case <-tick.C:
			c.look()
		}
	}
}

func (c *Conn) look() {
	for _, w := range c.table.overdue(c.now()) {
		w.end(outcome{err: context.DeadlineExceeded})
	}
	since, owed := c.table.waiting()
	heard := time.Duration(c.lastRead.Load())
	switch {
	case owed:
		if c.now()-max(since, heard) >= c.cfg.ProbeAfter {
			c.probe()
		}
	case c.isDraining():
		c.fail(ErrDraining)
	case c.now()-max(heard, time.Duration(c.lastWrite.Load())) >= c.cfg.IdleTimeout:
		c.fail(ErrIdle)
	}
}

// probe asks something cheap and closes the connection when not one byte comes back. Any byte counts: a peer that is slow
// with one request is not dead. A draining connection is probed as well: what is still out on it has to end.
func (c *Conn) probe() {
	if c.cfg.Probe == nil {
		return
	}
	before := c.lastRead.Load()
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ProbeTimeout)
	defer cancel()
	reply, err := c.exchange(ctx, c.cfg.Probe(), true)
	if err == nil {
		reply.Release()
		return
	}
	if c.lastRead.Load() == before {
		c.fail(ErrSilent)
	}
}
