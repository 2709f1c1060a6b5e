package queue

import (
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Part tells of a message that was stored inside of a batch (a topic with queue.type=BatchCQ): where the batch stands.
type Part struct {
	Index  int   // in the batch, from 0
	holds  int64 // the offset that stays committed until the whole batch is settled
	origin []byte
}

// isBatch tells whether Java's client would unwrap the message (PullAPIWrapper.processPullResult).
func isBatch(m *wire.Message) bool {
	const both = wire.SysFlagInnerBatch | wire.SysFlagNeedUnwrap
	return m.SysFlag&both == both
}

// unwrap takes the messages of a batch one by one, as Java's client does (remoting-protocol.md 4.2). Each has a queue
// offset of its own, but a retry topic, where Java stores a whole batch again, counts it as one message: so all parts hold
// the batch's first offset until the last is settled, and what stands behind it is never taken for a part.
func (u *unpacker) unwrap(m *wire.Message) {
	body, extra := u.w.plainBody(m)
	parts, err := partsOf(m, body)
	if err != nil || len(parts) == 0 { // a producer's mistake: its checksum was right
		u.w.cfg.Logger.Warn("batch does not unwrap, the handler gets it as stored", "queue", u.w.cfg.Queue.String(), "offset", m.QueueOffset, "error", err)
		u.take(m)
		return
	}
	u.extra += int64(extra)
	outer, from := ScanProperties(m.Properties), u.floor
	for i := range parts {
		if parts[i].QueueOffset < from && !u.w.cfg.Retry {
			continue // the pull began inside of the batch
		}
		props := ScanProperties(parts[i].Properties)
		if !u.wanted(props.Tags()) {
			u.filtered++
			continue
		}
		retry := props.RetryTopic()
		if len(retry) == 0 {
			retry = outer.RetryTopic()
		}
		d := u.place(&parts[i], parts[i].Body, props, retry)
		d.msg = &parts[i]
		d.Part = &Part{Index: i, holds: max(m.QueueOffset, from), origin: outer.OriginID()}
	}
	u.expected, u.floor = max(from, m.QueueOffset+int64(len(parts))), max(from, m.QueueOffset+1)
	if u.w.cfg.Retry {
		u.expected = u.floor
	}
}

func partsOf(m *wire.Message, body []byte) (parts []wire.Message, err error) {
	for p, err := range m.Parts(body) {
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// holds is the offset that stays committed until the message is settled.
func (d *Delivery) holds() int64 {
	if d.Part != nil {
		return d.Part.holds
	}
	return d.Offset
}
