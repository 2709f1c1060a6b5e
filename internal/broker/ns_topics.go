package broker

import (
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onClusterTopics is 224: the topics of a cluster's brokers.
func (n *NameServer) onClusterTopics(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	cluster := f.text("cluster")
	if bad := f.bad(); bad != nil {
		return bad
	}
	topics := []string{}
	for _, known := range n.registered() {
		if known.brokerData().Cluster == cluster {
			topics = append(topics, known.topicNames()...)
		}
	}
	slices.Sort(topics)
	return jsonBody(wire.TopicList{Topics: slices.Compact(topics)}, wire.Standard)
}

// onSystemTopicsNS is 304: the topics that every cluster and every broker has by its name.
func (n *NameServer) onSystemTopicsNS() *remote.Answer {
	body := wire.TopicList{Topics: []string{}}
	for _, known := range n.registered() {
		d := known.brokerData()
		body.BrokerAddr = d.Addrs[wire.MasterID]
		body.Topics = append(body.Topics, d.Name, d.Cluster)
	}
	slices.Sort(body.Topics)
	body.Topics = slices.Compact(body.Topics)
	return jsonBody(body, wire.Standard)
}

// onUnitTopics is 311, 312 and 313, which ask for topics of several units; no topic here is marked as such.
func (n *NameServer) onUnitTopics(c code) *remote.Answer {
	const unit, unitSub = 1, 2 // bits of a topic's topicSysFlag
	topics := []string{}
	for _, known := range n.registered() {
		for _, name := range known.topicNames() {
			q, _ := known.queueData(name)
			isUnit, hasSub := q.TopicSysFlag&unit != 0, q.TopicSysFlag&unitSub != 0
			if c == wire.ReqGetUnitTopics && isUnit || c == wire.ReqGetHasUnitSubTopics && hasSub ||
				c == wire.ReqGetHasUnitSubUnunitTopics && hasSub && !isUnit {
				topics = append(topics, name)
			}
		}
	}
	slices.Sort(topics)
	return jsonBody(wire.TopicList{Topics: slices.Compact(topics)}, wire.Standard)
}
