package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Heartbeat tells every known broker, masters and replicas, which groups this client is a member of, now. The error joins
// those of the brokers that could not be told; the others were.
func (c *Client) Heartbeat(ctx context.Context) error {
	if err := c.running(); err != nil {
		return err
	}
	return errors.Join(c.beatAll(ctx)...)
}

// beatAll heartbeats to every known broker and returns a result for each.
func (c *Client) beatAll(ctx context.Context) []error {
	return forEach(c.routes.all(), func(to BrokerAddr) error {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
		defer cancel()
		one, err := c.brokers.peer(to.Addr)
		if err != nil {
			return err
		}
		conn, err := one.get(ctx, true)
		if err == nil {
			err = c.beat(ctx, one, conn)
		}
		if err != nil {
			return fmt.Errorf("heartbeating to broker %s (replica %d): %w", to.Name, to.ID, err)
		}
		return nil
	})
}

func (c *Client) heartbeatLoop() {
	tick := time.NewTicker(c.cfg.HeartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			for _, err := range c.beatAll(c.ctx) {
				if err != nil && c.ctx.Err() == nil {
					c.log.Warn("heartbeat not delivered", "error", err)
				}
			}
		}
	}
}

// hello introduces this client on a new connection before anybody uses it. A refusal is logged, not fatal: the connection
// works, and the heartbeat is repeated.
func (c *Client) hello(ctx context.Context, one *peer, conn *remoting.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	err := c.beat(ctx, one, conn)
	if _, refused := errors.AsType[*ResponseError](err); refused {
		c.log.Warn("heartbeat refused", "error", err)
		return nil
	}
	return err
}

// tell sends one heartbeat and takes note of the broker's version (consumer-semantics.md 9.2).
func (c *Client) tell(ctx context.Context, one *peer, conn *remoting.Conn, specs []GroupSpec) error {
	data, err := c.heartbeatData(specs)
	if err != nil {
		return err
	}
	body, full, err := c.heartbeatBody(data, one, conn)
	if err != nil {
		return err
	}
	r := request{header: &wire.PlainRequest{Op: wire.ReqHeartbeat}, body: body}
	reply, err := call(ctx, conn, r)
	if err != nil {
		return err
	}
	version := reply.Version
	if err := c.refusal(r, BrokerAddr{Addr: one.addr}, reply); err != nil {
		return err
	}
	if c.cfg.ShortHeartbeats {
		one.told.took(conn, full, reply.Ext)
	}
	reply.Release()
	one.version.Store(version)
	for _, consumer := range data.ConsumerDataSet {
		for _, s := range consumer.SubscriptionDataSet {
			one.advertised.set(consumer.GroupName, s.Topic, s.SubVersion)
		}
	}
	return nil
}

// heartbeatBody is the body of a heartbeat, and where heartbeats may be short its full form.
func (c *Client) heartbeatBody(data *wire.HeartbeatData, to *peer, on *remoting.Conn) (body []byte, full string, err error) {
	data = c.wiredHeartbeat(data)
	if c.cfg.ShortHeartbeats {
		return to.told.encode(on, data)
	}
	body, err = wire.EncodeBody(data, wire.Standard)
	return body, "", err
}

func (c *Client) heartbeatData(specs []GroupSpec) (*wire.HeartbeatData, error) {
	data := &wire.HeartbeatData{
		ClientID: c.cfg.ClientID, ConsumerDataSet: []wire.ConsumerData{},
		ProducerDataSet: c.producerData(),
	}
	for _, spec := range specs {
		consumer, err := consumerData(spec)
		if err != nil {
			return nil, fmt.Errorf("making the heartbeat of group %s: %w", spec.Name, err)
		}
		data.ConsumerDataSet = append(data.ConsumerDataSet, consumer)
	}
	return data, nil
}

func consumerData(spec GroupSpec) (wire.ConsumerData, error) {
	subscriptions, err := subscriptionData(spec)
	if err != nil {
		return wire.ConsumerData{}, err
	}
	model := wire.Clustering
	if spec.Broadcasting {
		model = wire.Broadcasting
	}
	return wire.ConsumerData{
		ConsumeFromWhere: wire.ConsumeFromWhere(spec.FromWhere), ConsumeType: wire.ConsumePassively,
		GroupName: spec.Name, MessageModel: model, SubscriptionDataSet: subscriptions,
	}, nil
}

// subscriptionData lists a group's subscriptions. The retry topic of a clustering group belongs to them: brokers make it
// on the heartbeat, and Java's tools compare members by it. It is added when the spec leaves it out.
func subscriptionData(spec GroupSpec) ([]wire.SubscriptionData, error) {
	list := []wire.SubscriptionData{}
	retry := wire.RetryTopic(spec.Name)
	listed, newest := spec.Broadcasting, int64(0)
	for _, s := range spec.Subscriptions() {
		data, err := s.data()
		if err != nil {
			return nil, err
		}
		list = append(list, data)
		listed = listed || s.Topic == retry
		newest = max(newest, s.Version)
	}
	if !listed {
		data, err := wire.NewSubscriptionData(retry, wire.ExpressionTag, wire.AllTags, newest)
		if err != nil {
			return nil, err
		}
		list = append(list, data)
	}
	return list, nil
}

// data is the subscription as heartbeats tell it. That of another member is passed on as it is: an expression that is refused
// here would keep all groups of this client from being told.
func (s *Subscription) data() (wire.SubscriptionData, error) {
	if s.Foreign {
		return wire.ToldSubscriptionData(s.Topic, string(s.Type), s.Expression, s.Version), nil
	}
	return wire.NewSubscriptionData(s.Topic, string(s.Type), s.Expression, s.Version) //nolint:wrapcheck // names topic and expression
}

// brokerProbe asks nothing of a broker but a sign of life: a heartbeat without groups changes nothing there.
func (c *Client) brokerProbe() *wire.Command {
	body, err := wire.EncodeBody(&wire.HeartbeatData{
		ClientID: c.cfg.ClientID, ConsumerDataSet: []wire.ConsumerData{}, ProducerDataSet: []wire.ProducerData{},
	}, wire.Standard)
	if err != nil {
		c.log.Error("encoding the probe", "error", err) // any answer will do, that to a bad body too
	}
	return wire.NewRequest(&wire.PlainRequest{Op: wire.ReqHeartbeat}, body)
}

// Version is the version that a broker's master last reported (an ordinal of wire.Version); 0 = unknown yet.
func (c *Client) Version(broker string) int32 {
	for _, to := range c.routes.broker(broker) {
		if one := c.brokers.known(to.Addr); one != nil {
			if v := one.version.Load(); v != 0 {
				return v
			}
		}
	}
	return 0
}
