package rocketmq

import (
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// StartPull is Pull without a goroutine that waits. It is for when all that a pull needs is at hand: the broker's address, a
// connection, a subscription that the broker knows. ok is false when something is not: use Pull, which waits for it.
//
// done is called once, with what Pull would return, on a goroutine of the connection: it must not block or call the client.
// Its error wraps ErrPullAgain when the broker goes away, which Pull knows what to do about. cancel gives the pull up; done
// has been called before it returns, or is being called.
func (c *Client) StartPull(req *PullRequest, done func(*PullResult, error)) (cancel func(), ok bool) {
	if c.running() != nil || req.Hold <= 0 {
		return nil, false
	}
	list := c.routes.broker(req.Queue.Broker)
	if len(list) == 0 {
		return nil, false
	}
	to := c.choose(list, c.suggested.get(pullKey{req.Group, req.Queue}))
	conn := c.ready(to.Addr, req)
	if conn == nil {
		return nil, false
	}
	r := inQueue(req.Queue, pullHeader(req))
	cancel, err := conn.Hold(wire.NewRequest(r.header, nil), req.Hold+c.cfg.PullMargin, func(reply *remoting.Reply, err error) {
		done(c.pullEnded(req, r, to, reply, err))
	})
	return cancel, err == nil
}

// ready returns the connection to addr when a pull can go out on it at once.
func (c *Client) ready(addr string, req *PullRequest) *remoting.Conn {
	one := c.brokers.known(addr)
	version := req.Subscription.Version
	if one == nil || version != 0 && !one.advertised.covers(req.Group, req.Queue.Topic, version) && c.groups.joined(req.Group) {
		return nil
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.usable()
}

func (c *Client) pullEnded(req *PullRequest, r request, to BrokerAddr, reply *remoting.Reply, err error) (*PullResult, error) {
	if err != nil {
		return nil, fmt.Errorf("pulling from %s at offset %d for group %s: %w", req.Queue, req.Offset, req.Group, c.note(err, req.Queue.Topic))
	}
	if reply.ResponseCode() == wire.RespGoAway {
		reply.Release()
		return nil, fmt.Errorf("pulling from %s for group %s: %w: the broker is going away", req.Queue, req.Group, ErrPullAgain)
	}
	return c.finishPull(req, r, to, reply)
}
