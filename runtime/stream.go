package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/lease"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/rates"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// stream is one running stream: what its parts share, and their goroutines.
type stream struct {
	name   string
	rt     Config // seams, clock, logger; its Streams are not looked at
	broker Broker
	log    *slog.Logger
	shares *shares // of the memory for messages

	current  atomic.Pointer[StreamConfig]
	policy   atomic.Pointer[settle.Policy]
	settings atomic.Pointer[map[string]*queue.Settings] // by topic
	retryOff atomic.Bool
	// placeUntil is until when failed messages are tried in place after the stream's order was taken off.
	placeUntil atomic.Pointer[time.Time]
	version    atomic.Int64 // of the subscriptions
	filters    filters

	rates    *rates.Table
	started  time.Time
	offsets  Offsets // of a stream that broadcasts, from its start on; else nil
	sink     *sink
	settler  *settle.Settler
	keeper   *lease.Keeper
	recorder *settle.Recorder
	member   *member

	endMember func(error) // second stage of a stop: workers give up
	endParts  context.CancelFunc
	parts     sync.WaitGroup
}

func newStream(rt Config, c StreamConfig, process *queue.Budget) *stream {
	s := &stream{
		name: c.Name, rt: rt, broker: rt.Brokers[c.Broker],
		log:    rt.Logger.With("stream", c.Name, "group", c.Group),
		shares: newShares("stream "+c.Name, c.Window.StreamBytes, process),
		rates:  rates.New(rt.Now), started: rt.Now(),
	}
	s.use(c)
	s.recorder = settle.NewRecorder(s.recorderConfig(c))
	s.settler = settle.New(settle.Config{
		Policy: s.policy.Load, Broker: s.broker, RetryOff: s.retryOff.Load, Again: func(d *queue.Delivery) { s.sink.again(d) },
		Done:        func(o *queue.Ownership, strand uint32) { s.sink.done(o, strand) },
		Broken:      func(d *queue.Delivery, j *settle.Job) { s.sink.broken(d, j) },
		Failed:      func(d *queue.Delivery, v frame.Verdict, by *frame.LaneInfo) { s.failed(d, v, by, rt.Now()) },
		OutputLimit: func() int64 { return s.config().Window.StreamBytes }, Relieved: func() { s.sink.poke() },
		Now: rt.Now, Logger: s.log,
	})
	s.keeper = s.newKeeper()
	s.sink = newSink(s)
	s.member = newMember(s)
	return s
}

func (s *stream) config() *StreamConfig { return s.current.Load() }

// use makes c the stream's config for everything that reads it at each use.
func (s *stream) use(c StreamConfig) {
	old := s.current.Load()
	s.policy.Store(s.policyOf(&c))
	if old == nil || !sameSubscriptions(old, &c) {
		s.version.Store(max(s.rt.Now().UnixMilli(), s.version.Load()+1))
	}
	table := make(map[string]*queue.Settings, len(c.Subscriptions)+1)
	for _, sub := range s.subscriptions(&c) {
		table[sub.Topic] = s.queueSettings(&c, sub)
	}
	if before := s.settings.Load(); before != nil {
		for topic, kept := range *before { // a topic that goes keeps its filter until its queues are given up
			if table[topic] == nil {
				table[topic] = kept
			}
		}
	}
	s.settings.Store(&table)
	s.current.Store(&c)
	s.shares.setLimit(c.Window.StreamBytes)
}

func sameSubscriptions(a, b *StreamConfig) bool {
	if len(a.Subscriptions) != len(b.Subscriptions) {
		return false
	}
	for i := range a.Subscriptions {
		if a.Subscriptions[i] != b.Subscriptions[i] {
			return false
		}
	}
	return true
}

// subscriptions are what the group subscribes to: the stream's topics, and the retry topic as Java's client adds it.
func (s *stream) subscriptions(c *StreamConfig) []rocketmq.Subscription {
	version := s.version.Load()
	all := make([]rocketmq.Subscription, 0, len(c.Subscriptions)+1)
	for _, sub := range c.Subscriptions {
		all = append(all, sub.subscription(version))
	}
	if c.Broadcasting {
		return all // it has no retries at the broker
	}
	return append(all, rocketmq.Subscription{Topic: wire.RetryTopic(c.Group), Expression: "*", Type: rocketmq.FilterTag, Version: version})
}

func (s *stream) queueSettings(c *StreamConfig, sub rocketmq.Subscription) *queue.Settings {
	var tags map[string]struct{} // brokers alone evaluate SQL92
	if sub.Type != rocketmq.FilterSQL92 {
		tags, _ = parseTags(sub.Expression) // check has parsed them
	}
	return &queue.Settings{
		Limits:       queue.Limits{Messages: c.Window.Messages, Bytes: c.Window.Bytes, Span: c.Window.Span},
		PullMessages: c.Pull.Messages, PullBytes: c.Pull.Bytes, PullHold: c.Pull.Hold,
		CommitEvery: c.Commit.Every, CommitCount: uint64(c.Commit.Count), //nolint:gosec // checked to be positive
		DrainLimit: c.DrainLimit, From: c.from(), Margin: tailMargin, Subscription: sub, Tags: tags,
	}
}

func (s *stream) recorderConfig(c StreamConfig) settle.RecorderConfig {
	rc := settle.RecorderConfig{Topic: c.FailureTopic, Broker: s.broker, MaxBytes: failureFileBytes, Logger: s.log}
	if rc.Topic == "-" {
		rc.Topic = ""
	} else if s.rt.FailureFile != nil {
		rc.Path = s.rt.FailureFile(c.Name)
	}
	return rc
}

// start runs the parts and waits until the group was joined once, or cannot be joined now; see Runtime.Start.
func (s *stream) start(ctx context.Context) error {
	if err := s.openOffsets(); err != nil {
		return err
	}
	parts, end := context.WithCancel(context.WithoutCancel(ctx)) // the parts outlive the start
	s.endParts = end
	s.parts.Go(func() { s.settler.Run(parts) })
	s.parts.Go(func() { s.keeper.Run(parts) })
	s.parts.Go(func() { s.recorder.Run(parts) })
	s.sink.start(parts)
	life, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	s.endMember = cut
	joined := make(chan error, 1)
	go s.member.run(life, joined)
	var err error
	select {
	case err = <-joined:
	case <-ctx.Done():
		err = context.Cause(ctx)
		cut(err)
	}
	if err == nil {
		return nil
	}
	<-s.member.done
	return fmt.Errorf("starting stream %s: %w", s.name, errors.Join(err, s.end()))
}

func (s *stream) end() error {
	s.endMember(nil)
	s.endParts()
	s.sink.wait()
	s.parts.Wait()
	return s.closeOffsets()
}

// errCut ends what a stop could not wait for.
var errCut = errors.New("the time to stop is up")

// stop drains, and cuts off what ctx does not wait for.
func (s *stream) stop(ctx context.Context) error {
	s.member.stop()
	select {
	case <-s.member.done:
	case <-ctx.Done():
		s.endMember(errCut)
		<-s.member.done
	}
	closed := s.end()
	if err := errors.Join(s.member.leftover(), closed); err != nil {
		return fmt.Errorf("stopping stream %s: %w", s.name, err)
	}
	return nil
}

// apply changes a running stream whose broker and group stay the same.
func (s *stream) apply(c StreamConfig) {
	old := s.config()
	subscribed, strategy := sameSubscriptions(old, &c), sameStrategy(old.Strategy, c.Strategy) && old.AllowUncovered == c.AllowUncovered && old.Fallback == c.Fallback
	lanes := old.sameLanes(&c)
	s.use(c)
	if !lanes {
		s.sink.replace(old.Order.ordered() || c.Order.ordered())
	} else {
		s.sink.configure(dispatchSettings(&c))
	}
	s.member.changed(!subscribed, !strategy)
	if old.Order != c.Order {
		s.reorder(old.Order, c.Order)
	}
}

func dispatchSettings(c *StreamConfig) dispatch.Settings {
	return dispatch.Settings{BatchMax: c.Batch.Max, BatchBytes: c.Batch.Bytes, Linger: max(0, c.Batch.Linger), Deadline: c.Deadline}
}

// queueConfig is what a worker of q runs with.
func (s *stream) queueConfig(q Queue, epoch uint64, released func(queue.Report)) queue.Config {
	c := s.config()
	qc := queue.Config{
		Group: c.Group, Queue: q, Retry: q.Topic == wire.RetryTopic(c.Group), Namespace: c.Namespace, Epoch: epoch,
		Settings: func() *queue.Settings {
			if t := (*s.settings.Load())[q.Topic]; t != nil {
				return t
			}
			return s.queueSettings(s.config(), rocketmq.Subscription{Topic: q.Topic, Expression: "*", Type: rocketmq.FilterTag})
		},
		Broker: s.broker, Budget: s.shares.of(q.Broker), Sink: s.sink, Newness: s.member.newness, Now: s.rt.Now, Rand: s.rt.Rand, Logger: s.log,
		Pulled: func(n int, took time.Duration) { s.rates.Pulled(q.Topic, n, took) },
		Order:  c.Order.ofQueue(), Locks: s.locks(c),
		Released: released, Owned: func() int { return int(s.member.owned.Load()) },
	}
	if s.offsets != nil {
		own := ownOffsets{s.broker, s.offsets}
		qc.Own, qc.Broker, qc.Newness = true, own, own
	}
	return qc
}

// timeLimit is a context for one question.
func timeLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
