package broker

import (
	"fmt"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/stats"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onViewStats is 315: one statistic over a minute, an hour and a day.
func (b *Broker) onViewStats(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name, of := f.text("statsName"), f.text("statsKey")
	if bad := f.bad(); bad != nil {
		return bad
	}
	s, ok := b.counters.table.Get(stats.Name(name), of)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("The stats <%s> <%s> not exist", name, of))
	}
	return jsonBody(wire.BrokerStats{Minute: statsItem(s.Minute), Hour: statsItem(s.Hour), Day: statsItem(s.Day)}, wire.Standard)
}

func statsItem(s stats.Span) wire.StatsItem {
	return wire.StatsItem{Average: s.Average, Sum: s.Sum, TPS: s.PerSec}
}

// getTPS is how many messages a second a group got of a topic during the last minute.
func (b *Broker) getTPS(group, topic string) float64 {
	s, _ := b.counters.table.Get(stats.GroupGetNums, statsKey(topic, group))
	return s.Minute.PerSec
}

// putTPS is how many messages a second were sent to a topic during the last minute.
func (b *Broker) putTPS(topic string) float64 {
	s, _ := b.counters.table.Get(stats.TopicPutNums, topic)
	return s.Minute.PerSec
}

// onBrokerConsumeStats is 317: how far each group is, topic by topic. Groups without offsets are listed empty.
func (b *Broker) onBrokerConsumeStats(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	f.text("isOrder")
	ordered := f.flag("isOrder", false)
	if bad := f.bad(); bad != nil {
		return bad
	}
	body := wire.BrokerConsumeStats{BrokerAddr: b.Address(), Groups: []map[string][]wire.ConsumeStats{}}
	for _, group := range b.groups.names() {
		all := []wire.ConsumeStats{}
		for _, topic := range b.offsets.topics(group) {
			c, ok := b.topics.get(topic)
			if !ok || ordered && !c.Order || b.notSubscribed(group, topic) {
				continue
			}
			s := b.topicProgress(group, c)
			all = append(all, s)
			body.TotalDiff += diffOf(s)
			body.TotalInflight += inflightOf(s)
		}
		body.Groups = append(body.Groups, map[string][]wire.ConsumeStats{group: all})
	}
	return jsonBody(body, wire.Fastjson)
}

// topicProgress is how far a group is in one topic.
func (b *Broker) topicProgress(group string, c wire.TopicConfig) wire.ConsumeStats {
	s := wire.ConsumeStats{TPS: b.getTPS(group, c.Name), Offsets: make(wire.QueueTable[wire.ConsumeOffset])}
	for queue := range c.ReadQueues {
		s.Offsets[b.queueName(c.Name, queue)] = b.consumeOffset(queueOf(group, c.Name, queue))
	}
	return s
}

func diffOf(s wire.ConsumeStats) (sum int64) {
	for _, o := range s.Offsets {
		sum += o.BrokerOffset - o.ConsumerOffset
	}
	return sum
}

func inflightOf(s wire.ConsumeStats) (sum int64) {
	for _, o := range s.Offsets {
		sum += *o.PullOffset - o.ConsumerOffset
	}
	return sum
}
