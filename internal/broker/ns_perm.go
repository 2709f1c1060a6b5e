package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onWipePerm is 205 and 327: takes a broker out of what producers may write to, and puts it back. Brokers are not told:
// routes are, as in RocketMQ. A broker that registers anew may be written to again.
func (n *NameServer) onWipePerm(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name := f.text("brokerName")
	if bad := f.bad(); bad != nil {
		return bad
	}
	wipe, field := r.Command.RequestCode() == wire.ReqWipeWritePerm, "addTopicCount"
	if wipe {
		field = "wipeTopicCount"
	}
	n.mu.Lock()
	known := n.brokers[name]
	if wipe && known != nil {
		n.wiped[name] = true
	} else {
		delete(n.wiped, name)
	}
	n.mu.Unlock()
	topics := 0
	if known != nil {
		topics = len(known.topicNames())
	}
	return headed(wire.RespSuccess, "", number(field, int64(topics)))
}

// isWiped tells whether producers must not write to a broker.
func (n *NameServer) isWiped(broker string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wiped[broker]
}
