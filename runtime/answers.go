package runtime

import (
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime/internal/group"
)

// spec is what the client says of the group, and whom it calls when a broker asks. The callbacks run on their own
// goroutines.
func (m *member) spec() rocketmq.GroupSpec {
	c := m.s.config()
	return rocketmq.GroupSpec{
		Name: c.Group, Broadcasting: c.Broadcasting, FromWhere: m.fromWhere(c),
		Subscriptions:    m.tellAnnounced,
		OnMembersChanged: func() { m.send(group.Input{Kind: group.InNotify}) },
		OnBrokerBack:     m.brokerBack,
		OnReset:          m.onReset,
		RunningInfo:      m.runningInfo,
		ConsumerStatus:   m.consumerStatus,
		ConsumeDirectly:  m.consumeDirectly,
	}
}

// onReset answers 220: a reset that a broker before 5.1.0 pushes to the members.
func (m *member) onReset(topic string, offsets map[Queue]int64) {
	for q, offset := range offsets {
		if m.reset(q, offset) {
			m.s.log.Info("a broker reset the offset", "topic", topic, "queue", q.String(), "to", offset)
		}
	}
}

// brokerBack lets the queues of a broker that is connected again, and the verdicts that wait for one, try at once, and looks at
// the group anew, as Java's client does (consumer-semantics.md 2.1).
func (m *member) brokerBack(broker string) {
	m.mu.Lock()
	m.returning.broker(m.s.rt.Now())
	m.mu.Unlock()
	for _, w := range m.allWorkers() {
		if w.Queue().Broker == broker {
			w.TryNow()
		}
	}
	m.s.settler.TryNow(broker)
	m.send(group.Input{Kind: group.InNotify})
}

// consumerStatus answers 221: the safe offset of each owned queue of a topic.
func (m *member) consumerStatus(topic string) map[Queue]int64 {
	out := map[Queue]int64{}
	for _, w := range m.allWorkers() {
		if s := w.Status(); s.Queue.Topic == topic && s.Safe >= 0 {
			out[s.Queue] = s.Safe
		}
	}
	return out
}

// peerHeads bounds how many heads a member tells the others of: the answer is one frame.
const peerHeads = 50

func (m *member) peerInfo(st *StreamStatus) PeerInfo {
	p := PeerInfo{
		Version: m.s.rt.Version, Stream: st.Name, State: "running", Strategy: strategyName(m.s.config().Strategy),
		Plugin: st.Plugin.Plugin, PID: st.Plugin.PID, Lanes: st.Lanes, Holds: st.Holds, Assigned: st.Assignments,
		Queues: make(map[string]PeerQueue, len(st.Queues)), Fresh: m.newness.names(),
		Counters: map[string]uint64{
			"settled": st.Counters.Queues.Settled, "acks": st.Counters.Dispatch.Acks, "retries": st.Counters.Dispatch.Retries,
			"rejects": st.Counters.Dispatch.Rejects, "expired": st.Counters.Queues.Expired, "overlaps": st.Counters.Group.Overlaps,
		},
	}
	if p.Locks, p.Heads = st.LocksHeld, st.Heads[:min(len(st.Heads), peerHeads)]; st.Order.ordered() {
		p.Order = st.Order
	}
	if m.s.config().Broadcasting {
		p.Strategy = ""
	}
	select {
	case <-m.stops:
		p.State = "stopping"
	default:
	}
	for i := range st.Queues {
		q := &st.Queues[i]
		pq := PeerQueue{
			Topic: q.Queue.Topic, Broker: q.Queue.Broker, ID: q.Queue.ID, State: q.State, Epoch: q.Epoch, Committed: q.Committed,
			Safe: q.Safe, InFlight: q.InFlight, Locked: q.Lock.Held, Messages: q.Messages, Bytes: q.Bytes, Span: q.Span, OldestMS: q.Oldest.Milliseconds(),
		}
		if q.Hold.Held() {
			pq.Hold = &q.Hold
		}
		p.Queues[q.Queue.String()] = pq
	}
	return p
}
