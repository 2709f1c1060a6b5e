package rocketmq

import (
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// The permission bits of a queue (PermName).
const (
	permRead  = 4
	permWrite = 2
)

// route is what the name servers say of one topic. It is immutable.
type route struct {
	readable []sdk.Queue // sorted
	writable []sdk.Queue // sorted; only of brokers with a master
	brokers  map[string]map[int64]string
}

// isStatic tells that a topic's queues are logical ones: some broker maps them onto its own (TopicQueueMappingInfo). Their
// ids and offsets are not those of the brokers.
func isStatic(data *wire.TopicRoute) bool {
	var mappings map[string]json.RawMessage
	if len(data.Mappings) == 0 || json.Unmarshal(data.Mappings, &mappings) != nil {
		return false
	}
	for _, one := range mappings {
		if text := string(one); text != "null" && text != "{}" {
			return true
		}
	}
	return false
}

// newRoute reads route data (remoting-protocol.md 6.4). A global order topic lists its queues itself.
func newRoute(topic string, data *wire.TopicRoute) *route {
	r := &route{brokers: map[string]map[int64]string{}}
	for _, b := range data.Brokers {
		if len(b.Addrs) > 0 {
			addrs := make(map[int64]string, len(b.Addrs))
			for id, addr := range b.Addrs {
				addrs[id] = dialable(addr)
			}
			r.brokers[b.Name] = addrs
		}
	}
	if order, ok := orderQueues(topic, data.OrderTopicConf); ok {
		r.readable, r.writable = order, r.withMaster(order)
		return r
	}
	for _, q := range data.Queues {
		if q.Perm&permRead != 0 {
			r.readable = appendQueues(r.readable, topic, q.BrokerName, q.ReadQueues)
		}
		if q.Perm&permWrite != 0 {
			r.writable = appendQueues(r.writable, topic, q.BrokerName, q.WriteQueues)
		}
	}
	r.writable = r.withMaster(r.writable)
	slices.SortFunc(r.readable, sdk.Queue.Compare)
	slices.SortFunc(r.writable, sdk.Queue.Compare)
	return r
}

// dialable puts an IPv6 address into brackets: brokers register theirs without, the last colon splits (vectors/README.md
// 5.15).
func dialable(addr string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 || addr[0] == '[' || !strings.Contains(addr[:i], ":") {
		return addr
	}
	return net.JoinHostPort(addr[:i], addr[i+1:])
}

// maxQueues bounds what a route may make us allocate; no broker serves nearly as many.
const maxQueues = 1 << 16

func appendQueues(to []sdk.Queue, topic, broker string, n int32) []sdk.Queue {
	for id := range min(n, maxQueues) {
		to = append(to, sdk.Queue{Topic: topic, Broker: broker, ID: id})
	}
	return to
}

// orderQueues reads "broker-a:4;broker-b:4".
func orderQueues(topic, conf string) ([]sdk.Queue, bool) {
	if strings.TrimSpace(conf) == "" {
		return nil, false
	}
	var queues []sdk.Queue
	for part := range strings.SplitSeq(conf, ";") {
		broker, count, ok := strings.Cut(part, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 32)
		if ok && err == nil {
			queues = appendQueues(queues, topic, strings.TrimSpace(broker), int32(n))
		}
	}
	slices.SortFunc(queues, sdk.Queue.Compare)
	return queues, len(queues) > 0
}

func (r *route) withMaster(queues []sdk.Queue) []sdk.Queue {
	return slices.DeleteFunc(slices.Clone(queues), func(q sdk.Queue) bool {
		_, ok := r.brokers[q.Broker][masterID]
		return !ok
	})
}

func (r *route) equal(o *route) bool {
	return slices.Equal(r.readable, o.readable) && slices.Equal(r.writable, o.writable) &&
		maps.EqualFunc(r.brokers, o.brokers, maps.Equal)
}

// replicas lists the live addresses of a broker, master first.
func replicas(name string, addrs map[int64]string) []BrokerAddr {
	list := make([]BrokerAddr, 0, len(addrs))
	for _, id := range slices.Sorted(maps.Keys(addrs)) {
		list = append(list, BrokerAddr{Name: name, ID: id, Addr: addrs[id]})
	}
	return list
}
