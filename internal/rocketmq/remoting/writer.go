package remoting

import (
	"fmt"
	"time"
)

// writeScratch is how many bytes of small frames one write gathers.
const writeScratch = 64 << 10

func (c *Conn) writeLoop() {
	var frames []*outFrame
	scratch := make([]byte, 0, writeScratch)
	for {
		select {
		case <-c.out.wake:
		case <-c.ctx.Done():
			return
		}
		frames = c.out.take(frames)
		if err := c.writeFrames(frames, scratch); err != nil {
			c.fail(fmt.Errorf("writing: %w", err))
			return
		}
	}
}

// writeFrames writes frames in order, small ones gathered.
func (c *Conn) writeFrames(frames []*outFrame, scratch []byte) error {
	pending := scratch[:0]
	for _, f := range frames {
		if len(pending)+len(f.buf.b) > cap(pending) {
			if err := c.write(pending); err != nil {
				return err
			}
			pending = pending[:0]
		}
		if len(f.buf.b) > cap(pending) {
			if err := c.write(f.buf.b); err != nil {
				return err
			}
		} else {
			pending = append(pending, f.buf.b...)
		}
		c.cfg.Buffers.put(f.buf)
	}
	return c.write(pending)
}

func (c *Conn) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.nc.Write(p)
	c.lastWrite.Store(int64(c.now()))
	return err
}
