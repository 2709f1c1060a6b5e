package runtime

import (
	"encoding/json"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// runningInfo answers 307: what tools read of any member, and in its properties what streamd members read of each other.
func (m *member) runningInfo(stacks bool) *wire.ConsumerRunningInfo {
	st := m.s.status()
	c := m.s.config()
	info := &wire.ConsumerRunningInfo{
		Queues: wire.QueueTable[wire.ProcessQueueInfo]{}, PopTable: wire.QueueTable[wire.PopProcessQueueInfo]{},
		Status: map[string]wire.ConsumeStatus{}, UserConsumerInfo: map[string]string{}, Properties: m.properties(c),
	}
	for _, sub := range m.s.subscriptions(c) {
		if data, err := wire.NewSubscriptionData(sub.Topic, string(sub.Type), sub.Expression, sub.Version); err == nil {
			info.Subscriptions = append(info.Subscriptions, data)
		}
		info.Status[sub.Topic] = m.consumeStatus(sub.Topic)
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
	info.Properties[absentProperty] = m.views.absentText()
	if text, err := json.Marshal(m.peerInfo(&st)); err == nil {
		info.Properties[PeerInfoProperty] = string(text)
	}
	if stacks {
		info.Jstack = goroutines()
	}
	return info
}

// properties are Java's, as far as there is a counterpart: tools read some of them, people the others. The client adds what
// it alone knows.
func (m *member) properties(c *StreamConfig) map[string]string {
	from, model := m.fromWhere(c), wire.Clustering
	if c.Broadcasting {
		model = wire.Broadcasting
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	p := map[string]string{
		wire.RunningConsumeType: string(wire.ConsumePassively),
		wire.RunningOrderly:     strconv.FormatBool(c.Order.ordered()),
		wire.RunningVersion:     wire.OwnVersion.String(),
		wire.RunningThreads:     number(int64(c.Concurrency)),
		wire.RunningStartMillis: number(millis(m.s.started)),

		"consumerGroup": c.Group, "messageModel": string(model), "consumeFromWhere": string(from), "language": "GO",
		"consumeThreadMin": number(int64(c.Concurrency)), "consumeThreadMax": number(int64(c.Concurrency)),
		"consumeMessageBatchMaxSize": number(int64(c.Batch.Max)), "consumeConcurrentlyMaxSpan": number(c.Window.Span),
		"pullThresholdForQueue": number(int64(c.Window.Messages)), "pullThresholdSizeForQueue": number(c.Window.Bytes >> 20),
		"pullBatchSize": number(int64(c.Pull.Messages)), "pullBatchSizeInBytes": number(int64(c.Pull.Bytes)),
		"maxReconsumeTimes": number(int64(c.Retry.MaxRetries)), "consumeTimeout": number(int64(c.Deadline.Minutes())),
		"persistConsumerOffsetInterval": number(c.Commit.Every.Milliseconds()),
		"postSubscriptionWhenPull":      "true", "clientRebalance": "true", "unitMode": "false",
		"allocateMessageQueueStrategy": strategyName(c.Strategy),

		allocate.PropertyStreamd: m.s.rt.Version,
	}
	if from == rocketmq.FromTimestamp {
		p["consumeTimestamp"] = c.StartFrom.At.Local().Format("20060102150405")
	}
	if m.s.rt.Version == "" {
		p[allocate.PropertyStreamd] = "dev"
	}
	return p
}

func (m *member) fromWhere(c *StreamConfig) rocketmq.FromWhere {
	switch {
	case c.StartFrom.First:
		return rocketmq.FromFirst
	case !c.StartFrom.At.IsZero():
		return rocketmq.FromTimestamp
	}
	return rocketmq.FromLast
}

func (m *member) consumeStatus(topic string) wire.ConsumeStatus {
	r := m.s.rates.Read(topic)
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return wire.ConsumeStatus{
		PullRT: milliseconds(r.PullTime), PullTPS: r.Pulled, ConsumeRT: milliseconds(r.ConsumeTime), OKTPS: r.OK, FailedTPS: r.Failed,
		FailedMessages: r.FailedHour,
	}
}

// addProcessQueue describes an owned or draining queue. Tools take a queue for stuck that has messages and for a minute no
// settled one (ConsumerRunningInfo.analyzeProcessQueue).
func addProcessQueue(info *wire.ConsumerRunningInfo, q *QueueStatus) {
	if q.State == string(group.Waiting) {
		return
	}
	p := wire.ProcessQueueInfo{
		CommitOffset: q.Committed, Locked: true, LastLockMillis: millis(q.Acquired), Dropped: q.State == string(group.Draining),
		LastPullMillis: millis(latest(q.LastPull, q.Acquired)), LastConsumeMillis: millis(latest(q.LastSettled, q.Acquired)),
	}
	if q.Messages > 0 {
		p.CachedCount, p.CachedMiB = int32(min(q.Messages, 1<<30)), int32(q.Bytes>>20) //nolint:gosec // bounded by the window
		p.CachedMinOffset, p.CachedMaxOffset = q.Safe, max(q.Safe, q.Next-1)
	}
	if q.Phase == queue.PhaseLocking || q.Lock.Held { // an ordered queue
		p.Locked, p.LastLockMillis = q.Lock.Held, millis(q.Lock.At)
	}
	info.Queues[wire.MessageQueue{Topic: q.Queue.Topic, BrokerName: q.Queue.Broker, QueueID: q.Queue.ID}] = p
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// mostStacks bounds the dump of goroutines, which travels through a broker.
const mostStacks = 1 << 20

// goroutines is the counterpart of Java's thread dump: the stacks of all goroutines, equal ones together with their number.
func goroutines() string {
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return fmt.Sprintf("reading the goroutines: %v", err)
	}
	all := text.String()
	if len(all) > mostStacks {
		all = all[:mostStacks] + "\n(cut)\n"
	}
	return all
}
