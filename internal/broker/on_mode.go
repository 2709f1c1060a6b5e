package broker

import (
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// modePull is how groups get their messages here; the other way is POP.
const modePull = "PULL"

// onSetMode is 401: PULL is what every group does already, POP is not there.
func (b *Broker) onSetMode(r *remote.Request) *remote.Answer {
	var body wire.MessageRequestMode
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	switch {
	case wire.IsRetryTopic(body.Topic):
		return plain(wire.RespNoPermission, "retry topic is not allowed to set mode")
	case body.Mode != modePull:
		return plain(wire.RespNotSupported, "consuming by "+body.Mode+" is not supported"+absentPOP)
	}
	return plain(wire.RespSuccess, "")
}

// onAllModes is 402: no group has a mode other than the usual one.
func (b *Broker) onAllModes(*remote.Request) *remote.Answer {
	return jsonBody(wire.MessageRequestModes{Modes: map[string]map[string]wire.MessageRequestMode{}}, wire.Standard)
}

// onAssignment is 400, which clients send that leave the division of queues to the broker (clientRebalance=false).
func (b *Broker) onAssignment(r *remote.Request) *remote.Answer {
	var q wire.QueryAssignmentBody
	if bad := readBody(r, &q); bad != nil {
		return bad
	}
	if q.Topic == "" || q.Group == "" {
		return plain(wire.RespSystemError, "the request names no topic or no consumerGroup")
	}
	queues := b.names.queuesOf(q.Topic)
	if q.Model != wire.Broadcasting {
		share, ok := shareOf(q, queues, b.members.ids(q.Group))
		if !ok {
			return jsonBody(wire.Assignments{}, wire.Standard)
		}
		queues = share
	}
	all := make([]wire.Assignment, 0, len(queues))
	for _, queue := range queues {
		all = append(all, wire.Assignment{Queue: queue, Mode: modePull})
	}
	return jsonBody(wire.Assignments{Queues: all}, wire.Standard)
}

// shareOf divides queues as Java's AVG and AVG_BY_CIRCLE do; false for another strategy. Who is no member gets nothing.
func shareOf(q wire.QueryAssignmentBody, queues []wire.MessageQueue, members []string) (share []wire.MessageQueue, ok bool) {
	if q.Strategy != "AVG" && q.Strategy != "AVG_BY_CIRCLE" {
		return nil, false
	}
	slices.Sort(members)
	members = slices.Compact(members)
	self := slices.Index(members, q.ClientID)
	if self < 0 {
		return nil, true
	}
	n, size, extra := len(members), len(queues)/len(members), len(queues)%len(members)
	if q.Strategy == "AVG" {
		first := self*size + min(self, extra)
		if self < extra {
			size++
		}
		return queues[first : first+size], true
	}
	for i := self; i < len(queues); i += n {
		share = append(share, queues[i])
	}
	return share, true
}

// queuesOf returns the queues of a topic that can be read, over all brokers, sorted.
func (n *NameServer) queuesOf(topic string) []wire.MessageQueue {
	var queues []wire.MessageQueue
	for _, known := range n.registered() {
		q, ok := known.queueData(topic)
		if !ok || q.Perm&wire.PermRead == 0 {
			continue
		}
		for id := range q.ReadQueues {
			queues = append(queues, wire.MessageQueue{BrokerName: q.BrokerName, QueueID: id, Topic: topic})
		}
	}
	slices.SortFunc(queues, wire.MessageQueue.Compare)
	return queues
}
