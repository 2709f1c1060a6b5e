package rocketmq

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// pool holds one peer for each address, of one kind: brokers, or name servers.
type pool struct {
	remoting remoting.Config
	log      *slog.Logger
	backoff  func(failures int, err error) time.Duration
	// hello runs on each new connection before anybody else uses it.
	hello func(context.Context, *peer, *remoting.Conn) error
	// handle answers what the server at addr asks. nil = nothing is asked.
	handle func(ctx context.Context, addr string, req *wire.Command) *wire.Command
	// lost hears of each failed attempt and each lost connection.
	lost func(addr string, err error)
	// back hears of each connection after the first one to an address, once it can be used. nil = nobody.
	back func(addr string)
	// eager tells that the connection to an address is to be kept up although nobody waits for it.
	eager func(addr string) bool

	wg    sync.WaitGroup
	mu    sync.Mutex
	peers map[string]*peer
	met   map[string]bool // addresses without a peer that there was a connection to
	err   error           // set once closed
}

// peer returns the peer of addr and starts it when it is new.
func (p *pool) peer(addr string) (*peer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	if known := p.peers[addr]; known != nil {
		return known, nil
	}
	ctx, stop := context.WithCancelCause(context.Background())
	one := &peer{
		addr: addr, pool: p, ctx: ctx, stop: stop,
		poke: make(chan struct{}, 1), news: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	one.known = p.met[addr]
	delete(p.met, addr)
	p.peers[addr] = one
	p.wg.Go(one.run)
	return one, nil
}

// known returns the peer of addr if there is one.
func (p *pool) known(addr string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peers[addr]
}

// keep ends the peers whose address is not in addrs; who waits for one of them gets errPeerGone.
func (p *pool) keep(addrs map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, one := range p.peers {
		if !addrs[addr] {
			delete(p.peers, addr)
			one.stop(errPeerGone)
			if one.met() {
				if p.met == nil {
					p.met = map[string]bool{}
				}
				p.met[addr] = true
			}
		}
	}
}

// retire lets conn finish what is outstanding on it, and closes it with the peer.
func (p *pool) retire(ctx context.Context, conn *remoting.Conn) {
	p.wg.Go(func() {
		select {
		case <-conn.Done():
		case <-ctx.Done():
		}
		conn.Close()
	})
}

// close ends all peers and waits for their goroutines.
func (p *pool) close() {
	p.mu.Lock()
	p.err = ErrNotRunning
	for _, one := range p.peers {
		one.stop(ErrNotRunning)
	}
	p.peers = map[string]*peer{}
	p.mu.Unlock()
	p.wg.Wait()
}
