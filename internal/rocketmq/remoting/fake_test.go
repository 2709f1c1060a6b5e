package remoting

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// far is the other end of a connection under test: a peer that does what the test says.
type far struct {
	t      *testing.T
	nc     net.Conn
	frames *frameReader
}

// connect returns a connection over an in-memory pipe, which synctest can follow, and its far end.
func connect(t *testing.T, cfg Config) (*Conn, *far) {
	t.Helper()
	near, away := net.Pipe()
	cfg.Logger = slog.New(slog.DiscardHandler)
	if cfg.Buffers == nil {
		cfg.Buffers = &Buffers{}
	}
	c := newConn(near, "peer:1", cfg.withDefaults())
	t.Cleanup(c.Close)
	t.Cleanup(func() { _ = away.Close() })
	return c, &far{t: t, nc: away, frames: newFrameReader(away, cfg.Buffers)}
}

// next reads the next command; nil when the connection ended.
func (f *far) next() *wire.Command {
	buf, err := f.frames.next()
	if err != nil {
		return nil
	}
	cmd, err := decode(buf.b)
	if err != nil {
		f.t.Errorf("the connection wrote a broken frame: %v", err)
		return nil
	}
	return cmd
}

func (f *far) send(cmd *wire.Command) {
	b, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		f.t.Errorf("encoding: %v", err)
		return
	}
	f.raw(b)
}

func (f *far) raw(b []byte) {
	if _, err := f.nc.Write(b); err != nil && f.t.Context().Err() == nil {
		f.t.Logf("far end writes %d bytes: %v", len(b), err)
	}
}

func (f *far) answer(req *wire.Command, code wire.ResponseCode, body []byte) {
	resp := wire.NewResponse(req, code, "")
	resp.Body = body
	f.send(resp)
}

// echo answers every request with its own body until the connection ends.
func (f *far) echo() {
	for cmd := f.next(); cmd != nil; cmd = f.next() {
		f.answer(cmd, wire.RespSuccess, cmd.Body)
	}
}

// swallow reads and says nothing.
func (f *far) swallow() { _, _ = io.Copy(io.Discard, f.nc) }

func ping(body string) *wire.Command {
	return wire.NewRequest(&wire.PlainRequest{Op: wire.ReqHeartbeat}, []byte(body))
}

func mustCall(ctx context.Context, t *testing.T, c *Conn, body string) string {
	t.Helper()
	reply, err := c.Call(ctx, ping(body))
	if err != nil {
		t.Fatalf("calling: %v", err)
	}
	defer reply.Release()
	return string(reply.Body)
}
