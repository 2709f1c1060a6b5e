package broker

import (
	"fmt"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onResumeCheck is 323: begins anew to ask for the outcome of a transaction that was given up. The message is named by its
// offset id in the topic where such ones are kept.
func (b *Broker) onResumeCheck(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	id := f.text("msgId")
	if bad := f.bad(); bad != nil {
		return bad
	}
	_, offset, err := wire.ParseOffsetID(id)
	if err != nil {
		return plain(wire.RespSystemError, err.Error())
	}
	m, ok := b.lookup(offset)
	if !ok || string(m.Topic) != wire.TransCheckMaxTopic {
		return plain(wire.RespSystemError, fmt.Sprintf("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed: %s is no message of %s",
			id, wire.TransCheckMaxTopic))
	}
	d := draftOf(m)
	d.properties.set(propCheckTimes, "0")
	d.topic, d.queue = wire.HalfTopic, 0
	position, err := b.put(d)
	if err != nil {
		return b.cannotStore(err)
	}
	b.halves.add(position.LogOffset)
	return plain(wire.RespSuccess, "")
}
