package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is one connection with its outstanding requests. It is safe for concurrent use.
type Conn struct {
	cfg    Config
	addr   string
	nc     net.Conn
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // ends with the connection; what handlers get
	cancel context.CancelCauseFunc
	base   time.Time

	table  *table
	out    *outbox
	direct *directWriter // nil: the socket cannot be written to without waiting
	in     chan struct{} // one token for each handler that runs

	lastRead  atomic.Int64 // nanoseconds after base
	lastWrite atomic.Int64
	frames    atomic.Uint64 // received
	late      atomic.Uint64 // answers nobody waited for
	drain     chan struct{} // closed by Drain
	drainOnce sync.Once
	suspect   chan struct{} // a call timed out in silence
	wg        sync.WaitGroup
}

// Dial connects to addr (host:port) and starts the connection's goroutines; Close ends them.
func Dial(ctx context.Context, addr string, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	dialCtx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	nc, err := cfg.Dial(dialCtx, addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	return newConn(nc, addr, cfg), nil
}

func newConn(nc net.Conn, addr string, cfg Config) *Conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{
		cfg: cfg, addr: addr, nc: nc, log: cfg.Logger.With("addr", addr), ctx: ctx, cancel: cancel, base: time.Now(),
		table: newTable(cfg.MaxOutstanding), out: newOutbox(cfg.MaxUnwritten),
		in: make(chan struct{}, cfg.MaxHandlers), suspect: make(chan struct{}, 1), drain: make(chan struct{}),
	}
	c.direct = newDirectWriter(nc)
	c.wg.Go(c.readLoop)
	c.wg.Go(c.writeLoop)
	c.wg.Go(c.watchLoop)
	return c
}

// Addr is the address that was dialed.
func (c *Conn) Addr() string { return c.addr }

// Done is closed when the connection has ended; Err says why then.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err is nil while the connection lives, then its cause.
func (c *Conn) Err() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return context.Cause(c.ctx)
}

// Proven tells that the peer has sent at least one whole frame.
func (c *Conn) Proven() bool { return c.frames.Load() > 0 }

// Drain refuses new calls and closes the connection when the last outstanding one has ended: what to do when the peer
// says GO_AWAY.
func (c *Conn) Drain() { c.drainOnce.Do(func() { close(c.drain) }) }

// Draining is closed by Drain.
func (c *Conn) Draining() <-chan struct{} { return c.drain }

func (c *Conn) isDraining() bool {
	select {
	case <-c.drain:
		return true
	default:
		return false
	}
}

// Stats are the numbers of one connection.
type Stats struct {
	Outstanding int    // requests without an answer yet, held ones included
	Late        uint64 // answers that came after their request had ended, or that nobody asked for
}

// Stats returns the present numbers.
func (c *Conn) Stats() Stats { return Stats{Outstanding: c.table.len(), Late: c.late.Load()} }

// Close ends the connection and fails what is outstanding with ErrClosed. It returns when the connection's own goroutines
// have ended; handlers that still run have had their context canceled.
func (c *Conn) Close() {
	c.fail(ErrClosed)
	c.wg.Wait()
}

// fail ends the connection once; later causes are ignored.
func (c *Conn) fail(cause error) {
	c.cancel(cause)
	if c.table.shut(context.Cause(c.ctx)) {
		if err := c.nc.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			c.log.Debug("closing the socket", "error", err)
		}
	}
}

// now is the connection's age: a monotonic clock that fits an atomic.
func (c *Conn) now() time.Duration { return time.Since(c.base) }

// read is what the frame reader pulls from: it notes when bytes came.
func (c *Conn) read(p []byte) (int, error) {
	n, err := c.nc.Read(p)
	if n > 0 {
		c.lastRead.Store(int64(c.now()))
	}
	return n, err
}

func (c *Conn) readLoop() {
	frames := newFrameReader(readerFunc(c.read), c.cfg.Buffers)
	for {
		buf, err := frames.next()
		if err == nil {
			err = c.receive(buf)
		}
		if err != nil {
			c.fail(c.unheard(readError(err)))
			return
		}
	}
}

// unheard adds to the end of a connection on which the peer never said a word what that may mean: RocketMQ's servers hang up
// on a client that should speak TLS.
func (c *Conn) unheard(err error) error {
	_, secure := c.nc.(interface{ ConnectionState() tls.ConnectionState })
	if secure || c.Proven() || !errors.Is(err, ErrPeerClose) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return fmt.Errorf("%w before it said anything; when it wants TLS, set tls of the broker in the config", err)
}

func readError(err error) error {
	switch {
	case errors.Is(err, ErrBadFrame):
		return err
	case errors.Is(err, io.EOF):
		return ErrPeerClose
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w in the middle of a frame", ErrPeerClose)
	default:
		return fmt.Errorf("reading: %w", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func closing(c io.Closer, cause error) error { return errors.Join(cause, c.Close()) }
