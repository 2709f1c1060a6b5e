package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Options say how a server listens and whom it serves.
type Options struct {
	// Listen opens the listener. It is called at each Start with the address of the one before, so that a server that was
	// stopped comes back where it was.
	Listen func(address string) (net.Listener, error)
	// Address is where the first Start listens.
	Address string
	// Handle serves one request. It runs on the reading goroutine of the connection and must not block. The request's
	// body is valid until Handle returns.
	Handle func(*Request)
	// Gone is told of each connection that ended, once, after its last request was handled.
	Gone func(*Conn)
	// MaxFrame is the longest frame that is read, in bytes, its length prefix included.
	MaxFrame int
	// MaxPending is how many bytes may wait to be written to one connection before it is no longer read from.
	MaxPending int
	// MaxTotal is how many bytes may wait over all connections; 0 = any. Beyond it a connection is read from only while
	// next to nothing waits for it, so that those who do not take their answers do not take the others' memory.
	MaxTotal int64
	// MaxReading is how many bytes of large frames may have arrived over all connections without being whole; 0 = any. A
	// connection that would exceed it is cut.
	MaxReading int64
	// IdleTimeout closes a connection that neither reads nor writes for so long; 0 = never.
	IdleTimeout time.Duration
	// Version is what the server says of itself in each frame.
	Version wire.Version
	// TLS, when set, is what every client must speak: a plain connection is told so by an alert, and closed.
	TLS    *tls.Config
	Logger *slog.Logger
}

// Server listens and serves. Its methods are safe for concurrent use.
type Server struct {
	options Options
	opaque  atomic.Int32
	pending atomic.Int64 // bytes that wait over all connections
	reading atomic.Int64 // bytes reserved for large frames that are being read

	mu       sync.Mutex
	listener net.Listener
	address  string
	stopping chan struct{} // closed by Close
	serving  bool
	conns    map[*Conn]struct{}
	running  *sync.WaitGroup // of the present start
}

// NewServer makes a server that does not listen yet.
func NewServer(o Options) *Server {
	return &Server{options: o, address: o.Address, conns: make(map[*Conn]struct{})}
}

// Listen takes the address and does not serve yet: clients that connect wait until Start. It may follow a Close.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listenLocked()
}

func (s *Server) listenLocked() error {
	if s.listener != nil {
		return errors.New("starting the server: it is already listening")
	}
	l, err := s.options.Listen(s.address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.address, err)
	}
	s.listener, s.address, s.running, s.stopping = l, l.Addr().String(), new(sync.WaitGroup), make(chan struct{})
	return nil
}

// Start begins to serve, after it has listened unless Listen did.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil || s.serving {
		if err := s.listenLocked(); err != nil {
			return err
		}
	}
	s.serving = true
	l, running, stopping := s.listener, s.running, s.stopping
	running.Go(func() {
		Accept(l, s.options.Logger, stopping, func(nc net.Conn) { s.adopt(l, nc, running) })
	})
	return nil
}

// Address is where the server listens, or listened last.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Close stops listening, cuts all connections and waits until their handlers have returned. A closed server may be
// started again. Closing one that does not listen does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	l, running := s.listener, s.running
	if l != nil {
		close(s.stopping)
	}
	s.listener, s.serving = nil, false
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	err := l.Close()
	for _, c := range conns {
		c.Close()
	}
	running.Wait()
	if err != nil {
		return fmt.Errorf("closing the listener on %s: %w", s.Address(), err)
	}
	return nil
}

// DropConnections cuts every connection and goes on listening.
func (s *Server) DropConnections() {
	for _, c := range s.Connections() {
		c.Close()
	}
}

// Connections returns the open connections.
func (s *Server) Connections() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// adopt serves nc unless the server was closed since it was accepted.
func (s *Server) adopt(l net.Listener, nc net.Conn, running *sync.WaitGroup) {
	c := newConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != l {
		c.Close()
		return
	}
	s.conns[c] = struct{}{}
	c.running = running
	running.Go(func() {
		c.read()
		s.forget(c)
	})
}

func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	if s.options.Gone != nil {
		s.options.Gone(c)
	}
}
