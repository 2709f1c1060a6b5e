package broker

import (
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// sendBatch stores the parts of a batch as messages of their own, behind each other. To each part's properties those of
// the batch are appended as they are, UNIQ_KEY included, which is why readers meet repeated names (vectors/README.md 4.1).
func (b *Broker) sendBatch(r *remote.Request, s sending) *remote.Answer {
	whole := parseProperties([]byte(s.properties))
	if bad := b.checkBatch(r, s, whole); bad != nil {
		return bad
	}
	unique := whole.get(wire.PropUniqueKey)
	b.mark(&whole)
	common := whole.text()
	w := b.newWrite()
	records, size, err := b.split(w, r, s, common)
	if err == nil && len(records) == 0 {
		err = errNoMessages
	}
	if err != nil {
		w.release()
		return b.refuseSend(wire.RespMessageIllegal, err.Error())
	}
	w.add(s.topic, s.queue, records...)
	if err := w.submit(); err != nil {
		return b.cannotSend(err)
	}
	b.counters.put(b.config.Cluster, s.topic, len(records), size)
	return b.sent(s.queue, w.change.Appends[0].Positions, unique)
}

var errNoMessages = errors.New("the batch has no messages")

// split encodes the parts behind each other into one buffer, which is lent to the write.
func (b *Broker) split(w *write, r *remote.Request, s sending, common []byte) (records []store.Record, size int, err error) {
	d := &draft{topic: s.topic, queue: s.queue, sysFlag: s.sysFlag, born: s.born, bornHost: r.Conn.Remote(), reconsumed: s.reconsumed}
	whole := b.message(d, nil)
	count := 0
	for _, err := range wire.BatchParts(r.Command.Body) {
		if err != nil {
			return nil, 0, err
		}
		count++
	}
	w.buffer = b.sends.lend(len(r.Command.Body) + count*(whole.Size()+len(common)+1))
	records = make([]store.Record, 0, count)
	var properties []byte
	for p, err := range wire.BatchParts(r.Command.Body) {
		if err != nil {
			return nil, 0, err
		}
		properties = joinProperties(properties[:0], p.Properties, common)
		m := whole
		m.Flag, m.Body, m.BodyCRC, m.Properties = p.Flag, p.Body, wire.BodyCRC(p.Body), properties
		record, err := encode(*w.buffer, &m)
		if err != nil {
			return nil, 0, err
		}
		*w.buffer = (*w.buffer)[:len(*w.buffer)+len(record.Raw)]
		records = append(records, record)
	}
	return records, len(*w.buffer), nil
}

func (b *Broker) checkBatch(r *remote.Request, s sending, whole properties) *remote.Answer {
	switch {
	case len(s.topic) > wire.MaxTopicName:
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf("message topic length over %d", wire.MaxTopicName))
	case wire.IsRetryTopic(s.topic):
		return b.refuseSend(wire.RespMessageIllegal, "batch request does not support retry group "+s.topic)
	case int64(len(r.Command.Body)) > b.tuned.maxBody.Load():
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf(remarkTooLarge, b.tuned.maxBody.Load()))
	case whole.get(wire.PropDelayLevel) != "" || isTimer(whole):
		return b.refuseSend(wire.RespMessageIllegal, fmt.Sprintf(remarkTooLarge, b.tuned.maxBody.Load()))
	}
	return nil
}

func isTimer(p properties) bool {
	return p.get(wire.PropTimerDelaySeconds) != "" || p.get(wire.PropTimerDelayMillis) != "" || p.get(wire.PropTimerDeliver) != ""
}

// joinProperties appends own and text to out, with a separator between them.
func joinProperties(out, own, text []byte) []byte {
	out = append(out, own...)
	if n := len(out); n > 0 && out[n-1] != 2 {
		out = append(out, 2)
	}
	return append(out, text...)
}
