package broker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// queueData says how many queues of a topic a broker has (QueueData).
type queueData struct {
	BrokerName  string `json:"brokerName"`
	Perm        int32  `json:"perm"`
	ReadQueues  int32  `json:"readQueueNums"`
	SysFlag     int32  `json:"topicSysFlag"`
	WriteQueues int32  `json:"writeQueueNums"`
}

// brokerData says where a broker's replicas are (BrokerData).
type brokerData struct {
	name, cluster string
	addrs         map[int64]string // by broker id; 0 = master
}

// append writes the JSON form, ids quoted as the standard wants or bare as fastjson writes them. Clients of Go rewrite the
// bare form by text search, so it must be compact.
func (d brokerData) append(out []byte, quoted bool) []byte {
	out = append(out, `{"brokerAddrs":{`...)
	ids := make([]int64, 0, len(d.addrs))
	for id := range d.addrs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		key := strconv.FormatInt(id, 10)
		if quoted {
			key = strconv.Quote(key)
		}
		out = fmt.Appendf(out, "%s:%s", key, jsonText(d.addrs[id]))
	}
	return fmt.Appendf(out, `},"brokerName":%s,"cluster":%s,"enableActingMaster":false}`, jsonText(d.name), jsonText(d.cluster))
}

// jsonText is s as a JSON string. Marshaling a string cannot fail.
func jsonText(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`)
	}
	return b
}

// onRoute is 105. Keys are quoted for clients that can read them so: from 4.9.4, or who say so (vectors/README.md 5.14).
func (n *NameServer) onRoute(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic := f.optional("topic")
	quoted := f.flag("acceptStandardJsonOnly", false) || wire.Version(r.Command.Version) >= wire.Version4_9_4
	body, err := n.route(topic, quoted)
	if err != nil {
		return plain(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+topic+faq)
	}
	return withBody(body)
}

func (n *NameServer) route(topic string, quoted bool) ([]byte, error) {
	brokers, queues := []byte(`{"brokerDatas":[`), []queueData(nil)
	for _, r := range n.registered() {
		q, ok := r.queueData(topic)
		if !ok {
			continue
		}
		if len(queues) > 0 {
			brokers = append(brokers, ',')
		}
		brokers = r.brokerData().append(brokers, quoted)
		queues = append(queues, q)
	}
	if len(queues) == 0 {
		return nil, errNoRoute
	}
	tail, err := json.Marshal(queues)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(brokers, `],"filterServerTable":{},"queueDatas":%s}`, tail), nil
}

// onCluster is 106, whose keys are always bare.
func (n *NameServer) onCluster() *remote.Answer {
	clusters := make(map[string][]string)
	out := []byte(`{"brokerAddrTable":{`)
	for i, r := range n.registered() {
		d := r.brokerData()
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%s:", jsonText(d.name))
		out = d.append(out, false)
		clusters[d.cluster] = append(clusters[d.cluster], d.name)
	}
	table, err := json.Marshal(clusters)
	if err != nil {
		return plain(wire.RespSystemError, err.Error())
	}
	return withBody(fmt.Appendf(out, `},"clusterAddrTable":%s}`, table))
}

// onTopics is 206.
func (n *NameServer) onTopics() *remote.Answer {
	var topics []string
	for _, r := range n.registered() {
		topics = append(topics, r.topicNames()...)
	}
	slices.Sort(topics)
	return jsonBody(struct {
		Topics []string `json:"topicList"`
	}{slices.Compact(topics)})
}

func (b *Broker) brokerData() brokerData {
	return brokerData{name: b.config.Name, cluster: b.config.Cluster, addrs: map[int64]string{wire.MasterID: b.Address()}}
}

func (b *Broker) queueData(topic string) (queueData, bool) {
	c, ok := b.topics.get(topic)
	if !ok {
		return queueData{}, false
	}
	return queueData{
		BrokerName: b.config.Name, Perm: c.Perm, ReadQueues: c.ReadQueues, SysFlag: c.SysFlag, WriteQueues: c.WriteQueues,
	}, true
}

func (b *Broker) topicNames() []string { return b.topics.names() }
