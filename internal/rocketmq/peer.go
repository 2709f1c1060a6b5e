package rocketmq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// settled is how long a connection must have lived for its loss to count as news rather than as one more failure.
const settled = time.Second

// peer is one address and the one connection to it. Its goroutine (run) connects while somebody waits for it or it is
// eager; between attempts it backs off.
type peer struct {
	addr string
	pool *pool
	ctx  context.Context //nolint:containedctx // ends with the peer: callers that wait for it must learn of that
	stop context.CancelCauseFunc
	poke chan struct{} // a connection may be needed now
	news chan struct{} // the server was heard of: no need to back off
	// version is what the server last said of itself in the answer to a heartbeat; 0 = unknown.
	version atomic.Int32
	// advertised holds, by group and topic, the subscription version that the broker was last told.
	advertised advertised
	told       told // for heartbeats without subscriptions
	beats      beats

	mu       sync.Mutex
	conn     *remoting.Conn
	newest   *remoting.Conn // the one that was made last: conn, or one that nobody is offered yet
	waiting  int
	failures int
	known    bool // there was a connection before
	lastErr  error
	resting  bool          // the last attempt failed and the next has to wait
	changed  chan struct{} // closed when conn or lastErr changes
}

// get returns the live connection, waiting for one under ctx. With failFast it returns as soon as an attempt fails, or at
// once while the next one has to wait. The error is an *UnreachableError.
func (p *peer) get(ctx context.Context, failFast bool) (*remoting.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	defer func() { p.waiting-- }()
	for {
		if conn := p.usable(); conn != nil {
			return conn, nil
		}
		if failFast && p.resting {
			return nil, &UnreachableError{Addr: p.addr, Err: p.lastErr}
		}
		if err := p.wait(ctx); err != nil {
			if p.lastErr != nil {
				err = fmt.Errorf("%w; the last attempt: %w", err, p.lastErr)
			}
			return nil, &UnreachableError{Addr: p.addr, Err: err}
		}
	}
}

// usable returns the connection if it takes calls. The caller holds mu.
func (p *peer) usable() *remoting.Conn { return ifOpen(p.conn) }

// introduced returns the connection on which the server may have been told who this client is.
func (p *peer) introduced() *remoting.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ifOpen(p.newest)
}

// ifOpen returns conn if it takes calls.
func ifOpen(conn *remoting.Conn) *remoting.Conn {
	if conn == nil || conn.Err() != nil {
		return nil
	}
	select {
	case <-conn.Draining():
		return nil
	default:
		return conn
	}
}

// wait releases mu until something changed.
func (p *peer) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	p.wake()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return context.Cause(p.ctx) //nolint:contextcheck // the peer's own end, not the caller's
	}
}

// met tells that there was a connection.
func (p *peer) met() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// wake has run look whether a connection is needed.
func (p *peer) wake() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// down tells that the last attempt to connect failed and the next has to wait: others should be tried first.
func (p *peer) down() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resting
}

// trouble is why there is no connection: the error of the last attempt, nil when there was none since the last success.
func (p *peer) trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastErr
}

func (p *peer) run() {
	for p.ctx.Err() == nil {
		if !p.needed() {
			select {
			case <-p.poke:
			case <-p.ctx.Done():
			}
			continue
		}
		conn, err := p.connect()
		if err != nil {
			if p.ctx.Err() == nil { // else the attempt was given up with the peer, which those who wait are told
				p.pause(p.failed(err))
			}
			continue
		}
		p.attend(conn)
	}
}

func (p *peer) needed() bool {
	eager := p.pool.eager(p.addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0 || eager
}

// connect dials and says hello: a broker that takes connections but answers nothing is not connected.
func (p *peer) connect() (*remoting.Conn, error) {
	settings := p.pool.remoting
	if handle := p.pool.handle; handle != nil {
		settings.Handle = func(ctx context.Context, req *wire.Command) *wire.Command { return handle(ctx, p.addr, req) }
	}
	conn, err := remoting.Dial(p.ctx, p.addr, settings)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.newest = conn
	p.mu.Unlock()
	if err := p.pool.hello(p.ctx, p, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// attend offers conn until it ends or drains, then counts how it went.
func (p *peer) attend(conn *remoting.Conn) {
	since := time.Now()
	p.publish(conn, nil)
	p.connected()
	select {
	case <-conn.Done():
	case <-conn.Draining():
	case <-p.ctx.Done():
	}
	p.advertised.clear()
	p.told.clear()
	p.pool.retire(p.ctx, conn)
	if p.ctx.Err() != nil {
		return
	}
	if time.Since(since) >= settled || conn.Err() == nil {
		p.mu.Lock()
		p.failures = 0
		p.mu.Unlock()
		p.publish(nil, nil)
	} else {
		p.pause(p.failed(conn.Err()))
	}
	p.pool.lost(p.addr, conn.Err())
}

// connected logs the end of an outage and tells who waits for it.
func (p *peer) connected() {
	p.mu.Lock()
	failures, again := p.failures, p.known
	p.known = true
	p.mu.Unlock()
	if failures > 0 {
		p.pool.log.Info("server reachable again", "addr", p.addr, "attempts", failures+1)
	}
	if p.pool.back != nil && (again || failures > 0) {
		p.pool.back(p.addr)
	}
}

// failed counts a failure and returns how long to back off. Only the first of a row is news to the operator.
func (p *peer) failed(err error) time.Duration {
	p.mu.Lock()
	p.failures++
	failures := p.failures
	p.mu.Unlock()
	if failures == 1 {
		p.pool.log.Warn("server not reachable; trying again until it is", "addr", p.addr, "error", err)
	}
	p.publish(nil, err)
	p.pool.lost(p.addr, err)
	return p.pool.backoff(failures, err)
}

func (p *peer) publish(conn *remoting.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.lastErr, p.resting = conn, err, err != nil
	close(p.changed)
	p.changed = make(chan struct{})
}

// pause backs off, until there is news of the server.
func (p *peer) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	fresh := false
	select {
	case <-timer.C:
	case <-p.news:
		fresh = true
	case <-p.ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = false
	if fresh {
		p.failures = min(p.failures, 1)
	}
}

// heard tells that the server was heard of. It is remembered only while the peer backs off.
func (p *peer) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}
