package broker

import (
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
	var records []store.Record
	size := 0
	for p, err := range wire.BatchParts(r.Command.Body) {
		if err != nil {
			return b.refuseSend(wire.RespMessageIllegal, err.Error())
		}
		d := &draft{
			topic: s.topic, queue: s.queue, flag: p.Flag, sysFlag: s.sysFlag, born: s.born, bornHost: r.Conn.Remote(),
			reconsumed: s.reconsumed, body: p.Body,
		}
		record, err := b.record(d, joinProperties(p.Properties, common))
		if err != nil {
			return b.refuseSend(wire.RespMessageIllegal, err.Error())
		}
		records, size = append(records, record), size+len(record.Raw)
	}
	if len(records) == 0 {
		return b.refuseSend(wire.RespMessageIllegal, "the batch has no messages")
	}
	positions, err := b.append(s.topic, s.queue, records...)
	if err != nil {
		return b.cannotSend(err)
	}
	b.counters.put(b.config.Cluster, s.topic, len(records), size)
	return b.sent(s.queue, positions, unique)
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

// joinProperties appends text to own, with a separator between them.
func joinProperties(own, text []byte) []byte {
	out := make([]byte, 0, len(own)+1+len(text))
	out = append(out, own...)
	if n := len(out); n > 0 && out[n-1] != 2 {
		out = append(out, 2)
	}
	return append(out, text...)
}
