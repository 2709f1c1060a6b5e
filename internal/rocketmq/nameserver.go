package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// nameServers asks the name servers of one cluster. They do not know each other, so one that fails, or that was just
// started and knows nothing yet, is made up for by the others. The one that answered last is asked first.
type nameServers struct {
	list    *addressList  // nil: the addresses are configured
	known   chan struct{} // closed once there are addresses, or a list was asked for in vain
	pool    *pool
	timeout time.Duration
	log     *slog.Logger
	current atomic.Uint32

	mu     sync.Mutex // guards what follows; held for memory work only
	listed []string
	reason error // why none are listed
}

// set makes addrs the name servers in force, or notes why there are none.
func (n *nameServers) set(addrs []string, reason error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listed == nil && n.reason == nil {
		close(n.known)
	}
	n.listed, n.reason = addrs, reason
}

// addrs are the name servers in force. The list is not changed afterwards.
func (n *nameServers) addrs() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listed
}

// await returns the name servers in force; the first answer of a list is waited for.
func (n *nameServers) await(ctx context.Context) ([]string, error) {
	select {
	case <-n.known: // whatever ctx says: configured ones are known from the start
	default:
		if err := n.firstList(ctx); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.listed) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNoNameServer, n.reason)
	}
	return n.listed, nil
}

// firstList waits for the first answer of the list.
func (n *nameServers) firstList(ctx context.Context) error {
	select {
	case <-n.known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the list at %s: %w", ErrNoNameServer, n.list.url, context.Cause(ctx))
	}
}

// ask sends req to one name server after the other until one answers with success. Refusals are remembered: when none
// succeeds, a refusal is returned rather than another's silence. The caller must Release the reply.
func (n *nameServers) ask(ctx context.Context, req *wire.Command) (*remoting.Reply, error) {
	for {
		addrs, err := n.await(ctx)
		if err != nil {
			return nil, err
		}
		reply, err := n.askEach(ctx, addrs, req)
		if err == nil || ctx.Err() != nil || slices.Equal(addrs, n.addrs()) {
			return reply, err
		} // else the list changed meanwhile
	}
}

// trouble is why none of the name servers can be asked at present; nil when one can, or none was tried.
func (n *nameServers) trouble() (all error) {
	for _, addr := range n.addrs() {
		known := n.pool.known(addr)
		if known == nil {
			return nil
		}
		err := known.trouble()
		if err == nil {
			return nil
		}
		all = errors.Join(all, &UnreachableError{Addr: addr, Err: err})
	}
	return all
}

func (n *nameServers) askEach(ctx context.Context, addrs []string, req *wire.Command) (*remoting.Reply, error) {
	first := n.current.Load()
	var refused *ResponseError
	var failed error
	for i := range len(addrs) {
		index := (int(first) + i) % len(addrs)
		reply, err := n.askOne(ctx, addrs[index], req, len(addrs) > 1)
		var resp *ResponseError
		switch {
		case err == nil:
			n.current.CompareAndSwap(first, uint32(index)) //nolint:gosec // an index
			return reply, nil
		case errors.As(err, &resp):
			if refused == nil || resp.Code == wire.RespTopicNotExist {
				refused = resp
			}
		default:
			failed = errors.Join(failed, err)
			n.log.Debug("asking a name server", "addr", addrs[index], "error", err)
		}
		if ctx.Err() != nil {
			break // the time of the next one is up too
		}
	}
	if refused != nil {
		return nil, refused
	}
	return nil, fmt.Errorf("%w: %w", ErrNoNameServer, failed)
}

// askOne gives one name server its own share of the time.
func (n *nameServers) askOne(ctx context.Context, addr string, req *wire.Command, others bool) (*remoting.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	one, err := n.pool.peer(addr)
	if err != nil {
		return nil, err
	}
	conn, err := one.get(ctx, others)
	if err != nil {
		return nil, err
	}
	reply, err := conn.Call(ctx, req)
	if err != nil {
		return nil, err
	}
	if code := reply.ResponseCode(); code != wire.RespSuccess {
		defer reply.Release()
		if code == wire.RespGoAway {
			conn.Drain()
		}
		return nil, &ResponseError{Request: req.RequestCode(), Code: code, Remark: reply.Remark, Addr: addr}
	}
	return reply, nil
}
