package rocketmq

import (
	"context"
	"fmt"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// callbacks counts the callbacks that run, so that Close can wait for them.
type callbacks struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when running falls to zero; nil when nobody waits
}

func (k *callbacks) enter() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running++
}

func (k *callbacks) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running--
	if k.running == 0 && k.idle != nil {
		close(k.idle)
		k.idle = nil
	}
}

func (k *callbacks) drained(ctx context.Context) error {
	k.mu.Lock()
	if k.running == 0 {
		k.mu.Unlock()
		return nil
	}
	if k.idle == nil {
		k.idle = make(chan struct{})
	}
	idle := k.idle
	k.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for callbacks: %w", context.Cause(ctx))
	}
}

// serve answers what the broker at addr asks of this client (remoting-protocol.md 2.9). nil = "not supported".
func (c *Client) serve(ctx context.Context, addr string, req *wire.Command) *wire.Command {
	c.calls.enter()
	defer c.calls.leave()
	switch req.RequestCode() {
	case wire.ReqNotifyConsumerIDsChanged:
		return answer(c, req, &wire.NotifyConsumersRequest{}, c.membersChanged)
	case wire.ReqResetConsumerClientOffset:
		return answer(c, req, &wire.ResetClientRequest{}, c.offsetsReset)
	case wire.ReqGetConsumerStatusOfClient:
		return answer(c, req, &wire.ClientStatusRequest{}, c.consumerStatus)
	case wire.ReqGetConsumerRunningInfo:
		return answer(c, req, &wire.RunningInfoRequest{}, c.runningInfo)
	case wire.ReqConsumeDirectly:
		return answer(c, req, &wire.ConsumeDirectlyRequest{}, c.consumeDirectly)
	case wire.ReqCheckTransactionState:
		return answer(c, req, &wire.CheckTransactionRequest{}, func(req *wire.Command, h *wire.CheckTransactionRequest) *wire.Command {
			return c.transactionChecked(ctx, addr, req, h)
		})
	case wire.ReqPushReplyMessage:
		return wire.NewResponse(req, wire.RespSystemError, "no request of this client waits for a reply")
	default:
		c.log.Warn("refusing a request of a broker", "code", req.RequestCode().String())
		return nil
	}
}

// answer decodes a request's header and gives it to f.
func answer[H wire.Request](c *Client, req *wire.Command, header H, f func(*wire.Command, H) *wire.Command) *wire.Command {
	eachName(req.Ext, c.plain)
	if err := wire.DecodeFields(req.Ext, header); err != nil {
		c.log.Warn("a broker's request cannot be read", "code", req.RequestCode().String(), "error", err)
		return wire.NewResponse(req, wire.RespSystemError, err.Error())
	}
	return f(req, header)
}

func (c *Client) membersChanged(req *wire.Command, h *wire.NotifyConsumersRequest) *wire.Command {
	spec, ok := c.groups.get(h.Group)
	if !ok {
		return c.notMember(req, h.Group)
	}
	if spec.OnMembersChanged == nil {
		return nil
	}
	spec.OnMembersChanged()
	return wire.NewResponse(req, wire.RespSuccess, "")
}

func (c *Client) offsetsReset(req *wire.Command, h *wire.ResetClientRequest) *wire.Command {
	spec, ok := c.groups.get(h.Group)
	if !ok {
		return c.notMember(req, h.Group)
	}
	if spec.OnReset == nil {
		return nil
	}
	var body wire.ResetOffsetBody
	if err := wire.DecodeBody(req.Body, &body); err != nil {
		c.log.Warn("a broker's offset reset cannot be read", "group", h.Group, "topic", h.Topic, "error", err)
		return wire.NewResponse(req, wire.RespSystemError, err.Error())
	}
	offsets := make(map[sdk.Queue]int64, len(body.Offsets))
	for q, offset := range body.Offsets {
		offsets[c.plainQueue(q)] = offset
	}
	spec.OnReset(h.Topic, offsets)
	return wire.NewResponse(req, wire.RespSuccess, "")
}

func (c *Client) consumerStatus(req *wire.Command, h *wire.ClientStatusRequest) *wire.Command {
	spec, ok := c.groups.get(h.Group)
	if !ok {
		return c.notMember(req, h.Group)
	}
	if spec.ConsumerStatus == nil {
		return nil
	}
	body := &wire.ConsumerStatusBody{Consumers: map[string]wire.QueueTable[int64]{}, Queues: wire.QueueTable[int64]{}}
	for q, offset := range spec.ConsumerStatus(h.Topic) {
		body.Queues[c.wiredQueue(q)] = offset
	}
	return c.withBody(req, body)
}

func (c *Client) runningInfo(req *wire.Command, h *wire.RunningInfoRequest) *wire.Command {
	spec, ok := c.groups.get(h.Group)
	if !ok {
		return c.notMember(req, h.Group)
	}
	if spec.RunningInfo == nil {
		return nil
	}
	c.routes.recheck() // a member that knows more queues or brokers asks for those that it waits for
	info := spec.RunningInfo(h.Jstack)
	c.identify(info)
	return c.withBody(req, c.changed(info, c.wired))
}

func (c *Client) consumeDirectly(req *wire.Command, h *wire.ConsumeDirectlyRequest) *wire.Command {
	spec, ok := c.groups.get(h.Group)
	if !ok {
		return c.notMember(req, h.Group)
	}
	if spec.ConsumeDirectly == nil {
		return nil
	}
	var m wire.Message
	if _, err := m.Decode(req.Body); err != nil {
		return wire.NewResponse(req, wire.RespSystemError, fmt.Sprintf("reading the message: %v", err))
	}
	m.Topic = []byte(c.plain(string(m.Topic)))
	return c.withBody(req, spec.ConsumeDirectly(&m, h.Broker.Or("")))
}

func (c *Client) notMember(req *wire.Command, group string) *wire.Command {
	c.log.Debug("a broker asks for a group that is not joined", "group", group, "code", req.RequestCode().String())
	return wire.NewResponse(req, wire.RespSystemError, fmt.Sprintf("client %s is no member of group %s", c.cfg.ClientID, group))
}

// withBody answers with a body in fastjson's dialect, which tools of all versions read.
func (c *Client) withBody(req *wire.Command, body any) *wire.Command {
	text, err := wire.EncodeBody(body, wire.Fastjson)
	if err != nil {
		c.log.Error("encoding an answer to a broker", "code", req.RequestCode().String(), "error", err)
		return wire.NewResponse(req, wire.RespSystemError, err.Error())
	}
	resp := wire.NewResponse(req, wire.RespSuccess, "")
	resp.Body = text
	return resp
}

func queueOf(q wire.MessageQueue) sdk.Queue {
	return sdk.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID}
}

func messageQueue(q sdk.Queue) wire.MessageQueue {
	return wire.MessageQueue{BrokerName: q.Broker, QueueID: q.ID, Topic: q.Topic}
}
