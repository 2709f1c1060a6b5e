package broker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// replyTimeout is how long the one who asked may take to answer 326.
const replyTimeout = 3 * time.Second

// The properties of a reply that the broker reads and adds (remoting-protocol.md 2.6).
const (
	propReplyTo       = "REPLY_TO_CLIENT"
	propPushReplyTime = "PUSH_REPLY_TIME"
)

// onReply is 324 and 325: hands the answer to a request to the client that asked, and stores it. It is stored whether the
// client could be reached or not; the sender learns which (vectors/README.md 4.10).
func (b *Broker) onReply(r *remote.Request) *remote.Answer {
	s, bad := b.accept(r)
	if bad != nil {
		return bad
	}
	r.Keep()
	d := s.draft(r)
	if int64(len(d.body)) > b.tuned.maxBody.Load() || len(s.properties) > wire.MaxProperties {
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf(remarkTooLarge, b.tuned.maxBody.Load()))
	}
	d.properties.set(wire.PropRegion, b.config.Region)
	d.properties.set(wire.PropTraceOn, "true")
	client := d.properties.get(propReplyTo)
	if client == "" {
		return b.replied(d, "reply message properties["+propReplyTo+"] is null")
	}
	conn, ok := b.members.producerByID(client)
	if !ok {
		return b.replied(d, "push reply message fail, channel of <"+client+"> not found.")
	}
	conn.Call(b.pushReply(s, d), replyTimeout, func(a *wire.Command, err error) {
		fault := ""
		switch {
		case err != nil:
			fault = "push reply message to " + client + "fail. " + err.Error()
		case a.ResponseCode() != wire.RespSuccess:
			fault = "push reply message to " + client + "fail."
		}
		began := b.storage.mark()
		b.replyStored(r, b.replied(d, fault), began, func() {})
	})
	return nil
}

// replied stores a reply and answers its sender, with an error if the one who asked did not get it.
func (b *Broker) replied(d *draft, fault string) *remote.Answer {
	position, err := b.put(d)
	if err != nil {
		return b.cannotSend(err)
	}
	a := b.sent(d.queue, []store.Position{position}, "")
	if fault != "" {
		a.Code, a.Remark = wire.RespSystemError, fault
	}
	return a
}

// pushReply is 326.
func (b *Broker) pushReply(s sending, d *draft) *wire.Command {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	pushed := append(properties(nil), d.properties...)
	pushed.set(propPushReplyTime, now)
	return &wire.Command{Code: int32(wire.ReqPushReplyMessage), Ext: wire.Fields{
		text("producerGroup", s.group), text("topic", s.topic), text("defaultTopic", s.template),
		number("defaultTopicQueueNums", int64(s.templateQueues)), number("queueId", int64(s.queue)), number("sysFlag", int64(s.sysFlag)),
		number("bornTimestamp", s.born), number("flag", int64(s.flag)), text("properties", string(pushed.text())),
		number("reconsumeTimes", int64(s.reconsumed)), text("unitMode", strconv.FormatBool(s.unitMode)),
		text("bornHost", d.bornHost.String()), text("storeHost", b.storeHost().String()), text("storeTimestamp", now),
	}, Body: d.body}
}

// producerByID finds the connection of a client that sends; false when none with this id is there.
func (t *memberTable) producerByID(clientID string) (*remote.Conn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, members := range t.producers {
		for _, m := range members {
			if m.clientID == clientID {
				return m.conn, true
			}
		}
	}
	return nil, false
}
