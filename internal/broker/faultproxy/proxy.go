package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
)

// Config says where a proxy listens and where it leads.
type Config struct {
	// Target is the address of the real server.
	Target string
	// Address is where to listen, "127.0.0.1:0" by default. Clients find a broker by the address it advertises: let the
	// broker advertise the proxy's.
	Address string
	// Listen and Dial are TCP by default; memnet's work too.
	Listen func(address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger *slog.Logger // by default nothing is logged
}

// dialTimeout bounds how long the proxy tries to reach the target for one client.
const dialTimeout = 3 * time.Second

// Proxy forwards connections. Its methods are safe for concurrent use.
type Proxy struct {
	config Config
	rules  rules
	gate   gate

	mu       sync.Mutex
	address  string
	listener net.Listener
	links    map[*link]struct{}
	cancel   context.CancelFunc
	running  *sync.WaitGroup
}

// New makes a proxy that does not listen yet.
func New(c Config) *Proxy {
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	if c.Listen == nil {
		c.Listen = func(address string) (net.Listener, error) {
			var lc net.ListenConfig
			return lc.Listen(context.Background(), "tcp", address)
		}
	}
	if c.Dial == nil {
		var d net.Dialer
		c.Dial = d.DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Proxy{config: c, address: c.Address, links: make(map[*link]struct{})}
}

// Start listens. After Stop it listens where it did before.
func (p *Proxy) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return errors.New("starting the proxy: it is already listening")
	}
	l, err := p.config.Listen(p.address)
	if err != nil {
		return fmt.Errorf("starting the proxy before %s: %w", p.config.Target, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.listener, p.address, p.cancel, p.running = l, l.Addr().String(), cancel, new(sync.WaitGroup)
	running := p.running
	running.Go(func() {
		remote.Accept(l, p.config.Logger, ctx.Done(), func(client net.Conn) {
			running.Go(func() { p.serve(ctx, client) })
		})
	})
	return nil
}

// Address is where the proxy listens.
func (p *Proxy) Address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// Stop refuses connections from now on and cuts those there are, until Start. The rules stay.
func (p *Proxy) Stop() error {
	p.mu.Lock()
	l, cancel, running := p.listener, p.cancel, p.running
	p.listener = nil
	p.mu.Unlock()
	if l == nil {
		return nil
	}
	cancel()
	err := l.Close()
	p.DropConnections()
	running.Wait()
	if err != nil {
		return fmt.Errorf("stopping the proxy before %s: %w", p.config.Target, err)
	}
	return nil
}

// Close is Stop.
func (p *Proxy) Close() error { return p.Stop() }

// DropConnections cuts every connection and goes on listening.
func (p *Proxy) DropConnections() {
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Connections is how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Stall keeps connections open and accepts new ones, but forwards nothing until the returned function is called: a server
// that hangs, or a network that swallows. Nothing is lost by it.
func (p *Proxy) Stall() (resume func()) { return p.gate.shut() }

// serve forwards one connection until both directions have ended. A target that cannot be reached ends it at once.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	server, err := p.config.Dial(dialing, "tcp", p.config.Target)
	cancel()
	l := newLink(p, client, server)
	if err != nil || !p.adopt(ctx, l) {
		l.close()
		return
	}
	defer p.forget(l)
	l.run()
}

func (p *Proxy) adopt(ctx context.Context, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
