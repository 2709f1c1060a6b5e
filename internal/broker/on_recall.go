package broker

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// recallHandle names a timer message that may be recalled: URL-safe base64 of "v1 topic broker due id"
// (RecallMessageHandle; remoting-protocol.md 2.11).
type recallHandle struct {
	topic, broker string
	due           int64 // milliseconds: one more than the message's TIMER_OUT_MS
	id            string
}

func (h recallHandle) String() string {
	return base64.URLEncoding.EncodeToString([]byte(strings.Join(
		[]string{"v1", h.topic, h.broker, strconv.FormatInt(h.due, 10), h.id}, " ")))
}

var errHandle = errors.New("recall handle is invalid")

func parseRecallHandle(text string) (h recallHandle, err error) {
	plain, err := base64.URLEncoding.DecodeString(text)
	if err != nil {
		return h, errHandle
	}
	parts := strings.Split(string(plain), " ")
	if len(parts) != 5 || parts[0] != "v1" {
		return h, errHandle
	}
	h = recallHandle{topic: parts[1], broker: parts[2], id: parts[4]}
	if h.due, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return h, errHandle
	}
	return h, nil
}

// handleOf is the recall handle of a message that was sent to the timer, "" of any other.
func (b *Broker) handleOf(d *draft) string {
	out, err := strconv.ParseInt(d.properties.get(wire.PropTimerOut), 10, 64)
	if d.topic != wire.TimerTopic || err != nil {
		return ""
	}
	return recallHandle{
		topic: d.properties.get(wire.PropRealTopic), broker: b.config.Name, due: out + 1, id: d.properties.get(wire.PropUniqueKey),
	}.String()
}

// onRecall is 370: takes a timer message back. As in RocketMQ success does not say that it was still waiting.
func (b *Broker) onRecall(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, text64 := f.text("topic"), f.text("recallHandle")
	if bad := f.bad(); bad != nil {
		return bad
	}
	region := text(wire.PropRegion, b.config.Region)
	if _, ok := b.topics.get(topic); !ok {
		return headed(wire.RespTopicNotExist, "recall failed, the topic["+topic+"] not exist", region)
	}
	h, err := parseRecallHandle(text64)
	left := h.due - b.storage.now()
	switch {
	case err != nil:
		return headed(wire.RespIllegalOperation, err.Error(), region)
	case h.topic != topic:
		return headed(wire.RespIllegalOperation, "recall failed, topic not match", region)
	case h.broker != b.config.Name:
		return headed(wire.RespIllegalOperation, "recall failed, broker service not available", region)
	case left <= 0 || left >= maxTimerDelay.Milliseconds():
		return headed(wire.RespIllegalOperation, "recall failed, timestamp invalid", region)
	}
	if err := b.recall(h); err != nil {
		return headed(wire.RespSystemError, "recall failed, execute error: "+err.Error(), region)
	}
	b.changes.happened()
	return headed(wire.RespSuccess, unset, region, text("msgId", h.id))
}

// recall removes the message that a handle names, if it still waits. The handle's time is the start of the second, rounded
// as RocketMQ rounds, in which the message is due.
func (b *Broker) recall(h recallHandle) error {
	var fault error
	var m wire.Message
	e, found, err := b.storage.findScheduled(h.due, h.due+timerTick, func(raw []byte) bool {
		if _, fault = m.Decode(raw); fault != nil {
			return true
		}
		realTopic, _ := m.Property(wire.PropRealTopic)
		return m.UniqueKey() == h.id && string(realTopic) == h.topic
	})
	if err = errors.Join(err, fault); err != nil || !found {
		return err
	}
	e.Topic, e.Keys = string(m.Topic), indexKeys(m.Properties)
	b.delays.recalling(e.LogOffset, 1)
	ended := func(error) { b.delays.recalling(e.LogOffset, -1) }
	if err := b.storage.submit(&store.Change{Unschedule: []store.Scheduled{e}}, ended); err != nil {
		ended(err)
		return err
	}
	return nil
}
