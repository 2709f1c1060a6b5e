package broker

import (
	"fmt"
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onEndTransaction is 37. An outcome that is unknown yet is not answered, as in RocketMQ.
func (b *Broker) onEndTransaction(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	group, outcome := f.text("producerGroup"), f.int32("commitOrRollback")
	offset, halfOffset := f.int64("commitLogOffset"), f.int64("tranStateTableOffset")
	if bad := f.bad(); bad != nil {
		return bad
	}
	switch outcome {
	case wire.SysFlagCommit, wire.SysFlagRollback:
	case 0:
		return nil
	default:
		return plain(wire.RespSystemError, fmt.Sprintf("commitOrRollback is %d: it is 8 for commit, 12 for roll back, 0 for neither yet", outcome))
	}
	m, ok := b.lookup(offset)
	if !ok || string(m.Topic) != wire.HalfTopic {
		return plain(wire.RespSystemError, "Find prepared transaction message failed")
	}
	switch owner, _ := m.Property(wire.PropProducerGroup); {
	case string(owner) != group:
		return plain(wire.RespSystemError, "The producer group wrong")
	case m.QueueOffset != halfOffset:
		return plain(wire.RespSystemError, "The transaction state table offset wrong")
	}
	if b.halves.end(offset) {
		if err := b.endHalf(m, outcome); err != nil {
			b.halves.add(offset) // It is open still, and its end is asked for again.
			return b.cannotStore(err)
		}
	}
	return plain(wire.RespSuccess, unset)
}

// endHalf ends a transaction; by a commit the half message is stored where it was meant to go, by the same change.
func (b *Broker) endHalf(m *wire.Message, outcome int32) error {
	w := b.newWrite()
	w.change.EndHalves = []int64{m.LogOffset}
	if outcome == wire.SysFlagRollback {
		return w.submit()
	}
	d, err := fromHalf(m)
	if err != nil {
		return err
	}
	d.sysFlag |= wire.SysFlagCommit
	d.prepared = m.LogOffset
	_, err = b.putIn(w, d)
	return err
}

// checkTransaction is 39: asks one producer of the group how its transaction ended.
func (b *Broker) checkTransaction(offset int64, times int) {
	m, ok := b.lookup(offset)
	if !ok {
		return
	}
	group, _ := m.Property(wire.PropProducerGroup)
	producers := b.members.producer(string(group))
	if len(producers) == 0 {
		return // Asked again later: nobody is there who knows.
	}
	d, err := fromHalf(m)
	if err != nil {
		b.config.Logger.Error("checking a transaction", "error", err.Error())
		return
	}
	d.properties.set(propCheckTimes, strconv.Itoa(times))
	d.properties.set(wire.PropWait, "false")
	copied := *m
	copied.Topic, copied.QueueID, copied.Properties = []byte(d.topic), d.queue, d.properties.text()
	body, err := copied.Append(nil)
	if err != nil {
		b.config.Logger.Error("checking a transaction", "error", err.Error())
		return
	}
	producers[times%len(producers)].conn.Send(&wire.Command{
		Code: int32(wire.ReqCheckTransactionState),
		Ext: wire.Fields{
			text("topic", wire.HalfTopic), text("bname", b.config.Name), number("tranStateTableOffset", m.QueueOffset),
			number("commitLogOffset", m.LogOffset), text("msgId", m.UniqueKey()), text("transactionId", m.UniqueKey()),
			text("offsetMsgId", m.OffsetID()),
		},
		Body: body,
	})
}

// abandonTransaction keeps a half message that nobody could say anything of in a topic of its own.
func (b *Broker) abandonTransaction(offset int64) {
	m, ok := b.lookup(offset)
	if !ok {
		return
	}
	d := draftOf(m)
	d.topic, d.queue = wire.TransCheckMaxTopic, 0
	w := b.newWrite()
	w.change.EndHalves = []int64{offset}
	if _, err := b.putIn(w, d); err != nil {
		b.halves.add(offset)
		b.config.Logger.Error("giving up a transaction", "error", err.Error())
	}
}
