package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// Config is all that the engine is told. What is zero gets design.md 15's default, except where said otherwise.
type Config struct {
	Streams    []StreamConfig
	Brokers    map[string]Broker // by the name that streams use
	Handlers   Handlers
	Strategies Strategies
	Observer   Observer // nil = none
	Memory     int64    // bytes that the windows of all streams may hold; 0 = DefaultMemory
	Version    string   // of streamd, for the other members
	// Offsets opens the offsets of a stream that broadcasts; nil = no stream may.
	Offsets func(c *StreamConfig) (Offsets, error)
	// FailureFile takes failure records that their topic does not take, one file a stream: FailureFile(stream). nil = none.
	FailureFile func(stream string) string
	Now         func() time.Time // nil = time.Now
	Rand        func() float64   // [0,1), for jitter; nil = math/rand
	Logger      *slog.Logger     // nil = discard
}

// StreamConfig is one entry under streams:.
type StreamConfig struct {
	Name          string
	Broker        string
	Namespace     string // that the broker's client puts before names; empty = none
	Group         string
	Subscriptions []Subscription
	// Broadcasting gives every member all queues: each handles every message, and keeps its offsets itself (Config.Offsets).
	// Strategy, AllowUncovered and Fallback are not looked at; OnExhausted is Block or Skip.
	Broadcasting bool
	StartFrom    StartFrom
	Strategy     StrategySpec // Stream is filled in; the zero value is "averagely"
	// AllowUncovered lets a strategy that is partial by design leave queues unowned.
	AllowUncovered bool
	// Fallback is the built-in strategy that all members go over to when the configured one is proved broken.
	Fallback string
	Handler  string
	// HandlerVersion changes when the handler's binary or config does, so that Apply opens its lanes anew.
	HandlerVersion string
	Concurrency    int
	Shards         int // lanes; 0 = 1
	Credits        int // records that the plugin may buffer over all lanes; 0 = 8 batches a lane
	Batch          Batch
	Deadline       time.Duration
	Window         Window
	Retry          Retry
	OnExhausted    OnExhausted
	Order          Order // empty = none
	HandlerDown    HandlerDown
	OutputTopic    string
	// FailureTopic takes failure records; "" = STREAMD_FAILURES, "-" = none.
	FailureTopic string
	// DrainLimit bounds a hand-over; 0 = the deadline and 5 s.
	DrainLimit time.Duration
	Pull       Pull
	Commit     Commit
}

// Subscription is one topic of a stream with its filter.
type Subscription struct {
	Topic string
	Tags  string // "a || b"; empty or "*" = all
	SQL   string // an SQL92 expression over the properties, which brokers evaluate; excludes Tags
}

// StartFrom is where a group without offsets starts. The zero value is the queue's end.
type StartFrom struct {
	First bool
	At    time.Time // not zero: the first message stored at or after it
}

// Batch bounds what goes to a handler at once.
type Batch struct {
	Max    int
	Bytes  int
	Linger time.Duration // most a batch waits to fill while others are out; negative = none
}

// Window bounds what is pulled and not settled.
type Window struct {
	Messages    int   // per queue
	Bytes       int64 // per queue
	Span        int64 // per queue: offsets between the oldest unsettled message and the newest
	StreamBytes int64
}

// Retry is what becomes of failed messages.
type Retry struct {
	MaxRetries int             // as RocketMQ counts: 16 = 17 deliveries. 0 = the first failure is the last; -1 = 16
	Levels     []time.Duration // the broker's delay levels; nil = RocketMQ's 18
	Backoff    Backoff         // of tries in place
}

// Backoff paces the tries of a message in place, in streams that send nothing back: First after its first failure, twice as
// long after each further one, at most Most.
type Backoff = settle.Backoff

// OnExhausted is what becomes of a message whose retries are used up.
type OnExhausted string

// What on_exhausted may be; empty is dead_letter.
const (
	DeadLetter OnExhausted = "dead_letter"
	Block      OnExhausted = "block"
	Skip       OnExhausted = "skip" // the operator accepted the loss
)

// Pull tunes pulls; zero values are the defaults.
type Pull struct {
	Messages int
	Bytes    int
	Hold     time.Duration
}

// Commit tunes commits; zero values are the defaults.
type Commit struct {
	Every time.Duration
	Count int
}

// The defaults (design.md 15).
const (
	DefaultMemory      int64 = 512 << 20
	DefaultConcurrency       = 20
	DefaultDeadline          = 60 * time.Second
	DefaultMaxRetries        = 16
	DefaultStrategy          = "averagely"

	defaultBatch       = 32
	defaultBatchBytes  = 256 << 10
	defaultLinger      = time.Millisecond
	defaultMessages    = 1000
	defaultBytes       = 16 << 20
	defaultSpan        = 2000
	defaultStreamBytes = 64 << 20
	defaultPull        = 32
	defaultPullBytes   = 256 << 10
	defaultHold        = 15 * time.Second
	defaultCommitEvery = time.Second
	defaultCommitCount = 1000
	defaultHandlerHold = 60 * time.Second
	defaultFirstPause  = time.Second
	defaultMostPause   = 30 * time.Second
	drainMargin        = 5 * time.Second
	creditBatches      = 8
	blockPause         = 30 * time.Second
	tailMargin         = 10 * time.Minute
	failureFileBytes   = 64 << 20
)

func preset[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// withDefaults fills in what was left out. cfg itself is not changed.
func (cfg Config) withDefaults() Config {
	preset(&cfg.Memory, DefaultMemory)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Streams = slices.Clone(cfg.Streams)
	for i := range cfg.Streams {
		cfg.Streams[i] = withStreamDefaults(cfg.Streams[i])
	}
	return cfg
}

func withStreamDefaults(s StreamConfig) StreamConfig {
	if s.Strategy.Name == "" && s.Strategy.Plugin == "" {
		s.Strategy.Name = DefaultStrategy
	}
	s.Strategy.Stream = s.Name
	preset(&s.Fallback, DefaultStrategy)
	preset(&s.Concurrency, DefaultConcurrency)
	preset(&s.Shards, 1)
	preset(&s.Batch.Max, defaultBatch)
	preset(&s.Batch.Bytes, defaultBatchBytes)
	preset(&s.Batch.Linger, defaultLinger)
	preset(&s.Deadline, DefaultDeadline)
	preset(&s.Window.Messages, defaultMessages)
	preset(&s.Window.Bytes, defaultBytes)
	preset(&s.Window.Span, defaultSpan)
	preset(&s.Window.StreamBytes, defaultStreamBytes)
	if s.Retry.MaxRetries < 0 {
		s.Retry.MaxRetries = DefaultMaxRetries
	}
	if s.Retry.Levels == nil {
		s.Retry.Levels = settle.DefaultLevels()
	}
	preset(&s.OnExhausted, DeadLetter)
	preset(&s.Order, OrderNone)
	preset(&s.Retry.Backoff.First, defaultFirstPause)
	preset(&s.Retry.Backoff.Most, max(defaultMostPause, s.Retry.Backoff.First))
	preset(&s.HandlerDown.Hold, defaultHandlerHold)
	if s.Broadcasting {
		s.HandlerDown.Stay = true // nobody takes its queues
	}
	preset(&s.FailureTopic, settle.DefaultFailureTopic)
	preset(&s.DrainLimit, s.Deadline+drainMargin)
	preset(&s.Pull.Messages, defaultPull)
	preset(&s.Pull.Bytes, defaultPullBytes)
	preset(&s.Pull.Hold, defaultHold)
	preset(&s.Commit.Every, defaultCommitEvery)
	preset(&s.Commit.Count, defaultCommitCount)
	preset(&s.Credits, max(creditBatches*s.Batch.Max, 2*s.Concurrency))
	return s
}

// check tells everything that is wrong, all at once.
func (cfg Config) check() error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if cfg.Handlers == nil {
		fail("no handlers are given")
	}
	if cfg.Memory < 0 {
		fail("memory %d is negative", cfg.Memory)
	}
	names, groups := map[string]bool{}, map[string]string{}
	for i := range cfg.Streams {
		s := &cfg.Streams[i]
		if names[s.Name] {
			fail("stream %q is there twice: give each its own name", s.Name)
		}
		names[s.Name] = true
		key := s.Broker + "\x00" + s.Group
		if other, taken := groups[key]; taken {
			fail("streams %q and %q are both of group %q on broker %q: a group has one member in a process, so merge them or choose another group", other, s.Name, s.Group, s.Broker)
		}
		groups[key] = s.Name
		if cfg.Brokers[s.Broker] == nil {
			fail("stream %q names broker %q, which is not there", s.Name, s.Broker)
		}
		for _, err := range append(s.check(), cfg.checkBroadcasting(s)...) {
			fail("stream %q: %w", s.Name, err)
		}
	}
	return errors.Join(errs...)
}

func (s *StreamConfig) check() (errs []error) {
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Name == "" {
		fail("has no name")
	}
	if err := wire.ValidateGroup(s.Group); err != nil {
		errs = append(errs, err)
	}
	if s.Handler == "" {
		fail("has no handler")
	}
	if len(s.Subscriptions) == 0 {
		fail("subscribes to nothing")
	}
	seen := map[string]bool{}
	for _, sub := range s.Subscriptions {
		if err := wire.ValidateTopic(sub.Topic); err != nil {
			errs = append(errs, err)
		}
		if seen[sub.Topic] {
			fail("subscribes to topic %q twice: put the tags into one entry, as \"a || b\"", sub.Topic)
		}
		seen[sub.Topic] = true
		if err := sub.checkFilter(); err != nil {
			fail("topic %q: %w", sub.Topic, err)
		}
	}
	return append(errs, s.checkNumbers()...)
}

func (s *StreamConfig) checkNumbers() (errs []error) {
	between := func(what string, v, low, high int64) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("%s is %d; it has to be between %d and %d", what, v, low, high))
		}
	}
	const most = 1 << 40
	between("concurrency", int64(s.Concurrency), 1, 100_000)
	between("shards", int64(s.Shards), 1, 1024)
	between("batch.max", int64(s.Batch.Max), 1, 4096)
	between("batch.bytes", int64(s.Batch.Bytes), 1, 64<<20)
	between("credits", int64(s.Credits), 1, 1<<20)
	between("window.messages", int64(s.Window.Messages), 1, 1<<20)
	between("window.bytes", s.Window.Bytes, 1, most)
	between("window.span", s.Window.Span, 1, 1<<20)
	between("window.stream_bytes", s.Window.StreamBytes, 1, most)
	between("retry.max_retries", int64(s.Retry.MaxRetries), 0, 1<<16)
	between("pull.messages", int64(s.Pull.Messages), 1, 4096)
	between("pull.bytes", int64(s.Pull.Bytes), 1, 16<<20)
	if s.HandlerDown.Hold < 0 {
		errs = append(errs, fmt.Errorf("handler_down.hold %s is negative", s.HandlerDown.Hold))
	}
	if s.Deadline < time.Millisecond {
		errs = append(errs, fmt.Errorf("deadline %s is less than 1ms", s.Deadline))
	}
	if !slices.IsSorted(s.Retry.Levels) {
		errs = append(errs, errors.New("retry.levels have to ascend, as the broker's messageDelayLevel does"))
	}
	switch s.Order {
	case OrderNone, OrderQueue, OrderKey:
	default:
		errs = append(errs, fmt.Errorf("order is %q; it is none, queue or key", s.Order))
	}
	if b := s.Retry.Backoff; b.First < 0 || b.Most < b.First {
		errs = append(errs, fmt.Errorf("retry.backoff goes from %s to %s; it has to ascend", b.First, b.Most))
	}
	switch s.OnExhausted {
	case DeadLetter, Block, Skip:
	default:
		errs = append(errs, fmt.Errorf("on_exhausted is %q; it is dead_letter, block or skip", s.OnExhausted))
	}
	return errs
}

// parseTags reads a tag expression into a set; nil = all.
func parseTags(expression string) (map[string]struct{}, error) {
	if e := strings.TrimSpace(expression); e == "" || e == "*" {
		return nil, nil
	}
	tags, err := wire.ParseTags(expression)
	if err != nil {
		return nil, fmt.Errorf("reading tags %q: %w", expression, err)
	}
	if len(tags) == 0 {
		return nil, nil
	}
	set := make(map[string]struct{}, len(tags))
	for _, t := range tags {
		set[t] = struct{}{}
	}
	return set, nil
}

func (s *StreamConfig) policy() *settle.Policy {
	p := &settle.Policy{Group: s.Group, MaxRetries: s.Retry.MaxRetries, Levels: s.Retry.Levels, OutputTopic: s.OutputTopic, BlockPause: blockPause, Backoff: s.Retry.Backoff}
	p.InPlace, p.NoDeadLetters = s.Broadcasting, s.Broadcasting
	switch s.OnExhausted {
	case Block:
		p.OnExhausted = settle.ExhaustedBlock
	case Skip:
		p.OnExhausted = settle.ExhaustedSkip
	case DeadLetter:
		p.OnExhausted = settle.ExhaustedDeadLetter
	}
	return p
}

func (s *StreamConfig) from() queue.From {
	switch {
	case s.StartFrom.First:
		return queue.From{Where: queue.WhereFirst}
	case !s.StartFrom.At.IsZero():
		return queue.From{Where: queue.WhereTimestamp, At: s.StartFrom.At}
	}
	return queue.From{Where: queue.WhereLast}
}

// equal tells whether two configs of a stream are the same.
func (s *StreamConfig) equal(o *StreamConfig) bool {
	a, b := *s, *o
	same := slices.Equal(a.Subscriptions, b.Subscriptions) && slices.Equal(a.Retry.Levels, b.Retry.Levels) && sameStrategy(a.Strategy, b.Strategy)
	return same && a.scalars() == b.scalars()
}

func sameStrategy(a, b StrategySpec) bool {
	return a.Name == b.Name && a.Plugin == b.Plugin && a.Use == b.Use && bytes.Equal(a.Config, b.Config)
}

// scalars are the fields that compare with ==.
type scalars struct {
	name, broker, group, fallback, handler, handlerVersion, output, failures string
	start                                                                    StartFrom
	broadcasting, uncovered                                                  bool
	concurrency, shards, credits, maxRetries                                 int
	batch                                                                    Batch
	window                                                                   Window
	deadline, drain                                                          time.Duration
	exhausted                                                                OnExhausted
	order                                                                    Order
	backoff                                                                  Backoff
	handlerDown                                                              HandlerDown
	pull                                                                     Pull
	commit                                                                   Commit
}

func (s *StreamConfig) scalars() scalars {
	return scalars{
		broadcasting: s.Broadcasting, name: s.Name, broker: s.Broker, group: s.Group, fallback: s.Fallback, handler: s.Handler, handlerVersion: s.HandlerVersion,
		output: s.OutputTopic, failures: s.FailureTopic, start: s.StartFrom, uncovered: s.AllowUncovered, concurrency: s.Concurrency,
		shards: s.Shards, credits: s.Credits, maxRetries: s.Retry.MaxRetries, batch: s.Batch, window: s.Window, deadline: s.Deadline,
		order: s.Order, backoff: s.Retry.Backoff, drain: s.DrainLimit, exhausted: s.OnExhausted, handlerDown: s.HandlerDown, pull: s.Pull, commit: s.Commit,
	}
}

// sameLanes tells whether two configs want the same lanes.
func (s *StreamConfig) sameLanes(o *StreamConfig) bool {
	return s.Handler == o.Handler && s.HandlerVersion == o.HandlerVersion && s.Concurrency == o.Concurrency && s.Shards == o.Shards &&
		s.Credits == o.Credits && s.Deadline == o.Deadline
}
