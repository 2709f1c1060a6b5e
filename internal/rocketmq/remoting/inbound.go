package remoting

import (
	"bytes"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// receive passes one frame on: an answer to its waiter, a request to a handler.
func (c *Conn) receive(buf *buffer) error {
	cmd, err := decode(buf.b)
	if err != nil {
		c.cfg.Buffers.put(buf)
		return fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	c.frames.Add(1)
	if cmd.Flag&wire.FlagResponse == 0 {
		cmd.Body = bytes.Clone(cmd.Body) // a handler may keep it
		c.cfg.Buffers.put(buf)
		c.serve(cmd)
		return nil
	}
	reply := &Reply{Command: cmd, pool: c.cfg.Buffers, buf: buf}
	w := c.table.take(cmd.Opaque)
	if w == nil {
		c.late.Add(1)
		reply.Release()
		return nil
	}
	w.end(outcome{reply: reply})
	return nil
}

// serve runs the handler on a goroutine of its own, or refuses when too many run.
func (c *Conn) serve(req *wire.Command) {
	select {
	case c.in <- struct{}{}:
		go func() {
			defer func() { <-c.in }()
			c.answer(req, c.handle(req))
		}()
	default:
		c.log.Warn("refusing a request of the peer: too many are being handled", "code", req.Code, "limit", cap(c.in))
		c.answer(req, wire.NewResponse(req, wire.RespSystemBusy, "[OVERLOAD] too many requests are being handled by this client"))
	}
}

func (c *Conn) handle(req *wire.Command) (resp *wire.Command) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("handling a request of the peer panicked", "code", req.Code, "panic", fmt.Sprint(r))
			resp = wire.NewResponse(req, wire.RespSystemError, "handling the request panicked")
		}
	}()
	if c.cfg.Handle != nil {
		resp = c.cfg.Handle(c.ctx, req)
	}
	if resp == nil {
		resp = wire.NewResponse(req, wire.RespNotSupported, fmt.Sprintf("request code %d is not supported by this client", req.Code))
	}
	return resp
}

func (c *Conn) answer(req, resp *wire.Command) {
	if req.Flag&wire.FlagOneway != 0 {
		return
	}
	cmd := *resp
	cmd.Opaque, cmd.Encoding = req.Opaque, req.Encoding
	cmd.Flag |= wire.FlagResponse
	if err := c.put(c.ctx, &outFrame{}, &cmd); err != nil && c.ctx.Err() == nil {
		c.log.Warn("answering a request of the peer", "code", req.Code, "error", err)
	}
}
