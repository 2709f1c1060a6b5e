package rocketmq

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Send stores one message and waits for the broker's word. After a failure that another broker may not have
// (remoting-protocol.md 2.2) it tries again, up to Config.SendRetries times, with the same UNIQ_KEY: at another broker, or
// at the same queue when the caller or a sharding key fixes it. An attempt whose outcome is unknown may have stored the
// message, so a retried message can be there twice.
//
// A result without an error is stored; any Status but SendOK says with less certainty than configured. Errors:
// ErrInvalidMessage and ErrUnsupported for the message, else the last attempt's (see IsRetriable, IsUnknownOutcome).
func (c *Client) Send(ctx context.Context, m *OutgoingMessage) (SendResult, error) {
	o, err := c.prepare(m)
	if err == nil {
		err = c.compress(o)
	}
	if err != nil {
		return SendResult{}, fmt.Errorf("sending to topic %s: %w", m.Topic, err)
	}
	results, err := c.sendParts(ctx, []*outgoing{o})
	if err != nil {
		return SendResult{}, fmt.Errorf("sending message %s to topic %s: %w", o.id, o.topic, err)
	}
	return results[0], nil
}

// sendParts sends one message, or several in one batch, with retries.
func (c *Client) sendParts(ctx context.Context, parts []*outgoing) ([]SendResult, error) {
	tried := map[string]bool{}
	uncertain := false // an earlier attempt may have stored the message
	failed := func(err error) ([]SendResult, error) {
		if uncertain {
			err = &uncertainError{err}
		}
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		to, err := c.place(ctx, parts[0], tried)
		if err != nil {
			return failed(err)
		}
		results, err := c.sendOnce(ctx, to, parts, attempt)
		c.avoided.note(to.queue.Broker, c.cfg.Now(), err)
		if err == nil {
			return results, nil
		}
		k := classify(err)
		again := k.elsewhere || k.retriable
		if attempt >= c.cfg.SendRetries || ctx.Err() != nil || !again || parts[0].half && IsUnknownOutcome(err) {
			return failed(err)
		}
		if (to.fixed || to.alone) && c.pauseBefore(ctx, attempt+1) != nil {
			return failed(err)
		}
		uncertain = uncertain || IsUnknownOutcome(err)
		tried[to.queue.Broker] = true
	}
}

// pauseBefore keeps repeated attempts at one broker apart.
func (c *Client) pauseBefore(ctx context.Context, attempt int) error {
	timer := time.NewTimer(backoff(attempt, c.cfg.BackoffMin, c.cfg.BackoffMax, c.cfg.Rand))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sendOnce makes one attempt. The four codes that mean "stored" become statuses.
func (c *Client) sendOnce(ctx context.Context, to place, parts []*outgoing, attempt int) ([]SendResult, error) {
	broker, err := c.master(ctx, to.queue.Broker, to.queue.Topic)
	if err != nil {
		return nil, err
	}
	if v := c.Version(to.queue.Broker); parts[0].timer && v != 0 && v < int32(wire.Version5_0_0) {
		return nil, fmt.Errorf("%w: broker %s (%s) would deliver a delayed message at once; use a delay level", ErrUnsupported, broker.Name, wire.Version(v))
	}
	r, err := c.sendRequest(to, parts)
	if err != nil {
		return nil, err
	}
	r.fast = !to.fixed && !to.alone && attempt < c.cfg.SendRetries
	began := c.cfg.Now()
	reply, err := c.send(ctx, broker, r)
	if err != nil {
		return nil, err
	}
	defer reply.Release()
	status, ok := sendStatus(reply.ResponseCode())
	if !ok {
		return nil, c.note(c.responseError(r, broker, reply), r.topic)
	}
	var h wire.SendResponse
	if err := decodeHeader(r.header.RequestCode(), broker.Name, reply, &h); err != nil {
		return nil, err
	}
	results := sendResults(to.queue, parts, status, &h)
	c.traceSent(broker, parts, results, began)
	return results, nil
}

// traceSent has RocketMQ's own trace know what was stored.
func (c *Client) traceSent(broker BrokerAddr, parts []*outgoing, results []SendResult, began time.Time) {
	for i, o := range parts {
		if o.traced == nil {
			continue
		}
		c.cfg.Sent(&SentMessage{
			Message: o.traced, Result: results[i], ProducerGroup: c.producerGroup(o), Addr: broker.Addr, Bytes: len(o.body), Began: began,
			Took: c.cfg.Now().Sub(began) / time.Duration(len(parts)), Half: o.half, Delayed: o.timer || o.delayed,
		})
	}
}

// producerGroup is the group that a message is sent as. What goes to a retry topic is sent as the group whose it is: access
// control, of 4.x and 5.x alike, asks there for Sub on the group that the sender names, whatever the topic is.
func (c *Client) producerGroup(o *outgoing) string {
	if o.group != "" {
		return o.group
	}
	if group, retry := strings.CutPrefix(o.topic, wire.RetryPrefix); retry {
		return group
	}
	return c.cfg.ProducerGroup
}

func sendStatus(code wire.ResponseCode) (SendStatus, bool) {
	switch code {
	case wire.RespSuccess:
		return SendOK, true
	case wire.RespFlushDiskTimeout:
		return SendFlushDiskTimeout, true
	case wire.RespFlushSlaveTimeout:
		return SendFlushSlaveTimeout, true
	case wire.RespSlaveNotAvailable:
		return SendSlaveNotAvailable, true
	default:
		return 0, false
	}
}

func (c *Client) sendRequest(to place, parts []*outgoing) (request, error) {
	first := parts[0]
	h := &wire.SendRequest{
		Op: wire.ReqSendMessageV2, ProducerGroup: c.producerGroup(first), Topic: first.topic, DefaultTopic: wire.DefaultTopic,
		DefaultQueues: to.defaultQueues, QueueID: to.queue.ID, SysFlag: first.sysFlag, BornMillis: c.cfg.Now().UnixMilli(),
		Flag: first.flag, Properties: wire.Some(string(first.properties)), ReconsumeTimes: wire.Some(first.reconsumed.Or(0)),
		UnitMode: wire.Some(false), MaxReconsumeTimes: first.limit, Batch: wire.Some(len(parts) > 1), Common: named(to.queue.Broker),
	}
	r := inQueue(to.queue, h)
	if r.body = first.body; len(parts) == 1 {
		return r, nil
	}
	// The batch as a whole gets no UNIQ_KEY: a 5.x broker would append it to every part, and readers take the last one
	// (vectors/README.md 4.1).
	h.Op, h.Flag, h.SysFlag, h.Properties = wire.ReqSendBatchMessage, 0, 0, wire.Some("WAIT\x01true\x02")
	body, err := batchBody(parts)
	r.body = body
	return r, err
}

func batchBody(parts []*outgoing) ([]byte, error) {
	size := 0
	for _, o := range parts {
		size += o.batchSize()
	}
	body := make([]byte, 0, size)
	for _, o := range parts {
		var err error
		part := wire.BatchPart{Flag: o.flag, Body: o.body, Properties: o.properties}
		if body, err = part.Append(body); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
		}
	}
	return body, nil
}

func sendResults(to sdk.Queue, parts []*outgoing, status SendStatus, h *wire.SendResponse) []SendResult {
	offsetIDs := strings.Split(h.OffsetMessageID, ",")
	results := make([]SendResult, len(parts))
	for i, o := range parts {
		results[i] = SendResult{
			Status: status, MessageID: o.id, Offset: h.QueueOffset + int64(i),
			Queue: sdk.Queue{Topic: to.Topic, Broker: to.Broker, ID: h.QueueID}, TransactionID: h.TransactionID.Or(""),
			Region: h.Region.Or(""), TraceOff: h.TraceOn.Or("") == "false",
		}
		if i < len(offsetIDs) {
			results[i].OffsetMessageID = offsetIDs[i]
		}
	}
	return results
}
