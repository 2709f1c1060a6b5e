package broker

import (
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onCorrectionOffset is 308: for each queue of a topic the lowest offset that any group committed, but for those named;
// in queues where the group to compare with committed nothing, nothing is told.
func (b *Broker) onCorrectionOffset(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic := f.text("topic")
	if bad := f.bad(); bad != nil {
		return bad
	}
	except := make(map[string]bool)
	for name := range strings.SplitSeq(f.optional("filterGroups"), ",") {
		except[name] = true
	}
	lowest := make(wire.IDTable[int64])
	for _, group := range b.offsets.groups(topic) {
		if except[group] {
			continue
		}
		for queue, offset := range b.offsets.all(groupTopic{group, topic}) {
			if least, known := lowest[int64(queue)]; !known || offset < least {
				lowest[int64(queue)] = offset
			}
		}
	}
	if compare := f.optional("compareGroup"); compare != "" {
		committed := b.offsets.all(groupTopic{compare, topic})
		for queue := range lowest {
			if _, ok := committed[int32(queue)]; !ok {
				delete(lowest, queue)
			}
		}
	}
	return jsonBody(wire.CorrectionOffsets{Offsets: lowest}, wire.Fastjson)
}

// onAllOffsets is 43: everything that groups committed.
func (b *Broker) onAllOffsets(*remote.Request) *remote.Answer {
	body := wire.AllConsumerOffsets{Topics: make(map[string][]string), Offsets: make(map[string]wire.IDTable[int64])}
	for _, group := range b.groups.names() {
		for _, topic := range b.offsets.topics(group) {
			body.Topics[group] = append(body.Topics[group], topic)
			queues := make(wire.IDTable[int64])
			for queue, offset := range b.offsets.all(groupTopic{group, topic}) {
				queues[int64(queue)] = offset
			}
			body.Offsets[statsKey(topic, group)] = queues
		}
	}
	return jsonBody(body, wire.Fastjson)
}
