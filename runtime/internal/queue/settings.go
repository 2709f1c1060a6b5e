package queue

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/sdk"
)

// Broker is what a worker needs of a cluster: a part of the engine's seam of that name, with its rules.
type Broker interface {
	Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error)
	StartPull(req *rocketmq.PullRequest, done func(*rocketmq.PullResult, error)) (cancel func(), ok bool)
	Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (reset bool, err error)
	Committed(ctx context.Context, group string, q sdk.Queue) (offset int64, ok bool, err error)
	MinOffset(ctx context.Context, q sdk.Queue) (int64, error)
	MaxOffset(ctx context.Context, q sdk.Queue) (int64, error)
	OffsetAt(ctx context.Context, q sdk.Queue, at time.Time) (int64, error)
}

// Sink takes what a worker pulled. Neither method may block.
type Sink interface {
	Offer(o *Ownership, ds []Delivery)
	// Revoke takes a queue back: what was not sent to a handler is dropped; with cut, what was sent is given up too.
	Revoke(o *Ownership, cut bool)
}

// Newness answers whether a group has offsets for other queues of a topic; failures are asked again.
type Newness interface {
	OthersHaveOffsets(ctx context.Context, q sdk.Queue) (bool, error)
}

// Settings are what a reload may change while a queue is owned.
type Settings struct {
	Limits       Limits
	PullMessages int           // most messages of one pull
	PullBytes    int           // most bytes of one pull
	PullHold     time.Duration // how long the broker may hold a pull that finds nothing
	CommitEvery  time.Duration // at the latest; see commitPace
	CommitCount  uint64        // settled messages after which a commit does not wait for CommitEvery
	DrainLimit   time.Duration // how long a hand-over waits for messages at handlers: the deadline and a margin
	From         From
	Margin       time.Duration // how far before the last settled store time a lost tail is read again
	Subscription rocketmq.Subscription
	Tags         map[string]struct{} // the tags to keep; nil = all. Checked again here: brokers compare hashes only
}

// GarbageTries is how often a message that does not decode is fetched before its queue says that it holds; it goes on
// being fetched, GarbagePause apart.
const (
	GarbageTries = 5
	GarbagePause = 30 * time.Second
)

// Config makes a Worker.
type Config struct {
	Group string
	Queue sdk.Queue
	Retry bool // the queue is of %RETRY%group
	// Own tells that the member keeps its offsets itself: a broker's tools do not move them.
	Own bool
	// Namespace stands before the names in what is stored, and not in those that handlers see. Empty = none.
	Namespace string
	Epoch     uint64 // the first; each reset adds one
	Settings  func() *Settings
	Broker    Broker
	Budget    *Budget
	Sink      Sink
	Newness   Newness
	Now       func() time.Time
	Rand      func() float64 // [0,1) for jitter; nil = math/rand
	Logger    *slog.Logger
	// Pulled hears of each pull that brought messages, and how long it took; nil = nobody.
	Pulled func(messages int, took time.Duration)
	Order  Order
	Locks  Locks // nil = the queue needs no lock
	// Released is called once, on the worker's goroutine, as its last act.
	Released func(Report)
	// Owned is how many queues share the commits that a stream may send; nil = this one alone.
	Owned func() int
}

func (c *Config) jitter(d time.Duration) time.Duration {
	f := rand.Float64
	if c.Rand != nil {
		f = c.Rand
	}
	return d/2 + time.Duration(f()*float64(d)/2)
}

// Report tells how an ownership ended.
type Report struct {
	Queue     sdk.Queue
	Epoch     uint64
	Committed int64 // last offset that the broker confirmed; -1 = none
	Safe      int64
	Confirmed bool   // the broker stores Safe, or carries a reset that overrides it
	Left      int    // messages given up at handlers or before their verdict was durable: they will be delivered again
	Holder    string // identity of the message at Safe, when something is left
	Err       error  // why Safe is not confirmed
}
