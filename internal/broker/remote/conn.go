package remote

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Errors with which a call to a client ends when no answer comes.
var (
	ErrConnClosed  = errors.New("the connection was closed")
	ErrCallTimeout = errors.New("the client did not answer in time")
)

// errSlow cuts a client that does not take what it is sent.
var errSlow = errors.New("the client does not take what it asked for")

// Conn is one client's connection.
type Conn struct {
	server  *Server
	raw     net.Conn // what was accepted
	nc      net.Conn // what frames go through: raw, or TLS over it; set before anything is read
	remote  netip.AddrPort
	running *sync.WaitGroup
	done    chan struct{}
	wake    chan struct{} // there is something to write
	room    chan struct{} // something was written
	active  atomic.Int64  // unix nanoseconds of the last frame in or out

	reserved int // of Options.MaxReading, by the frame that is being read; the reading goroutine's

	mu        sync.Mutex
	out       []byte
	pending   int  // bytes in out and on their way into the connection
	writing   bool // the writer was started
	finishing bool // end the direction to the client after what is in out
	closed    bool
	calls     map[int32]*call
	idle      *time.Timer
}

func newConn(s *Server, nc net.Conn) *Conn {
	c := &Conn{
		server: s, raw: nc, nc: nc, done: make(chan struct{}),
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	if s.options.TLS != nil {
		c.nc = tls.Server(&sniffer{Conn: nc}, s.options.TLS)
	}
	c.touch()
	c.watchIdle()
	return c
}

// Remote is the client's address.
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// Done is closed when the connection ends.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close cuts the connection. Calls to the client end with ErrConnClosed.
func (c *Conn) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	calls := c.calls
	c.calls, c.out = nil, nil
	c.server.pending.Add(-int64(c.pending))
	c.pending = 0
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	close(c.done)
	if err := c.raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.server.options.Logger.Debug("closing a connection", "peer", c.remote.String(), "error", err.Error())
	}
	for _, k := range calls {
		k.end(nil, ErrConnClosed)
	}
}

// CloseWrite ends the direction to the client after what is already on its way: the client reads EOF but may go on
// sending, and gets no answers.
func (c *Conn) CloseWrite() {
	c.enqueue(func(out []byte) ([]byte, error) {
		c.finishing = true
		return out, nil
	})
}

// Send puts a request on its way that wants no answer.
func (c *Conn) Send(cmd *wire.Command) {
	cmd.Opaque = c.server.opaque.Add(1)
	cmd.Flag |= wire.FlagOneway
	c.sendRequest(cmd)
}

// WriteRaw puts bytes on their way as they are, whole frames or not.
func (c *Conn) WriteRaw(b []byte) {
	c.enqueue(func(out []byte) ([]byte, error) { return append(out, b...), nil })
}

func (c *Conn) sendRequest(cmd *wire.Command) {
	cmd.Version = int32(c.server.options.Version)
	c.enqueue(func(out []byte) ([]byte, error) { return appendFrame(out, cmd, nil) })
}

// enqueue lets add extend what is to be written and wakes the writer. On a connection that ends it does nothing. What
// cannot be encoded cuts the connection: the client must not wait for it for ever.
func (c *Conn) enqueue(add func(out []byte) ([]byte, error)) {
	err := c.extend(add)
	switch {
	case err == nil:
		return
	case errors.Is(err, errSlow):
		c.server.options.Logger.Warn("cutting a connection", "peer", c.remote.String(), "error", err.Error())
	default:
		c.server.options.Logger.Error("encoding a frame", "peer", c.remote.String(), "error", err.Error())
	}
	c.Close()
}

func (c *Conn) extend(add func(out []byte) ([]byte, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.finishing {
		return nil
	}
	out, err := add(c.out)
	if err != nil {
		return err
	}
	added := len(out) - len(c.out)
	c.out = out
	c.pending += added
	if total := c.server.pending.Add(int64(added)); c.server.options.tooSlow(c.pending, total) {
		return errSlow
	}
	if !c.writing {
		c.writing = true
		c.running.Go(c.write)
	}
	signal(c.wake)
	return nil
}

func (c *Conn) touch() { c.active.Store(time.Now().UnixNano()) }

func (c *Conn) watchIdle() {
	limit := c.server.options.IdleTimeout
	if limit <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = time.AfterFunc(limit, func() { c.checkIdle(limit) })
}

// checkIdle is the timer's own: it looks when the last frame was instead of being reset by each.
func (c *Conn) checkIdle(limit time.Duration) {
	quiet := time.Since(time.Unix(0, c.active.Load()))
	if quiet >= limit {
		c.Close()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.idle.Reset(limit - quiet)
	}
}

// signal puts a token into a channel of capacity one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
