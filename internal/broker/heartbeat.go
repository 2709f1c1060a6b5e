package broker

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// heartbeat is the body of 34 (HeartbeatData; remoting-protocol.md 3.4).
type heartbeat struct {
	ClientID    string          `json:"clientID"`
	Consumers   []consumerEntry `json:"consumerDataSet"`
	Fingerprint int32           `json:"heartbeatFingerprint"`
	Producers   []producerEntry `json:"producerDataSet"`
	WithoutSub  bool            `json:"withoutSub"`
}

type producerEntry struct {
	Group string `json:"groupName"`
}

type consumerEntry struct {
	FromWhere     string         `json:"consumeFromWhere"`
	Type          string         `json:"consumeType"`
	Group         string         `json:"groupName"`
	Model         string         `json:"messageModel"`
	Subscriptions []subscription `json:"subscriptionDataSet"`
	UnitMode      bool           `json:"unitMode"`
}

// subscription is a topic with its filter as a member registers it (SubscriptionData).
type subscription struct {
	ClassFilter bool       `json:"classFilterMode"`
	Codes       []looseInt `json:"codeSet"`
	Type        string     `json:"expressionType"`
	Expression  string     `json:"subString"`
	Version     int64      `json:"subVersion"`
	Tags        []string   `json:"tagsSet"`
	Topic       string     `json:"topic"`
}

// looseInt reads a number that the Go client writes as text.
type looseInt int32

// UnmarshalJSON accepts 5 and "5".
func (n *looseInt) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 32)
	*n = looseInt(v) //nolint:gosec // 32 bits were asked for.
	return err
}

const modelBroadcasting = "BROADCASTING"

// onHeartbeat is 34.
func (b *Broker) onHeartbeat(r *remote.Request) *remote.Answer {
	var beat heartbeat
	if bad := readBody(r, &beat); bad != nil {
		return bad
	}
	if beat.ClientID == "" {
		return plain(wire.RespSystemError, "the heartbeat names no clientID")
	}
	changed := beat.Fingerprint == 0
	m := memberOf(r, beat.ClientID)
	for _, p := range beat.Producers {
		b.members.produce(p.Group, m)
	}
	for _, c := range beat.Consumers {
		if beat.Fingerprint != 0 && b.members.fingerprint(c.Group, beat.Fingerprint) {
			changed = true
		}
		changed = b.beatOfConsumer(c, m, beat.WithoutSub) || changed
	}
	return headed(wire.RespSuccess, "",
		text("IS_SUPPORT_HEART_BEAT_V2", "true"), text("IS_SUB_CHANGE", strconv.FormatBool(changed)))
}

// beatOfConsumer registers one group of a heartbeat. It returns true when the shortened form came from a member that the
// broker does not know: it must then send the full one.
func (b *Broker) beatOfConsumer(c consumerEntry, m member, withoutSub bool) (needFull bool) {
	group, ok := b.groups.ensure(c.Group)
	if !ok {
		return false
	}
	if group.RetryQueues > 0 {
		b.topics.ensure(wire.RetryTopic(c.Group), group.RetryQueues)
	}
	if withoutSub {
		return !b.members.refresh(c.Group, m)
	}
	if b.members.consume(c, m) && group.NotifyEnable && c.Model != modelBroadcasting {
		b.notify([]string{c.Group})
	}
	return false
}

// notify sends 40 to all members of groups whose membership changed.
func (b *Broker) notify(groups []string) {
	for _, name := range groups {
		if g, ok := b.groups.get(name); ok && !g.NotifyEnable {
			continue
		}
		conns, model := b.members.conns(name)
		if model == modelBroadcasting {
			continue
		}
		for _, c := range conns {
			c.Send(&wire.Command{
				Code: int32(wire.ReqNotifyConsumerIDsChanged), Ext: wire.Fields{text("consumerGroup", name)},
			})
		}
	}
}

// onUnregister is 35: always a success, also for a member that is not there.
func (b *Broker) onUnregister(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	if group := f.optional("producerGroup"); group != "" {
		b.members.leaveProducers(group, r.Conn)
	}
	if group := f.optional("consumerGroup"); group != "" && b.members.leave(group, r.Conn) {
		b.notify([]string{group})
	}
	return headed(wire.RespSuccess, "")
}

// onConsumerList is 38: code 1, not an empty list, when nobody is there.
func (b *Broker) onConsumerList(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	group := f.text("consumerGroup")
	if bad := f.bad(); bad != nil {
		return bad
	}
	ids := b.members.ids(group)
	if len(ids) == 0 {
		return headed(wire.RespSystemError, "no consumer for this group, "+group)
	}
	body, err := json.Marshal(struct {
		IDs []string `json:"consumerIdList"`
	}{ids})
	if err != nil {
		return plain(wire.RespSystemError, err.Error())
	}
	a := headed(wire.RespSuccess, "")
	a.Body = body
	return a
}

// onCheckClient is 46. SQL92 is off, as it is in RocketMQ by default (enablePropertyFilter=false).
func (b *Broker) onCheckClient(r *remote.Request) *remote.Answer {
	var body struct {
		Group        string       `json:"group"`
		Subscription subscription `json:"subscriptionData"`
	}
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	if isTag(body.Subscription.Type) {
		return plain(wire.RespSuccess, "")
	}
	return plain(wire.RespSystemError, noSQL(body.Subscription.Type))
}

func noSQL(expressionType string) string {
	return "The broker does not support consumer to filter message by " + expressionType
}
