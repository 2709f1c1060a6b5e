package broker

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Refusals in RocketMQ's words.
const (
	remarkTooLarge = "the message is illegal, maybe msg body or properties length not matched. " +
		"msg body length limit %dB, msg properties length limit 32KB."
	remarkNoTopic     = "topic[%s] not exist, apply first please!" + faq
	remarkNotSendable = "Sending message to topic[%s] is forbidden."
	remarkNoGroup     = "subscription group not exist, %s" + faq
)

// sending is the header of 10, 310, 320, 324 and 325 (remoting-protocol.md 2.6).
type sending struct {
	group              string // of the producer
	topic, template    string
	templateQueues     int32
	queue              int32
	sysFlag, flag      int32
	born               int64
	properties         string
	reconsumed, maxRec int32 // maxRec −1 = not given
	batch, unitMode    bool
}

// draft is the message that a request for one message carries.
func (s sending) draft(r *remote.Request) *draft {
	return &draft{
		topic: s.topic, queue: s.queue, flag: s.flag, sysFlag: s.sysFlag, born: s.born, bornHost: r.Conn.Remote(),
		reconsumed: s.reconsumed, body: r.Command.Body, properties: parseProperties([]byte(s.properties)),
	}
}

// readSending reads the long names of 10 and 324, or the letters of the others.
func readSending(r *remote.Request) (sending, error) {
	f := fieldsOf(r)
	name := func(letter, long string) string {
		if c := r.Command.RequestCode(); c == wire.ReqSendMessage || c == wire.ReqSendReplyMessage {
			return long
		}
		return letter
	}
	s := sending{
		group:          f.optional(name("a", "producerGroup")),
		topic:          f.text(name("b", "topic")),
		template:       f.optional(name("c", "defaultTopic")),
		templateQueues: f.int32Or(name("d", "defaultTopicQueueNums"), 4),
		queue:          f.int32(name("e", "queueId")),
		sysFlag:        f.int32Or(name("f", "sysFlag"), 0),
		born:           f.int64Or(name("g", "bornTimestamp"), time.Now().UnixMilli()),
		flag:           f.int32Or(name("h", "flag"), 0),
		properties:     f.optional(name("i", "properties")),
		reconsumed:     f.int32Or(name("j", "reconsumeTimes"), 0),
		maxRec:         f.int32Or(name("l", "maxReconsumeTimes"), -1),
		batch:          f.flag(name("m", "batch"), false),
		unitMode:       f.flag(name("k", "unitMode"), false),
	}
	return s, f.err
}

// accept reads a request that brings a message, checks it, and chooses a queue where the sender left that open.
func (b *Broker) accept(r *remote.Request) (sending, *remote.Answer) {
	s, err := readSending(r)
	if err != nil {
		return s, plain(wire.RespSystemError, err.Error())
	}
	if len(r.Command.Body) == 0 {
		return s, plain(wire.RespSystemError, "the request has no body")
	}
	c, bad := b.checkSend(r, &s)
	if bad != nil || s.queue >= 0 {
		return s, bad
	}
	if c.WriteQueues <= 0 {
		return s, plain(wire.RespSystemError, "the topic "+s.topic+" has no queue to write to") // Nobody would read what lies in queue 0.
	}
	s.queue = rand.Int32N(c.WriteQueues)
	return s, nil
}

// onSend is 10, 310 and 320. Whether the body is a batch is said by a field, not by the code.
func (b *Broker) onSend(r *remote.Request) *remote.Answer {
	s, bad := b.accept(r)
	if bad != nil {
		return bad
	}
	if s.batch {
		return b.sendBatch(r, s)
	}
	return b.sendOne(r, s)
}

// checkSend finds or makes the topic. As in 5.3.3 its write permission is not looked at (vectors/README.md 4.9).
func (b *Broker) checkSend(r *remote.Request, s *sending) (wire.TopicConfig, *remote.Answer) {
	if b.tuned.permission.Load()&wire.PermWrite == 0 {
		return wire.TopicConfig{}, b.refuseSend(wire.RespNoPermission, "the broker["+b.Address()+"] sending message is forbidden")
	}
	if fault := topicNameFault(s.topic); fault != "" {
		return wire.TopicConfig{}, b.refuseSend(wire.RespInvalidParameter, fault)
	}
	if !wire.IsSendable(s.topic) {
		return wire.TopicConfig{}, b.refuseSend(wire.RespNoPermission, fmt.Sprintf(remarkNotSendable, s.topic))
	}
	c, ok := b.topics.forSend(s.topic, s.template, s.templateQueues)
	if !ok && wire.IsRetryTopic(s.topic) && !b.topics.full() {
		c, ok = b.topics.ensure(s.topic, 1), true
	}
	if !ok {
		return wire.TopicConfig{}, b.refuseSend(wire.RespTopicNotExist, fmt.Sprintf(remarkNoTopic, s.topic))
	}
	if s.queue >= max(c.ReadQueues, c.WriteQueues) {
		return wire.TopicConfig{}, b.refuseSend(wire.RespInvalidParameter, fmt.Sprintf(
			"request queueId[%d] is illegal, TopicConfig [topicName=%s, readQueueNums=%d, writeQueueNums=%d, perm=%s, "+
				"topicFilterType=%s, topicSysFlag=%d, order=%t, attributes={}] Producer: %s", s.queue, c.Name, c.ReadQueues,
			c.WriteQueues, permText(c.Perm), c.FilterType, c.TopicSysFlag, c.Order, r.Conn.Remote()))
	}
	return c, nil
}

// refuseSend is an error answer to a send; it has a header class whose region and trace switch are always set.
func (b *Broker) refuseSend(c wire.ResponseCode, remark string) *remote.Answer {
	b.counters.refused.Add(1)
	return headed(c, remark, text(wire.PropRegion, b.config.Region), text(wire.PropTraceOn, "true"))
}

func (b *Broker) sendOne(r *remote.Request, s sending) *remote.Answer {
	d := s.draft(r)
	if bad := b.checkOne(r, s, d); bad != nil {
		return bad
	}
	b.mark(&d.properties)
	d.properties.remove("POP_CK")
	if d.properties.get(wire.PropUniqueKey) == "" {
		d.properties.set(wire.PropUniqueKey, b.newUniqueKey())
	}
	if len(d.properties.text()) > wire.MaxProperties {
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf(remarkTooLarge, b.tuned.maxBody.Load()))
	}
	isHalf := strings.EqualFold(d.properties.get(wire.PropHalfMessage), "true")
	if isHalf {
		d.toHalf()
	}
	// put may move the message to another topic; the answer speaks of where the client sent it.
	unique := d.properties.get(wire.PropUniqueKey)
	position, err := b.put(d)
	if err != nil {
		return b.cannotSend(err)
	}
	if isHalf {
		b.halves.add(position.LogOffset)
	}
	b.counters.put(b.config.Cluster, s.topic, 1, d.size)
	a := b.sent(s.queue, []store.Position{position}, unique)
	if handle := b.handleOf(d); handle != "" {
		a.Ext = append(a.Ext, text("recallHandle", handle))
	}
	return a
}

// checkOne holds the refusals that concern single messages.
func (b *Broker) checkOne(r *remote.Request, s sending, d *draft) *remote.Answer {
	if int64(len(d.body)) > b.tuned.maxBody.Load() {
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf(remarkTooLarge, b.tuned.maxBody.Load()))
	}
	now := b.storage.now()
	if level := d.properties.get(wire.PropDelayLevel); level != "" {
		if _, err := strconv.Atoi(level); err != nil {
			return plain(wire.RespSystemError, "the delay level "+strconv.Quote(level)+" is no number")
		}
	}
	if due, ok := timerDue(d.properties, now); timerFault(d.properties) || ok && due-now > maxTimerDelay.Milliseconds() {
		return b.refuseSend(wire.RespMessageIllegal, remarkTimer)
	}
	if wire.IsRetryTopic(s.topic) {
		return b.divertRetry(r, s, d)
	}
	return nil
}

// divertRetry dead-letters a message that a client sends to a retry topic itself, when its attempts are used up or the
// group holds a queue lock: the broker takes that for an orderly consumer that gave up (consumer-semantics.md 8.1).
func (b *Broker) divertRetry(r *remote.Request, s sending, d *draft) *remote.Answer {
	name := strings.TrimPrefix(s.topic, wire.RetryPrefix)
	group, ok := b.groups.ensure(name)
	if !ok {
		return b.refuseSend(wire.RespGroupNotExist, fmt.Sprintf(remarkNoGroup, name))
	}
	limit := group.RetryMaxTimes
	if s.maxRec >= 0 && wire.Version(r.Command.Version) >= wire.Version3_4_9 {
		limit = s.maxRec
	}
	if s.reconsumed <= limit && !b.locks.anyLive(name) {
		return nil
	}
	d.topic, d.queue = wire.DLQTopic(name), 0
	b.topics.ensure(d.topic, 1)
	d.properties.set(wire.PropDelayLevel, "-1")
	return nil
}

// mark adds what a 5.3.3 broker adds to each message.
func (b *Broker) mark(p *properties) {
	p.set(wire.PropRegion, b.config.Region)
	p.set(wire.PropTraceOn, "true")
	p.set(wire.PropCluster, b.config.Cluster)
}

// sent is the answer to a send that was stored.
func (b *Broker) sent(queue int32, positions []store.Position, unique string) *remote.Answer {
	a := headed(wire.RespSuccess, "",
		text("msgId", b.offsetIDs(positions)),
		number("queueId", int64(queue)),
		number("queueOffset", positions[0].QueueOffset),
		text(wire.PropRegion, b.config.Region),
		text(wire.PropTraceOn, "true"),
	)
	if unique != "" {
		a.Ext = append(a.Ext, text("transactionId", unique))
	}
	return a
}
