package broker

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// NameServerConfig says where a name server listens, when it has a listener of its own.
type NameServerConfig struct {
	Address string                                     // "127.0.0.1:0" by default
	Listen  func(address string) (net.Listener, error) // TCP by default
	Version wire.Version                               // 5.3.3 by default
	Logger  *slog.Logger                               // by default nothing is logged
}

// NameServer knows which broker has which topics. Brokers of this package are given one and register by themselves; each
// of their listeners then answers the name server's codes for all of them. Other brokers register over the wire (103).
// It needs no Start of its own unless it shall listen apart from its brokers, so that it can be stopped apart from them.
type NameServer struct {
	config NameServerConfig
	server *remote.Server
	faults *Faults
	// nil for one that belongs to no broker
	save, saveSetting saver

	mu      sync.Mutex
	brokers map[string]registration
	wiped   map[string]bool // brokers that producers must not write to
	ordered bool            // routes tell the order of a topic's queues
	kv      map[string]map[string]string
}

// registration is one broker as the name server knows it.
type registration interface {
	brokerData() wire.BrokerData
	queueData(topic string) (wire.QueueData, bool)
	topicNames() []string
}

// NewNameServer makes a name server that does not listen.
func NewNameServer(c NameServerConfig) *NameServer {
	or(&c.Address, "127.0.0.1:0")
	or(&c.Version, wire.Version5_3_3)
	if c.Listen == nil {
		c.Listen = listenTCP
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &NameServer{
		config: c, faults: newFaults(), brokers: make(map[string]registration), wiped: make(map[string]bool), ordered: true, kv: make(map[string]map[string]string),
	}
	n.server = remote.NewServer(remote.Options{
		Listen: c.Listen, Address: c.Address, Handle: n.serve, Gone: n.gone, MaxFrame: maxFrame, MaxPending: maxPending,
		MaxTotal: maxTotal, MaxReading: maxReading,
		Version: c.Version, Logger: c.Logger,
	})
	return n
}

// Start makes the name server listen on its own. After Stop it listens where it did before.
func (n *NameServer) Start() error {
	if err := n.server.Start(); err != nil {
		return fmt.Errorf("starting the name server: %w", err)
	}
	return nil
}

// Stop cuts all connections and stops listening. What it knows of brokers of this package stays.
func (n *NameServer) Stop() error { return n.server.Close() }

// Close is Stop.
func (n *NameServer) Close() error { return n.Stop() }

// Address is where it listens: "ip:port".
func (n *NameServer) Address() string { return n.server.Address() }

// Faults injects faults into the name server's own listener.
func (n *NameServer) Faults() *Faults { return n.faults }

// DropConnections cuts every connection and goes on listening.
func (n *NameServer) DropConnections() { n.server.DropConnections() }

func (n *NameServer) add(name string, r registration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.brokers[name] = r
}

func (n *NameServer) remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.brokers, name)
}

func (n *NameServer) serve(r *remote.Request) {
	n.faults.apply(r, func(r *remote.Request) {
		answer, known := n.answer(r)
		if !known {
			answer = notSupported(r.Command.RequestCode())
		}
		r.Reply(answer)
	})
}

// answer handles the name server's codes; false: the code is none of them.
func (n *NameServer) answer(r *remote.Request) (*remote.Answer, bool) {
	switch c := r.Command.RequestCode(); c {
	case wire.ReqWipeWritePerm, wire.ReqAddWritePerm:
		return n.onWipePerm(r), true
	case wire.ReqGetTopicsByCluster:
		return n.onClusterTopics(r), true
	case wire.ReqGetSystemTopicsFromNameServer:
		return n.onSystemTopicsNS(), true
	case wire.ReqGetUnitTopics, wire.ReqGetHasUnitSubTopics, wire.ReqGetHasUnitSubUnunitTopics:
		return n.onUnitTopics(c), true
	case wire.ReqGetNameServerConfig:
		return n.onConfig(), true
	case wire.ReqUpdateNameServerConfig:
		return n.onUpdateConfig(r), true
	case wire.ReqQueryDataVersion:
		return n.onDataVersion(r), true
	case wire.ReqGetBrokerMemberGroup:
		return n.onMemberGroup(r), true
	case wire.ReqBrokerHeartbeat:
		return n.onBrokerBeat(r), true
	case wire.ReqGetRoute:
		return n.onRoute(r), true
	case wire.ReqGetClusterInfo:
		return n.onCluster(), true
	case wire.ReqGetAllTopics:
		return n.onTopics(), true
	case wire.ReqDeleteTopicInNameServer:
		return n.onDeleteTopic(r), true
	case wire.ReqPutKVConfig:
		return n.onPutKV(r), true
	case wire.ReqGetKVConfig:
		return n.onGetKV(r), true
	case wire.ReqDeleteKVConfig:
		return n.onDeleteKV(r), true
	case wire.ReqGetKVListByNamespace:
		return n.onListKV(r), true
	case wire.ReqRegisterBroker:
		return n.onRegister(r), true
	case wire.ReqUnregisterBroker:
		return n.onUnregisterBroker(r), true
	default:
		return nil, false
	}
}

// registered returns the brokers in the order of their names.
func (n *NameServer) registered() []registration {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]registration, 0, len(n.brokers))
	for _, name := range slices.Sorted(maps.Keys(n.brokers)) {
		all = append(all, n.brokers[name])
	}
	return all
}

// gone removes the brokers that registered over a connection that ended, at once as RocketMQ does.
func (n *NameServer) gone(c *remote.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.brokers, func(_ string, r registration) bool {
		foreign, ok := r.(*foreignBroker)
		return ok && foreign.conn == c
	})
}
