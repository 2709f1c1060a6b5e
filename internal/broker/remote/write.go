package remote

// keepBuffer is the largest buffer that an idle connection keeps.
const keepBuffer = 256 << 10

// write is the writing goroutine: it takes all that waits and writes it in one go.
func (c *Conn) write() {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.mu.Lock()
		out, finishing := c.out, c.finishing
		c.out = spare[:0]
		c.mu.Unlock()
		if len(out) > 0 {
			c.touch()
			if _, err := c.nc.Write(out); err != nil {
				c.Close()
				return
			}
			c.touch()
		}
		c.written(len(out))
		if finishing {
			c.finish()
			return
		}
		if spare = out; cap(spare) > keepBuffer {
			spare = nil
		}
	}
}

// written is told how much the connection took.
func (c *Conn) written(n int) {
	c.mu.Lock()
	if !c.closed {
		c.pending -= n
		c.server.pending.Add(-int64(n))
	}
	c.mu.Unlock()
	signal(c.room)
}

// finish ends the direction to the client, or the connection where halves cannot be closed.
func (c *Conn) finish() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.Close()
	}
}

// waitForRoom holds the reader while the client does not take its answers. False: the connection ended.
func (c *Conn) waitForRoom() bool {
	for {
		c.mu.Lock()
		pending, closed := c.pending, c.closed
		c.mu.Unlock()
		if closed {
			return false
		}
		if pending <= c.server.options.mayWait(c.server.pending.Load()) {
			return true
		}
		select {
		case <-c.room:
		case <-c.done:
			return false
		}
	}
}
