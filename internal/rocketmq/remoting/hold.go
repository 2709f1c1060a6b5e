package remoting

import (
	"context"
	"errors"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ErrFull means that a request would have to wait to be written.
var ErrFull = errors.New("too much waits to be written")

// Hold is CallHeld for callers that do not wait: it sends req and returns, and done is called once with what CallHeld would
// return. It needs no goroutine, context or timer, which is what thousands of pulls a second cost most.
//
// done runs on the connection's reading goroutine, or on the one that ends the connection or the request, so it must
// neither block nor call the connection. within is exact to a second. cancel ends the request; done may have been called
// by then, or is called by it. An error means that nothing was sent and done is not called.
func (c *Conn) Hold(req *wire.Command, within time.Duration, done func(*Reply, error)) (cancel func(), err error) {
	if c.isDraining() {
		return nil, c.failed(req, false, ErrDraining)
	}
	w := &waiter{frame: &outFrame{}, start: c.now(), held: true}
	w.until = w.start + within
	w.done = func(o outcome) { done(c.heldEnd(req, w, o)) }
	opaque, err := c.table.add(w)
	if err != nil {
		return nil, c.failed(req, false, err)
	}
	if err := c.writeSoon(w.frame, req, opaque); err != nil && c.table.take(opaque) != nil {
		return nil, c.failed(req, false, err)
	}
	return func() {
		if c.table.take(opaque) != nil {
			w.end(outcome{err: context.Canceled})
		}
	}, nil
}

func (c *Conn) heldEnd(req *wire.Command, w *waiter, o outcome) (*Reply, error) {
	if o.err == nil {
		return o.reply, nil
	}
	sent := !c.out.withdraw(w.frame)
	if sent && errors.Is(o.err, context.DeadlineExceeded) {
		c.suspectSilence(w.start)
	}
	return nil, c.failed(req, sent, o.err)
}

// writeSoon is enqueue for those who must not wait.
func (c *Conn) writeSoon(f *outFrame, req *wire.Command, opaque int32) error {
	cmd, err := c.signed(req, opaque, 0)
	if err != nil {
		return err
	}
	buf, err := encode(c.cfg.Buffers, &cmd)
	if err != nil {
		return err
	}
	f.buf = buf
	if c.writeDirect(f) || c.out.tryPut(f) {
		return nil
	}
	c.cfg.Buffers.put(buf)
	return ErrFull
}
