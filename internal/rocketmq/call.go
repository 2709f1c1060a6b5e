package rocketmq

import (
	"context"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// request is one request to a broker.
type request struct {
	broker string // name
	topic  string // whose route may have led to the broker
	header wire.Request
	body   []byte
	within time.Duration // 0 = Config.CallTimeout
	held   bool
	// anyReplica lets a replica answer while the master is gone or known to be down.
	anyReplica bool
	// fast gives up when no connection can be made at once: the caller has somewhere else to go.
	fast bool
}

// onMaster sends r to the broker's master, or where r allows it to any replica. Any answer but success is a
// *ResponseError. The caller must Release the reply.
func (c *Client) onMaster(ctx context.Context, r request) (*remoting.Reply, error) {
	to, err := c.target(ctx, r)
	if err != nil {
		return nil, err
	}
	reply, err := c.send(ctx, to, r)
	if err != nil {
		return nil, err
	}
	if err := c.refusal(r, to, reply); err != nil {
		return nil, c.note(err, r.topic)
	}
	return reply, nil
}

// ask is onMaster for requests whose answer has no body to keep: it decodes header and body and releases the reply.
func (c *Client) ask(ctx context.Context, r request, into wire.Header) error {
	reply, err := c.onMaster(ctx, r)
	if err != nil {
		return err
	}
	defer reply.Release()
	return decodeHeader(r.header.RequestCode(), r.broker, reply, into)
}

func decodeHeader(code wire.RequestCode, broker string, reply *remoting.Reply, into wire.Header) error {
	if err := wire.DecodeFields(reply.Ext, into); err != nil {
		return fmt.Errorf("%w: reading the answer of %s to %s: %w", ErrProtocol, broker, code, err)
	}
	return nil
}

// refusal turns an answer that is no success into an error and releases it.
func (c *Client) refusal(r request, to BrokerAddr, reply *remoting.Reply) error {
	if reply.ResponseCode() == wire.RespSuccess {
		return nil
	}
	defer reply.Release()
	return c.responseError(r, to, reply)
}

func (c *Client) responseError(r request, to BrokerAddr, reply *remoting.Reply) *ResponseError {
	e := &ResponseError{
		Request: r.header.RequestCode(), Code: reply.ResponseCode(), Remark: reply.Remark, Broker: to.Name, Addr: to.Addr,
	}
	if c.cfg.Account != nil {
		e.Account = c.cfg.Account()
	}
	return e
}

// send sends r to one address and returns its answer, whatever code it has. A broker that is going away (1500) is left for
// a new connection, and asked once more there.
func (c *Client) send(ctx context.Context, to BrokerAddr, r request) (*remoting.Reply, error) {
	if err := c.running(); err != nil {
		return nil, err
	}
	within := r.within
	if within == 0 {
		within = c.cfg.CallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for again := true; ; again = false {
		conn, err := c.conn(ctx, to.Addr, r.fast)
		if err != nil {
			return nil, c.note(err, r.topic)
		}
		reply, err := call(ctx, conn, r)
		if err != nil {
			return nil, c.note(err, r.topic)
		}
		if reply.ResponseCode() != wire.RespGoAway {
			return reply, nil
		}
		conn.Drain()
		if !again {
			return reply, nil
		}
		reply.Release()
	}
}

func (c *Client) conn(ctx context.Context, addr string, fast bool) (*remoting.Conn, error) {
	one, err := c.brokers.peer(addr)
	if err != nil {
		return nil, err
	}
	return one.get(ctx, fast)
}

func call(ctx context.Context, conn *remoting.Conn, r request) (*remoting.Reply, error) {
	cmd := wire.NewRequest(r.header, r.body)
	if r.held {
		return conn.CallHeld(ctx, cmd)
	}
	return conn.Call(ctx, cmd)
}

// note has the topic's route renewed when err may come from an outdated one.
func (c *Client) note(err error, topic string) error {
	if IsRouteStale(err) {
		c.routes.expedite(topic)
	}
	return err
}

func (c *Client) target(ctx context.Context, r request) (BrokerAddr, error) {
	if !r.anyReplica {
		return c.master(ctx, r.broker, r.topic)
	}
	list, err := c.replicas(ctx, r.broker, r.topic)
	if err != nil {
		return BrokerAddr{}, err
	}
	return c.choose(list, masterID), nil
}

// master finds the address of a broker's master. An unknown broker is looked for once with a new route.
func (c *Client) master(ctx context.Context, broker, topic string) (BrokerAddr, error) {
	list, err := c.replicas(ctx, broker, topic)
	if err != nil {
		return BrokerAddr{}, err
	}
	if list[0].ID != masterID {
		c.routes.expedite(topic)
		return BrokerAddr{}, fmt.Errorf("%w: %s has no master at present, only replica %d at %s", ErrNoBroker, broker, list[0].ID, list[0].Addr)
	}
	return list[0], nil
}

// replicas lists a broker's addresses, master first; never empty without an error.
func (c *Client) replicas(ctx context.Context, broker, topic string) ([]BrokerAddr, error) {
	if err := c.running(); err != nil {
		return nil, err
	}
	if list := c.routes.broker(broker); len(list) > 0 {
		return list, nil
	}
	if topic != "" {
		c.routes.renew(ctx, topic)
	}
	if list := c.routes.broker(broker); len(list) > 0 {
		return list, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: no name server gives an address for broker %s", ErrNoBroker, broker)
}

func named(broker string) wire.Common { return wire.Common{BrokerName: wire.Some(broker)} }

func inQueue(q sdk.Queue, header wire.Request) request {
	return request{broker: q.Broker, topic: q.Topic, header: header}
}
