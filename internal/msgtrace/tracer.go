package msgtrace

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Sender stores one message. *rocketmq.Client fills it.
type Sender interface {
	Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
}

// Config makes a Tracer. Logger must be set.
type Config struct {
	Topic  string // the brokers' msgTraceTopicName; empty = RMQ_SYS_TRACE_TOPIC
	Logger *slog.Logger
	Now    func() time.Time // nil = time.Now
}

// The limits of Java's AsyncTraceDispatcher.
const (
	queueSize = 2048
	batchSize = 10
	flushGap  = 5 * time.Second
	// maxText ends a message of the trace.
	maxText = 128_000
	// maxKeys bounds the text of a message's KEYS, which shares 32,767 bytes with all other properties.
	maxKeys     = 16 << 10
	sendTimeout = 5 * time.Second
	senders     = 4
)

// Counts tell what became of the records, since the start.
type Counts struct {
	Written uint64 `json:"written"`
	Dropped uint64 `json:"dropped"` // the queue was full
	Failed  uint64 `json:"failed"`  // no broker stored them
}

// Tracer writes the trace of one cluster. All but Run and Close may be called from any goroutine, and do not block.
type Tracer struct {
	cfg   Config
	ids   *wire.IDGenerator
	queue chan record
	send  chan message
	end   chan struct{}
	once  sync.Once
	done  sync.WaitGroup

	written, dropped, failed atomic.Uint64
	warned                   atomic.Int64 // when a loss was logged last, Unix seconds
}

// message is some records of one topic.
type message struct {
	text    []byte
	keys    map[string]struct{}
	keySize int
	order   []string // of keys
	records uint64
}

// New makes a tracer. It takes records at once and writes them when it runs.
func New(cfg Config) *Tracer {
	if cfg.Topic == "" {
		cfg.Topic = wire.TraceTopic
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Tracer{
		cfg: cfg, ids: wire.NewIDGenerator(netip.AddrFrom4([4]byte{127, 0, 0, 1}), os.Getpid(), uint32(cfg.Now().UnixNano())), //nolint:gosec // any bits will do
		queue: make(chan record, queueSize), send: make(chan message), end: make(chan struct{}),
	}
}

// Counts tell what became of the records.
func (t *Tracer) Counts() Counts {
	return Counts{Written: t.written.Load(), Dropped: t.dropped.Load(), Failed: t.failed.Load()}
}

// traces tells whether messages of a topic are traced.
func (t *Tracer) traces(topic string) bool { return topic != t.cfg.Topic }

// Sent is for rocketmq.Config.Sent.
func (t *Tracer) Sent(s *rocketmq.SentMessage) {
	if t.traces(s.Message.Topic) && !s.Result.TraceOff {
		t.put(published(s))
	}
}

func (t *Tracer) put(r record) {
	select {
	case <-t.end:
		t.dropped.Add(1)
		return
	default:
	}
	select {
	case t.queue <- r:
	default:
		t.dropped.Add(1)
		t.warn("the queue of records is full", nil)
	}
}

// warn tells of a loss, once a minute.
func (t *Tracer) warn(why string, err error) {
	now, last := t.cfg.Now().Unix(), t.warned.Load()
	if now-last < 60 || !t.warned.CompareAndSwap(last, now) {
		return
	}
	c := t.Counts()
	args := []any{"why", why, "topic", t.cfg.Topic, "dropped", c.Dropped, "failed", c.Failed}
	if err != nil {
		args = append(args, "error", err)
	}
	t.cfg.Logger.Warn("records of RocketMQ's message trace are lost", args...)
}

// Start writes until Close.
func (t *Tracer) Start(to Sender) {
	for range senders {
		t.done.Go(func() {
			for m := range t.send {
				t.store(to, m)
			}
		})
	}
	t.done.Go(t.gather)
}

// Close writes what is queued and ends, within ctx. What comes later is dropped.
func (t *Tracer) Close(ctx context.Context) error {
	t.once.Do(func() { close(t.end) })
	done := make(chan struct{})
	go func() {
		t.done.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("writing the last records of RocketMQ's message trace: %w", context.Cause(ctx))
	}
}

// gather puts records together: by topic, as many as fit, none waiting longer than flushGap.
func (t *Tracer) gather() {
	defer close(t.send)
	var batch []record
	timer := time.NewTimer(flushGap)
	defer timer.Stop()
	flush := func() {
		for _, m := range messages(batch) {
			t.send <- m
		}
		batch = batch[:0]
	}
	for {
		select {
		case r := <-t.queue:
			if len(batch) == 0 {
				timer.Reset(flushGap)
			}
			if batch = append(batch, r); len(batch) >= batchSize {
				flush()
			}
		case <-timer.C:
			flush()
		case <-t.end:
			for len(t.queue) > 0 {
				batch = append(batch, <-t.queue)
			}
			flush()
			return
		}
	}
}

// messages are the messages that records travel in, by topic in the order of their first records.
func messages(records []record) (all []message) {
	open := map[string]int{} // by topic
	for _, r := range records {
		i, ok := open[r.topic]
		if !ok || all[i].full(r) {
			i = len(all)
			open[r.topic] = i
			all = append(all, message{keys: map[string]struct{}{}})
		}
		all[i].add(r)
	}
	return all
}

func (m *message) full(r record) bool {
	size := m.keySize
	for _, k := range r.keys {
		size += len(k) + 1
	}
	return len(m.text)+len(r.text) > maxText || size > maxKeys
}

func (m *message) add(r record) {
	m.text = append(m.text, r.text...)
	m.records++
	for _, k := range r.keys {
		if _, there := m.keys[k]; !there && len(k) < maxKeys {
			m.keys[k] = struct{}{}
			m.order = append(m.order, k)
			m.keySize += len(k) + 1
		}
	}
}

func (t *Tracer) store(to Sender, m message) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if _, err := to.Send(ctx, &rocketmq.OutgoingMessage{Topic: t.cfg.Topic, Keys: m.order, Body: m.text}); err != nil {
		t.failed.Add(m.records)
		t.warn("no broker stores them; is the topic there (traceTopicEnable=true, or mqadmin updateTopic), and may this account write to it?", err)
		return
	}
	t.written.Add(m.records)
}
