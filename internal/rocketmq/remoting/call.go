package remoting

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// errEnded stands for the connection's cause until failed looks it up.
var errEnded = errors.New("connection ended")

// Reply is the answer to a request. The body of its command lies in a pooled buffer until Release.
type Reply struct {
	*wire.Command
	pool *Buffers
	buf  *buffer
	gone atomic.Bool
}

// Release gives the buffer back; the command's body must not be used after it. Further calls do nothing.
func (r *Reply) Release() {
	if !r.gone.Swap(true) {
		r.pool.put(r.buf)
	}
}

// Call sends req and waits for its answer, whatever code it has. Without a deadline in ctx, Config.CallTimeout holds.
// req is not changed or kept. The error is a *CallError. The caller must Release the reply.
func (c *Conn) Call(ctx context.Context, req *wire.Command) (*Reply, error) {
	return c.call(ctx, req, false)
}

// CallHeld is Call for a request that the peer may hold (long poll). It takes no slot of Config.MaxOutstanding: a long
// poll must not keep a commit waiting.
func (c *Conn) CallHeld(ctx context.Context, req *wire.Command) (*Reply, error) {
	return c.call(ctx, req, true)
}

func (c *Conn) call(ctx context.Context, req *wire.Command, held bool) (*Reply, error) {
	if c.isDraining() {
		return nil, c.failed(req, false, ErrDraining)
	}
	return c.exchange(ctx, req, held)
}

// exchange is call for a connection that may be draining.
func (c *Conn) exchange(ctx context.Context, req *wire.Command, held bool) (*Reply, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.CallTimeout)
		defer cancel()
	}
	if !held {
		if err := c.table.acquire(ctx, c.ctx.Done()); err != nil {
			return nil, c.failed(req, false, err)
		}
	}
	w := &waiter{result: make(chan outcome, 1), frame: &outFrame{}, start: c.now(), held: held}
	opaque, err := c.table.add(w)
	if err != nil {
		if !held {
			<-c.table.slots
		}
		return nil, c.failed(req, false, err)
	}
	if err := c.enqueue(ctx, w.frame, req, opaque, 0); err != nil {
		c.table.take(opaque)
		return nil, c.failed(req, false, err)
	}
	return c.await(ctx, req, opaque, w)
}

func (c *Conn) await(ctx context.Context, req *wire.Command, opaque int32, w *waiter) (*Reply, error) {
	select {
	case o := <-w.result:
		return c.outcome(req, w, o)
	case <-ctx.Done():
	}
	if c.table.take(opaque) == nil {
		return c.outcome(req, w, <-w.result) // it was answered in this very moment
	}
	sent := !c.out.withdraw(w.frame)
	if sent && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.suspectSilence(w.start)
	}
	return nil, c.failed(req, sent, context.Cause(ctx))
}

// suspectSilence has the peer probed when nothing came from it since a request that got no answer.
func (c *Conn) suspectSilence(since time.Duration) {
	if c.lastRead.Load() > int64(since) {
		return
	}
	select {
	case c.suspect <- struct{}{}:
	default:
	}
}

func (c *Conn) outcome(req *wire.Command, w *waiter, o outcome) (*Reply, error) {
	if o.err != nil {
		return nil, c.failed(req, !c.out.withdraw(w.frame), o.err)
	}
	return o.reply, nil
}

// Post sends req one-way: the peer gives no answer, and nil says only that the request is on its way. It is for what the
// peer asks again when it is lost. req is not changed or kept. The error is a *CallError.
func (c *Conn) Post(ctx context.Context, req *wire.Command) error {
	if c.isDraining() {
		return c.failed(req, false, ErrDraining)
	}
	opaque, err := c.table.number()
	if err == nil {
		err = c.enqueue(ctx, &outFrame{}, req, opaque, wire.FlagOneway)
	}
	if err != nil {
		return c.failed(req, false, err)
	}
	return nil
}

// enqueue encodes a request and writes it, or hands it to the writer.
func (c *Conn) enqueue(ctx context.Context, f *outFrame, req *wire.Command, opaque, flag int32) error {
	cmd, err := c.signed(req, opaque, flag)
	if err != nil {
		return err
	}
	return c.put(ctx, f, &cmd)
}

// signed is the request as it goes out.
func (c *Conn) signed(req *wire.Command, opaque, flag int32) (wire.Command, error) {
	cmd := *req
	cmd.Opaque = opaque
	cmd.Flag = cmd.Flag&^(wire.FlagResponse|wire.FlagOneway) | flag
	if c.cfg.Sign == nil {
		return cmd, nil
	}
	cmd.Ext = slices.Clone(cmd.Ext)
	return cmd, c.cfg.Sign(&cmd)
}

func (c *Conn) put(ctx context.Context, f *outFrame, cmd *wire.Command) error {
	buf, err := encode(c.cfg.Buffers, cmd)
	if err != nil {
		return err
	}
	f.buf = buf
	if c.writeDirect(f) {
		return nil
	}
	if err := c.out.put(ctx, c.ctx.Done(), f); err != nil {
		c.cfg.Buffers.put(buf)
		return err
	}
	return nil
}

func (c *Conn) failed(req *wire.Command, sent bool, err error) error {
	if errors.Is(err, errEnded) {
		err = c.Err()
	}
	return &CallError{Addr: c.addr, Code: req.RequestCode(), Sent: sent, Err: err}
}
