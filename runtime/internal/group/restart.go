package group

import "time"

// restart drains what is owned. It stays desired, so that it is taken again once it is released; the other members see it
// draining meanwhile, and leave it alone.
func (c *Core) restart(now time.Time) {
	if c.stopping {
		return
	}
	for _, q := range c.sorted() {
		if e := c.entries[q]; e.state == Owned {
			c.drain(now, q, e)
		}
	}
	c.sooner(now)
}
