package broker

import (
	"errors"
	"fmt"
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
	data   wire.BrokerData
	topics map[string]wire.TopicConfig
}

func (f *foreignBroker) brokerData() wire.BrokerData { return f.data }

func (f *foreignBroker) queueData(topic string) (wire.QueueData, bool) {
	c, ok := f.topics[topic]
	return queueDataOf(f.data.Name, c), ok
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
	var table wire.RegisterBrokerBody
	if len(body) > 0 {
		if err := wire.DecodeBody(body, &table); err != nil {
			return headed(wire.RespSystemError, "the registration cannot be read: "+err.Error())
		}
	}
	data := wire.BrokerData{Name: name, Cluster: cluster, Addrs: wire.IDTable[string]{id: address}}
	if err := n.register(r.Conn, data, table.Table.Topics); err != nil {
		return headed(wire.RespSystemError, err.Error())
	}
	return headed(wire.RespSuccess, "")
}

// maxForeign bounds what brokers register over the wire, in bytes about, and foreignSize is what an entry takes beside its
// texts.
const (
	maxForeign  = 64 << 20
	foreignSize = 512
)

func (f *foreignBroker) size() int {
	size := foreignSize + len(f.data.Name) + len(f.data.Cluster)
	for _, address := range f.data.Addrs {
		size += foreignSize + len(address)
	}
	for name, c := range f.topics {
		size += foreignSize + 2*len(name)
		for k, v := range c.Attributes {
			size += len(k) + len(v)
		}
	}
	return size
}

// foreignLocked is the size of all brokers that registered over the wire but one.
func (n *NameServer) foreignLocked(except string) (size int) {
	for name, known := range n.brokers {
		if foreign, ok := known.(*foreignBroker); ok && name != except {
			size += foreign.size()
		}
	}
	return size
}

func (n *NameServer) register(c *remote.Conn, d wire.BrokerData, topics map[string]wire.TopicConfig) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := &foreignBroker{conn: c, data: d, topics: make(map[string]wire.TopicConfig)}
	switch old := n.brokers[d.Name].(type) {
	case nil:
	case *foreignBroker:
		maps.Copy(next.topics, old.topics)
		for id, address := range old.data.Addrs {
			if _, replaced := d.Addrs[id]; !replaced {
				d.Addrs[id] = address
			}
		}
	default:
		return fmt.Errorf("the broker %s is served by this process", d.Name)
	}
	maps.Copy(next.topics, topics)
	if n.foreignLocked(d.Name)+next.size() > maxForeign {
		return errors.New("the name server has no room for more brokers and topics")
	}
	n.brokers[d.Name] = next
	delete(n.wiped, d.Name)
	return nil
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

// onDeleteTopic is 216: forgets a topic of brokers that registered over the wire. Those of this package have no separate
// table at the name server: theirs goes with the topic (215).
func (n *NameServer) onDeleteTopic(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic := f.text("topic")
	if bad := f.bad(); bad != nil {
		return bad
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, known := range n.brokers {
		if foreign, ok := known.(*foreignBroker); ok {
			next := &foreignBroker{conn: foreign.conn, data: foreign.data, topics: maps.Clone(foreign.topics)}
			delete(next.topics, topic) // A copy, since answers read the present table without a lock.
			n.brokers[name] = next
		}
	}
	return plain(wire.RespSuccess, "")
}
