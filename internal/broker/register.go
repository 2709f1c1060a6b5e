package broker

import (
	"encoding/json"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// foreignBroker is a broker that registered over the wire. It is known until it unregisters or its connection ends; one
// that stays connected but silent for 120 s is cut by the server's idle time.
type foreignBroker struct {
	conn   *remote.Conn
	data   brokerData
	topics map[string]TopicConfig
}

func (f *foreignBroker) brokerData() brokerData { return f.data }

func (f *foreignBroker) queueData(topic string) (queueData, bool) {
	c, ok := f.topics[topic]
	if !ok {
		return queueData{}, false
	}
	return queueData{
		BrokerName: f.data.name, Perm: c.Perm, ReadQueues: c.ReadQueues, SysFlag: c.SysFlag, WriteQueues: c.WriteQueues,
	}, true
}

func (f *foreignBroker) topicNames() []string { return slices.Sorted(maps.Keys(f.topics)) }

// onRegister is 103. A later table adds to the topics that are known: brokers send only those that changed
// (vectors/README.md 5.15).
func (n *NameServer) onRegister(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name, address, cluster, id := f.text("brokerName"), f.text("brokerAddr"), f.text("clusterName"), f.int64("brokerId")
	sum := f.int64Or("bodyCrc32", 0)
	if bad := f.bad(); bad != nil {
		return bad
	}
	body := r.Command.Body
	if sum != 0 && int64(crc32.ChecksumIEEE(body)&0x7FFFFFFF) != sum {
		return headed(wire.RespSystemError, "crc32 not match")
	}
	if f.flag("compressed", false) {
		return headed(wire.RespSystemError, "compressed registrations are not supported, set compressedRegister=false")
	}
	var table struct {
		Wrapper struct {
			Topics map[string]TopicConfig `json:"topicConfigTable"`
		} `json:"topicConfigSerializeWrapper"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &table); err != nil {
			return headed(wire.RespSystemError, "the registration cannot be read: "+err.Error())
		}
	}
	if !n.register(r.Conn, brokerData{name: name, cluster: cluster, addrs: map[int64]string{id: address}}, table.Wrapper.Topics) {
		return headed(wire.RespSystemError, "the broker "+name+" is served by this process")
	}
	return headed(wire.RespSuccess, "")
}

func (n *NameServer) register(c *remote.Conn, d brokerData, topics map[string]TopicConfig) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := &foreignBroker{conn: c, data: d, topics: make(map[string]TopicConfig)}
	switch old := n.brokers[d.name].(type) {
	case nil:
	case *foreignBroker:
		maps.Copy(next.topics, old.topics)
		for id, address := range old.data.addrs {
			if _, replaced := d.addrs[id]; !replaced {
				d.addrs[id] = address
			}
		}
	default:
		return false
	}
	maps.Copy(next.topics, topics)
	n.brokers[d.name] = next
	return true
}

// onUnregisterBroker is 104.
func (n *NameServer) onUnregisterBroker(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name := f.text("brokerName")
	if bad := f.bad(); bad != nil {
		return bad
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, foreign := n.brokers[name].(*foreignBroker); foreign {
		delete(n.brokers, name)
	}
	return headed(wire.RespSuccess, "")
}
