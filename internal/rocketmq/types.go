package rocketmq

import (
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Subscription is one topic of a group with its filter.
type Subscription struct {
	Topic      string
	Expression string // "*", "a || b", or an SQL92 expression
	Type       FilterType
	Version    int64 // milliseconds; grows with each change
	// Foreign is another member's, as it or a broker told it. Heartbeats pass it on as it is, however it reads here.
	Foreign bool
}

// FilterType is the language of a subscription's expression.
type FilterType string

// The filter types, as they stand on the wire.
const (
	FilterTag   FilterType = "TAG"
	FilterSQL92 FilterType = "SQL92"
)

// PullRequest asks for messages of one queue. The own subscription always travels with it, so that another member's
// heartbeat cannot filter our messages.
type PullRequest struct {
	Group        string
	Queue        sdk.Queue
	Offset       int64
	MaxMessages  int
	MaxBytes     int
	Subscription Subscription
	Hold         time.Duration // how long the broker may hold the request; 0 = answer at once
}

// PullStatus is what a pull found.
type PullStatus uint8

// The pull statuses; consumer-semantics.md 3.4 has their codes.
const (
	PullFound         PullStatus = iota + 1
	PullNoNew                    // 19: nothing yet
	PullNoMatch                  // 20: filtered out; go on from Next
	PullOffsetIllegal            // 21: offset outside the queue, or a reset (Reset is true)
)

// PullResult is a broker's answer to a pull.
type PullResult struct {
	Status PullStatus
	Next   int64 // nextBeginOffset
	Min    int64
	Max    int64
	Reset  bool // PullOffsetIllegal only: the broker carries a reset, it is no out-of-range offset
	// Body holds the stored messages one after another; walk it with wire.Message. Valid until Release.
	Body    []byte
	Release func() // gives Body back; call exactly once; never nil
	Broker  BrokerAddr
}

// BrokerAddr is one live replica of a broker.
type BrokerAddr struct {
	Name string
	ID   int64 // 0 = master
	Addr string
}

// OutgoingMessage is a message to send.
type OutgoingMessage struct {
	Topic       string
	Queue       *sdk.Queue // nil: chosen by ShardingKey, else round robin over the writable queues
	ShardingKey string
	Tag         string
	Keys        []string
	Properties  map[string]string
	Body        []byte
	DelayLevel  int           // 1..18; 0 = none
	Delay       time.Duration // timer message (5.x); excludes DelayLevel
	Flag        int32
	Traced      bool // Config.Sent hears of it
}

// SendResult tells where a message was stored.
type SendResult struct {
	Status          SendStatus
	MessageID       string // UNIQ_KEY, made by the client
	OffsetMessageID string
	Queue           sdk.Queue
	Offset          int64
	TransactionID   string // what the broker calls a half message (5.x)
	Region          string // what the broker says of RocketMQ's own trace: its region,
	TraceOff        bool   // and that it wants none of the message
}

// SentMessage is a message that was stored, as RocketMQ's own trace tells of it.
type SentMessage struct {
	Message       *OutgoingMessage
	Result        SendResult
	ProducerGroup string
	Addr          string    // of the broker, host:port
	Bytes         int       // of the body as sent: compressed
	Began         time.Time // of the attempt that stored it
	Took          time.Duration
	Half          bool // of a transaction
	Delayed       bool
}

// SendStatus tells how far a stored message got.
type SendStatus uint8

// The send statuses. All but SendOK mean stored by the master, with less certainty than configured.
const (
	SendOK SendStatus = iota + 1
	SendFlushDiskTimeout
	SendFlushSlaveTimeout
	SendSlaveNotAvailable
)

// SendBackRequest asks a broker to store a consumed message again: for a retry, or in the dead-letter topic (code 36).
type SendBackRequest struct {
	Group       string
	Queue       sdk.Queue // where the message was pulled from
	LogOffset   int64
	MessageID   string
	OriginTopic string
	DelayLevel  int // 0 = the broker picks 3 + reconsumeTimes; -1 = dead-letter now
	MaxRetries  int
	StoreHost   string
}

// GroupSpec is what a client says of a group it is a member of, and whom it calls when a broker asks.
type GroupSpec struct {
	Name          string
	Broadcasting  bool
	FromWhere     FromWhere
	Subscriptions func() []Subscription // read at each heartbeat

	// Callbacks run on their own goroutine and may block; nil = the proper "not supported" answer.
	OnMembersChanged func() // 40
	// OnBrokerBack hears that a broker, by its name, is connected again and has had a heartbeat: what waits for it may go on.
	OnBrokerBack    func(broker string)
	OnReset         func(topic string, offsets map[sdk.Queue]int64)                  // 220
	RunningInfo     func(jstack bool) *wire.ConsumerRunningInfo                      // 307
	ConsumerStatus  func(topic string) map[sdk.Queue]int64                           // 221
	ConsumeDirectly func(m *wire.Message, broker string) *wire.ConsumeDirectlyResult // 309
}

// FromWhere is where a new group says it starts (for the tools; the start itself is the engine's).
type FromWhere string

// The start positions, as they stand on the wire.
const (
	FromLast      FromWhere = "CONSUME_FROM_LAST_OFFSET"
	FromFirst     FromWhere = "CONSUME_FROM_FIRST_OFFSET"
	FromTimestamp FromWhere = "CONSUME_FROM_TIMESTAMP"
)
