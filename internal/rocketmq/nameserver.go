package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// nameServers asks the name servers of one cluster. They do not know each other, so one that fails, or that was just
// started and knows nothing yet, is made up for by the others. The one that answered last is asked first.
type nameServers struct {
	addrs   []string
	pool    *pool
	timeout time.Duration
	log     *slog.Logger
	current atomic.Uint32
}

// ask sends req to one name server after the other until one answers with success. Refusals are remembered: when none
// succeeds, a refusal is returned rather than another's silence. The caller must Release the reply.
func (n *nameServers) ask(ctx context.Context, req *wire.Command) (*remoting.Reply, error) {
	first := n.current.Load()
	var refused *ResponseError
	var failed error
	for i := range len(n.addrs) {
		index := (int(first) + i) % len(n.addrs)
		reply, err := n.askOne(ctx, n.addrs[index], req, len(n.addrs) > 1)
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
			n.log.Debug("asking a name server", "addr", n.addrs[index], "error", err)
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
