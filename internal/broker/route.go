package broker

import (
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onRoute is 105. Keys are quoted for clients that can read them so: from 4.9.4, or who say so (vectors/README.md 5.14).
func (n *NameServer) onRoute(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, known := f.ext.Lookup("topic")
	if !known {
		topic = "null" // Java prints its absence so.
	}
	dialect := wire.Fastjson
	if f.flag("acceptStandardJsonOnly", false) || wire.Version(r.Command.Version) >= wire.Version4_9_4 {
		dialect = wire.Standard
	}
	route := wire.TopicRoute{FilterServerTable: map[string][]string{}}
	for _, known := range n.registered() {
		if q, ok := known.queueData(topic); ok {
			if n.isWiped(q.BrokerName) {
				q.Perm &^= wire.PermWrite
			}
			route.Queues = append(route.Queues, q)
			route.Brokers = append(route.Brokers, known.brokerData())
		}
	}
	route.OrderTopicConf = n.orderOf(topic)
	if len(route.Queues) == 0 {
		return plain(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+topic+faq)
	}
	return jsonBody(route, dialect)
}

// orderConfig is the namespace of key-value configs that says in which order a topic's queues are.
const orderConfig = "ORDER_TOPIC_CONFIG"

// orderOf is what was put as the order of a topic's queues, such as "broker-a:4"; "" when nothing was.
func (n *NameServer) orderOf(topic string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ordered {
		return ""
	}
	return n.kv[orderConfig][topic]
}

// onCluster is 106, whose keys are always bare.
func (n *NameServer) onCluster() *remote.Answer {
	info := wire.ClusterInfo{Brokers: map[string]wire.BrokerData{}, Clusters: map[string][]string{}}
	for _, known := range n.registered() {
		d := known.brokerData()
		info.Brokers[d.Name] = d
		info.Clusters[d.Cluster] = append(info.Clusters[d.Cluster], d.Name)
	}
	return jsonBody(info, wire.Fastjson)
}

// onTopics is 206.
func (n *NameServer) onTopics() *remote.Answer {
	var topics []string
	for _, known := range n.registered() {
		topics = append(topics, known.topicNames()...)
	}
	slices.Sort(topics)
	return jsonBody(wire.TopicList{Topics: slices.Compact(topics)}, wire.Standard)
}

// queueDataOf is a topic as routes show it.
func queueDataOf(broker string, c wire.TopicConfig) wire.QueueData {
	return wire.QueueData{
		BrokerName: broker, Perm: c.Perm, ReadQueues: c.ReadQueues, TopicSysFlag: c.TopicSysFlag, WriteQueues: c.WriteQueues,
	}
}

func (b *Broker) brokerData() wire.BrokerData {
	acting := false
	return wire.BrokerData{
		Addrs: wire.IDTable[string]{wire.MasterID: b.Address()}, Name: b.config.Name, Cluster: b.config.Cluster,
		EnableActingMaster: &acting,
	}
}

func (b *Broker) queueData(topic string) (wire.QueueData, bool) {
	c, ok := b.topics.get(topic)
	return queueDataOf(b.config.Name, c), ok
}

func (b *Broker) topicNames() []string { return b.topics.names() }
