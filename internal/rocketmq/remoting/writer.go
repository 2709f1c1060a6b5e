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
		if len(frames) == 0 {
			continue // a caller has the socket; it wakes this loop if anything waits
		}
		if err := c.writeFrames(frames, scratch); err != nil {
			c.fail(fmt.Errorf("writing: %w", err))
			return
		}
		c.out.release(nil)
	}
}

// writeFrames writes frames in order, small ones gathered.
func (c *Conn) writeFrames(frames []*outFrame, scratch []byte) error {
	pending := scratch[:0]
	for _, f := range frames {
		if len(pending)+len(f.rest()) > cap(pending) {
			if err := c.write(pending); err != nil {
				return err
			}
			pending = pending[:0]
		}
		if len(f.rest()) > cap(pending) {
			if err := c.write(f.rest()); err != nil {
				return err
			}
		} else {
			pending = append(pending, f.rest()...)
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
	if err == nil && c.direct != nil { // it has no use for a deadline, and one that has passed would stop it
		err = c.nc.SetWriteDeadline(time.Time{})
	}
	return err
}

// writeDirect writes a frame on the caller's goroutine when the socket is free and takes it without waiting, which spares a
// lone request the way over the writer's goroutine. What the socket does not take goes to the writer. False: nothing was done.
func (c *Conn) writeDirect(f *outFrame) bool {
	if c.direct == nil || len(f.buf.b) > writeScratch || !c.out.claim(f) {
		return false
	}
	f.from = c.direct.write(f.buf.b)
	c.lastWrite.Store(int64(c.now()))
	if f.from < len(f.buf.b) {
		c.out.release(f) // an error shows itself to the writer
		return true
	}
	c.out.release(nil)
	c.cfg.Buffers.put(f.buf)
	return true
}
