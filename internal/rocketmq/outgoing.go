package rocketmq

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// outgoing is a message in the form it is sent in. It stays the same over all attempts, its UNIQ_KEY too.
type outgoing struct {
	topic      string
	queue      *sdk.Queue // fixed by the caller
	sharding   string
	id         string
	properties []byte
	body       []byte
	sysFlag    int32
	flag       int32
	timer      bool
	delayed    bool
	reconsumed wire.Opt[int32]
	limit      wire.Opt[int32]
	group      string           // of the transaction's producers; empty: Config.ProducerGroup
	half       bool             // of a transaction
	traced     *OutgoingMessage // set when Config.Sent wants to hear of it
}

// prepare checks m and puts it into its final form, but for compression. Errors wrap ErrInvalidMessage.
func (c *Client) prepare(m *OutgoingMessage) (*outgoing, error) {
	if err := checkMessage(m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	properties := c.propertiesOf(m)
	if keys, err := wire.JoinKeys(m.Keys); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	} else if keys != "" {
		properties[wire.PropKeys] = keys
	}
	text, err := propertyText(properties)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	o := &outgoing{
		topic: m.Topic, queue: m.Queue, sharding: m.ShardingKey, id: properties[wire.PropUniqueKey], properties: text,
		body: m.Body, flag: m.Flag, timer: isTimer(properties), delayed: properties[wire.PropDelayLevel] != "",
		reconsumed: headerCount(m.Topic, properties, wire.PropReconsumeTime),
		limit:      headerCount(m.Topic, properties, wire.PropMaxReconsumeTimes),
	}
	if m.Traced && c.cfg.Sent != nil {
		o.traced = m
	}
	return o, nil
}

func isTimer(properties map[string]string) bool {
	return properties[wire.PropTimerDelaySeconds] != "" || properties[wire.PropTimerDelayMillis] != "" || properties[wire.PropTimerDeliver] != ""
}

// headerCount takes a count of a send to a retry topic into the header; it stays in the properties too, as Java leaves it
// there (vectors/README.md 4.3).
func headerCount(topic string, properties map[string]string, name string) wire.Opt[int32] {
	n, err := strconv.ParseInt(properties[name], 10, 32)
	if !wire.IsRetryTopic(topic) || err != nil {
		return wire.Opt[int32]{}
	}
	return wire.Some(int32(n))
}

// CheckMessage tells what is wrong with a message that no Send takes, as far as the message itself shows it. The error wraps
// ErrInvalidMessage.
func CheckMessage(m *OutgoingMessage) error {
	err := checkMessage(m)
	if err == nil {
		_, err = wire.JoinKeys(m.Keys)
	}
	if err == nil && len(m.Properties) > 0 {
		_, err = propertyText(m.Properties)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	return nil
}

// checkMessage leaves a copy for a retry or dead-letter topic as it is: the message was stored once, and whatever a
// producer was allowed then (an empty body, a larger one than this client sends) has to be stored again.
func checkMessage(m *OutgoingMessage) error {
	again := wire.IsRetryTopic(m.Topic) || wire.IsDLQTopic(m.Topic)
	switch {
	case m.DelayLevel < 0 || m.DelayLevel > 18 && !again:
		return fmt.Errorf("delay level %d; there are 1 to 18", m.DelayLevel)
	case m.Delay < 0:
		return fmt.Errorf("delay %s is negative", m.Delay)
	case m.Delay > 0 && m.DelayLevel > 0:
		return fmt.Errorf("delay %s and delay level %d; give one of them", m.Delay, m.DelayLevel)
	case len(m.Body) == 0 && !again:
		return fmt.Errorf("empty body: brokers refuse it")
	case len(m.Body) > maxMessageSize && !again:
		return fmt.Errorf("body of %d bytes; brokers take up to %d", len(m.Body), maxMessageSize)
	case m.Queue != nil && m.Queue.Topic != m.Topic:
		return fmt.Errorf("queue %s is not of topic %s", m.Queue, m.Topic)
	case !wire.IsSendable(m.Topic):
		return fmt.Errorf("topic %s is RocketMQ's own: brokers take nothing for it", m.Topic)
	case wire.IsRetryTopic(m.Topic):
		return wire.ValidateGroup(strings.TrimPrefix(m.Topic, wire.RetryPrefix))
	case wire.IsDLQTopic(m.Topic):
		return wire.ValidateGroup(strings.TrimPrefix(m.Topic, wire.DLQPrefix))
	}
	return wire.ValidateTopic(m.Topic)
}

// propertiesOf merges the caller's properties with those that the message's fields stand for; the fields win.
func (c *Client) propertiesOf(m *OutgoingMessage) map[string]string {
	properties := make(map[string]string, len(m.Properties)+6)
	maps.Copy(properties, m.Properties)
	put := func(name, value string) {
		if value != "" {
			properties[name] = value
		}
	}
	put(wire.PropTags, m.Tag)
	put(wire.PropShardingKey, m.ShardingKey)
	if m.DelayLevel > 0 {
		put(wire.PropDelayLevel, strconv.Itoa(m.DelayLevel))
	}
	if m.Delay > 0 {
		put(wire.PropTimerDelayMillis, strconv.FormatInt(max(1, m.Delay.Milliseconds()), 10)) // relative: clocks differ
	}
	if properties[wire.PropUniqueKey] == "" {
		properties[wire.PropUniqueKey] = c.ids.Next(c.cfg.Now())
	}
	if properties[wire.PropWait] == "" {
		properties[wire.PropWait] = "true"
	}
	if c.cfg.Namespace != "" {
		put(wire.PropInstanceID, c.cfg.Namespace)
		put(wire.PropRetryTopic, c.wired(properties[wire.PropRetryTopic])) // of a copy: the topic that it came from
	}
	return properties
}

func propertyText(properties map[string]string) ([]byte, error) {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		var err error
		if text, err = wire.AppendProperty(text, name, properties[name]); err != nil {
			return nil, err
		}
	}
	if len(text) > wire.MaxProperties {
		return nil, fmt.Errorf("properties of %d bytes; brokers take up to %d", len(text), wire.MaxProperties)
	}
	return text, nil
}

// compress replaces the body by its zlib form when it is long and that is shorter: every reader knows zlib
// (remoting-protocol.md 7). Parts of a batch are not compressed. An empty body goes as what zlib makes of nothing: brokers
// refuse a frame without a body, and every reader gets the empty body back.
func (c *Client) compress(o *outgoing) error {
	if n := len(o.body); n > 0 && n <= c.cfg.CompressAbove {
		return nil
	}
	deflater, ok := c.deflaters.Get().(*wire.Deflater)
	if !ok {
		var err error
		if deflater, err = wire.NewDeflater(wire.CompressionZlib); err != nil {
			return err
		}
	}
	short, err := deflater.Append(nil, o.body)
	if err != nil {
		return err
	}
	c.deflaters.Put(deflater)
	if len(short) < len(o.body) || len(o.body) == 0 {
		o.body, o.sysFlag = short, o.sysFlag|wire.CompressionZlib.SysFlag()
	}
	return nil
}
