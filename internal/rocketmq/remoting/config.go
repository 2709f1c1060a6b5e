package remoting

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Dialer opens a connection to host:port. It resolves names anew at each call, so that a name server or broker can move.
// TLS is a Dialer that wraps its connection.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// Handler answers a request of the peer. It runs on a goroutine of its own and may block; ctx ends with the connection.
// It owns req, and its result is sent unless the request was one-way; nil answers "not supported" (code 3).
type Handler func(ctx context.Context, req *wire.Command) *wire.Command

// Config is what connections share. Only Buffers and Logger must be set; a zero value elsewhere means its default.
type Config struct {
	Dial    Dialer // default: TCP with TCP_NODELAY
	Buffers *Buffers
	Logger  *slog.Logger
	Handle  Handler // nil: every request is answered "not supported"
	// Sign may add header fields to a request (ACL). It runs last, after all others are set. nil = none.
	Sign func(*wire.Command) error
	// Probe makes a cheap request that the peer always answers. nil = silence is not probed.
	Probe func() *wire.Command

	DialTimeout    time.Duration // 3 s
	CallTimeout    time.Duration // 3 s; for calls whose context has no deadline
	WriteTimeout   time.Duration // 10 s; for one write
	ProbeAfter     time.Duration // 10 s of silence while requests are out
	ProbeTimeout   time.Duration // 3 s
	IdleTimeout    time.Duration // 120 s without a byte in either direction
	MaxOutstanding int           // 4096 requests, held ones not counted
	MaxHandlers    int           // 32 requests of the peer at once
	MaxUnwritten   int           // 8 MiB of frames that wait to be written
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		c.Dial = DialTCP
	}
	set(&c.DialTimeout, 3*time.Second)
	set(&c.CallTimeout, 3*time.Second)
	set(&c.WriteTimeout, 10*time.Second)
	set(&c.ProbeAfter, 10*time.Second)
	set(&c.ProbeTimeout, 3*time.Second)
	set(&c.IdleTimeout, 120*time.Second)
	set(&c.MaxOutstanding, 4096)
	set(&c.MaxHandlers, 32)
	set(&c.MaxUnwritten, 8<<20)
	return c
}

func set[T comparable](v *T, preset T) {
	var zero T
	if *v == zero {
		*v = preset
	}
}

// DialTCP is the Dialer for plain connections. Small frames are not delayed (TCP_NODELAY).
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		if err := tcp.SetNoDelay(true); err != nil {
			return nil, closing(nc, err)
		}
	}
	return nc, nil
}
