package runtime

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// spec is what the client says of the group, and whom it calls when a broker asks. The callbacks run on their own
// goroutines.
func (m *member) spec() rocketmq.GroupSpec {
	c := m.s.config()
	from := rocketmq.FromLast
	switch {
	case c.StartFrom.First:
		from = rocketmq.FromFirst
	case !c.StartFrom.At.IsZero():
		from = rocketmq.FromTimestamp
	}
	return rocketmq.GroupSpec{
		Name: c.Group, Broadcasting: c.Broadcasting, FromWhere: from,
		Subscriptions:    func() []rocketmq.Subscription { return m.s.subscriptions(m.s.config()) },
		OnMembersChanged: func() { m.send(group.Input{Kind: group.InNotify}) },
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

// runningInfo answers 307: what tools read of any member, and in its properties what streamd members read of each other.
func (m *member) runningInfo(bool) *wire.ConsumerRunningInfo {
	st := m.s.status()
	info := &wire.ConsumerRunningInfo{
		Queues: wire.QueueTable[wire.ProcessQueueInfo]{}, PopTable: wire.QueueTable[wire.PopProcessQueueInfo]{},
		Status: map[string]wire.ConsumeStatus{}, UserConsumerInfo: map[string]string{},
		Properties: map[string]string{
			wire.RunningConsumeType: "CONSUME_PASSIVELY", wire.RunningOrderly: strconv.FormatBool(m.s.config().Order.ordered()), wire.RunningVersion: "V4_9_8",
			allocate.PropertyStreamd: m.s.rt.Version,
		},
	}
	if m.s.rt.Version == "" {
		info.Properties[allocate.PropertyStreamd] = "dev"
	}
	for _, sub := range m.s.subscriptions(m.s.config()) {
		if data, err := wire.NewSubscriptionData(sub.Topic, string(sub.Type), sub.Expression, sub.Version); err == nil {
			info.Subscriptions = append(info.Subscriptions, data)
		}
		info.Status[sub.Topic] = wire.ConsumeStatus{}
	}
	for i := range st.Queues {
		addProcessQueue(info, &st.Queues[i])
	}
	m.mu.Lock()
	for topic, d := range m.digests {
		if d.Input != "" {
			info.Properties[allocate.PropertyDigestPrefix+topic] = d.String()
		}
	}
	m.mu.Unlock()
	if text, err := json.Marshal(m.peerInfo(&st)); err == nil {
		info.Properties[PeerInfoProperty] = string(text)
	}
	return info
}

func addProcessQueue(info *wire.ConsumerRunningInfo, q *QueueStatus) {
	if q.State == string(group.Waiting) {
		return
	}
	key := wire.MessageQueue{Topic: q.Queue.Topic, BrokerName: q.Queue.Broker, QueueID: q.Queue.ID}
	p := wire.ProcessQueueInfo{
		CachedCount: int32(min(q.Messages, 1<<30)), CachedMiB: int32(q.Bytes >> 20), //nolint:gosec // bounded by the window
		CachedMinOffset: q.Safe, CachedMaxOffset: max(q.Safe, q.Next-1), CommitOffset: q.Committed, Locked: true,
		Dropped: q.State == string(group.Draining), LastPullMillis: millis(q.LastPull), LastConsumeMillis: millis(q.LastPull),
	}
	if q.Phase == queue.PhaseLocking || q.Lock.Held { // an ordered queue
		p.Locked, p.LastLockMillis = q.Lock.Held, millis(q.Lock.At)
	}
	info.Queues[key] = p
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
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
	if m.s.config().Broadcasting {
		p.Strategy = ""
	}
	if p.Locks, p.Heads = st.LocksHeld, st.Heads[:min(len(st.Heads), peerHeads)]; st.Order.ordered() {
		p.Order = st.Order
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

// directLimit bounds the handler's answer to 309: the broker waits 10 s.
const directLimit = 9 * time.Second

// consumeDirectly answers 309: an operator hands one message to the handler. Its verdict is told, and nothing is settled.
func (m *member) consumeDirectly(msg *wire.Message, broker string) *wire.ConsumeDirectlyResult {
	start := m.s.rt.Now()
	q := Queue{Topic: string(msg.Topic), Broker: broker, ID: msg.QueueID}
	answer := make(chan frame.Verdict, 1)
	own, one := queue.NewDirect(q, msg, func(v frame.Verdict) { answer <- v })
	m.s.sink.Offer(own, one)
	timer := time.NewTimer(directLimit)
	defer timer.Stop()
	res := &wire.ConsumeDirectlyResult{AutoCommit: true, Order: m.s.config().Order.ordered()}
	select {
	case v := <-answer:
		res.Result, res.Remark = directResult(v)
	case <-timer.C:
		own.End()
		m.s.sink.Revoke(own, true)
		res.Result, res.Remark = wire.ConsumeThrewException, "the handler did not answer within "+directLimit.String()
	case <-m.done:
		res.Result, res.Remark = wire.ConsumeThrewException, errors.New("the member has stopped").Error()
	}
	res.SpentMillis = m.s.rt.Now().Sub(start).Milliseconds()
	return res
}

func directResult(v frame.Verdict) (wire.ConsumeResult, string) {
	switch v.Kind {
	case frame.VerdictAck:
		return wire.ConsumeSuccess, ""
	case frame.VerdictRetry:
		return wire.ConsumeLater, v.Class + ": " + v.Text
	default:
		return wire.ConsumeThrewException, v.Class + ": " + v.Text
	}
}
