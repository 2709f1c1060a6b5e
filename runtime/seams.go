package runtime

import (
	"context"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Broker is what the engine needs of a cluster. *rocketmq.Client fills it.
// Errors of type *rocketmq.ResponseError carry the broker's code; "not found" is never an error (see Committed).
type Broker interface {
	ClientID() string
	Join(ctx context.Context, spec rocketmq.GroupSpec) error // registers and heartbeats; rocketmq.ErrDuplicateGroup
	Heartbeat(ctx context.Context) error                     // now, to every known broker
	Leave(ctx context.Context, group string) error           // unregisters (35) at every broker
	// Registered lists what the brokers of some topics have registered for a group, by whichever member came last (203).
	Registered(ctx context.Context, group string, topics []string) ([]rocketmq.Subscription, error)
	// CheckFilter asks a broker whether it takes a filter that is not one of tags (46). A refusal is a *rocketmq.FilterError.
	CheckFilter(ctx context.Context, group, broker string, s rocketmq.Subscription) error

	// Queues returns the readable queues of a topic, sorted. rocketmq.ErrTopicNotFound when no name server knows it.
	Queues(ctx context.Context, topic string) ([]sdk.Queue, error)
	// WritableQueues returns the queues of a topic that take messages; empty when the topic is known and takes none.
	WritableQueues(ctx context.Context, topic string) ([]sdk.Queue, error)
	// RetryQueues tells how many retry queues a broker gives a group; 0 or less: a send-back there is answered with SUCCESS and
	// stored nowhere. rocketmq.ErrGroupNotFound when the broker has no settings of the group.
	RetryQueues(ctx context.Context, group, broker string) (int32, error)
	// RouteChanged calls f after the route of topic changed, until the returned stop is called.
	RouteChanged(topic string, f func()) (stop func())
	// Members lists the client ids of a group as one broker of the topic sees them.
	Members(ctx context.Context, group, topic string) ([]string, error)
	// PeerInfo asks a member for its running info through a broker (307).
	PeerInfo(ctx context.Context, group, clientID string) (*wire.ConsumerRunningInfo, error)

	// Committed returns the stored offset of a queue; ok is false when the broker says it has none (22).
	Committed(ctx context.Context, group string, q sdk.Queue) (offset int64, ok bool, err error)
	// Commit stores an offset and waits for the broker's word. reset is true when the broker ignored it because a
	// reset is waiting to be picked up.
	Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (reset bool, err error)
	MinOffset(ctx context.Context, q sdk.Queue) (int64, error)
	MaxOffset(ctx context.Context, q sdk.Queue) (int64, error)
	OffsetAt(ctx context.Context, q sdk.Queue, at time.Time) (int64, error)

	// LockQueues asks brokers to reserve queues of a group for this client for 60 s (41), or to renew that, and returns those
	// that are; UnlockQueues gives them free (42). Queues of brokers that did not answer are in the error.
	LockQueues(ctx context.Context, group string, queues []sdk.Queue) ([]sdk.Queue, error)
	UnlockQueues(ctx context.Context, group string, queues []sdk.Queue) error

	// Pull returns within the request's Hold and some seconds, whatever the broker does: the engine sets no limit of its
	// own, because a timer for each of thousands of pulls a second is a twentieth of a drain's CPU.
	Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error)
	// StartPull is Pull without anybody who waits: done is called once, with what Pull would return, and must not block. ok is
	// false when the pull has to wait for something, and always may be: then Pull is called. cancel gives it up; done has
	// been called then, or is being called. An error that wraps rocketmq.ErrPullAgain asks for a Pull.
	StartPull(req *rocketmq.PullRequest, done func(*rocketmq.PullResult, error)) (cancel func(), ok bool)
	SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error
	// Send stores one message; SendBatch several of one topic. Both wait for the broker's word.
	Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
	SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error)
	// StoredBy is the broker that alone can store a message of a topic, with its sharding key if it has one; empty when there are
	// several to choose from, or when that is not known. It asks nobody.
	StoredBy(topic, shardingKey string) (broker string)
	// Version is the version the broker of q last reported (MQVersion ordinal); 0 = unknown.
	Version(broker string) int32
}

// Handlers opens lanes to handlers. The daemon fills it with the plugin host.
type Handlers interface {
	// Open blocks until the handler's process is ready or ctx ends. Every lost lane is opened anew by the engine.
	Open(ctx context.Context, spec frame.LaneSpec) (Lane, error)
}

// Lane is one bidirectional stream to a handler process. Send and the receiving of Events may run concurrently.
type Lane interface {
	Info() frame.LaneInfo
	Send(b *frame.Batch) error         // never blocks and keeps no reference to b after it returns; frame.ErrNoCredit
	Events() <-chan frame.Event        // closed after EventLost or EventDrained; see LaneSpec.Deliver
	Cancel(seq uint64, index []uint32) // deadline or revoke: the author's context ends
	Revoke(queues []sdk.Queue)         // tells the author that queues are going
	Drain(ctx context.Context) error   // no new records; returns when all are answered or ctx ends
	Abort(cause error)
}

// Strategies opens allocation strategies. The daemon fills it with the plugin host.
type Strategies interface {
	Open(ctx context.Context, spec StrategySpec) (Strategy, error)
}

// StrategySpec names a strategy of the stream's config.
type StrategySpec struct {
	Stream string
	Name   string // one of allocate/, or empty
	Plugin string // with Use and Config: a plugin's component
	Use    string
	Config []byte // JSON
}

// Strategy computes assignments in another process.
type Strategy interface {
	Name() string
	Needs() allocate.Needs
	Identity() allocate.Identity // strategy, version, config: two members with equal identities compute the same
	// Solve asks the process; the answer is not checked yet.
	Solve(ctx context.Context, in allocate.Input) ([]int32, error)
	Close() error
}
