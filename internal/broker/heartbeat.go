package broker

import (
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onHeartbeat is 34.
func (b *Broker) onHeartbeat(r *remote.Request) *remote.Answer {
	var beat wire.HeartbeatData
	if bad := readBody(r, &beat); bad != nil {
		return bad
	}
	if beat.ClientID == "" {
		return plain(wire.RespSystemError, "the heartbeat names no clientID")
	}
	changed := beat.HeartbeatFingerprint == 0
	m := memberOf(r, beat.ClientID)
	for _, p := range beat.ProducerDataSet {
		if err := b.members.produce(p.GroupName, m); err != nil {
			return plain(wire.RespSystemBusy, err.Error())
		}
	}
	for _, c := range beat.ConsumerDataSet {
		needFull, err := b.beatOfConsumer(c, m, beat.WithoutSub)
		if err != nil {
			return plain(wire.RespSystemBusy, err.Error())
		}
		changed = changed || needFull
		if beat.HeartbeatFingerprint != 0 && b.members.fingerprint(c.GroupName, beat.HeartbeatFingerprint) {
			changed = true
		}
	}
	return headed(wire.RespSuccess, "",
		text("IS_SUPPORT_HEART_BEAT_V2", "true"), text("IS_SUB_CHANGE", strconv.FormatBool(changed)))
}

// beatOfConsumer registers one group of a heartbeat. It returns true when the shortened form came from a member that the
// broker does not know: it must then send the full one.
func (b *Broker) beatOfConsumer(c wire.ConsumerData, m member, withoutSub bool) (needFull bool, err error) {
	group, ok := b.groups.ensure(c.GroupName)
	if !ok {
		return false, nil
	}
	if group.RetryQueues > 0 {
		b.topics.ensure(wire.RetryTopic(c.GroupName), group.RetryQueues)
	}
	if withoutSub {
		return !b.members.refresh(c.GroupName, m), nil
	}
	changed, err := b.members.consume(c, m)
	if changed && group.NotifyConsumerIDsChangedEnable && c.MessageModel != wire.Broadcasting {
		b.notify([]string{c.GroupName})
	}
	return false, err
}

// notify sends 40 to all members of groups whose membership changed.
func (b *Broker) notify(groups []string) {
	for _, name := range groups {
		if g, ok := b.groups.get(name); ok && !g.NotifyConsumerIDsChangedEnable {
			continue
		}
		conns, model := b.members.conns(name)
		if model == wire.Broadcasting {
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
	body, err := wire.EncodeBody(wire.ConsumerList{ConsumerIDs: ids}, wire.Standard)
	if err != nil {
		return plain(wire.RespSystemError, err.Error())
	}
	a := headed(wire.RespSuccess, "")
	a.Body = body
	return a
}

// onCheckClient is 46: whether the broker can filter as the member wants. It is asked for SQL92 only.
func (b *Broker) onCheckClient(r *remote.Request) *remote.Answer {
	var body wire.CheckClientBody
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	s := body.SubscriptionData
	switch {
	case isTag(s.ExpressionType):
		return plain(wire.RespSuccess, "")
	case !isSQL(s.ExpressionType):
		return plain(wire.RespSystemError, unknownFilter(s.ExpressionType))
	}
	if _, err := b.expressions.get(s.SubString); err != nil {
		return plain(wire.RespSubscriptionParseFailed, "the filter of topic "+s.Topic+" cannot be parsed: "+err.Error())
	}
	return plain(wire.RespSuccess, "")
}
