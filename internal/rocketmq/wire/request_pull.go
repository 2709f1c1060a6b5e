package wire

// PullRequest is the header of 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE (remoting-protocol.md 2.5).
type PullRequest struct {
	// Lite makes it a 361, which only Java's lite pull consumer sends and 4.9 brokers refuse.
	Lite bool

	Group              string
	Topic              string
	QueueID            int32
	Offset             int64 // queueOffset: the first wanted
	MaxMessages        int32
	SysFlag            int32 // Pull… bits
	CommitOffset       int64 // stored when SysFlag has PullCommitOffset
	SuspendMillis      int64 // how long the broker may hold the request when SysFlag has PullSuspend
	Subscription       Opt[string]
	SubscriptionMillis int64 // subVersion
	ExpressionType     Opt[string]
	MaxBytes           Opt[int32] // 5.0; brokers ignore it
	Source             Opt[int32] // requestSource: 5.1
	ProxyClientID      Opt[string]
	Common
}

// The bits of PullRequest.SysFlag (PullSysFlag).
const (
	PullCommitOffset int32 = 1 << 0 // store CommitOffset first
	PullSuspend      int32 = 1 << 1 // may be held (long poll)
	PullSubscription int32 = 1 << 2 // use Subscription, not the heartbeat's
	PullClassFilter  int32 = 1 << 3 // legacy
	PullLite         int32 = 1 << 4 // informative
)

// RequestCode is ReqPullMessage or ReqLitePullMessage.
func (r *PullRequest) RequestCode() RequestCode {
	if r.Lite {
		return ReqLitePullMessage
	}
	return ReqPullMessage
}

// bind keeps the order of Java's own "fast" header, so that binary frames are equal byte for byte.
func (r *PullRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	b.int64("queueOffset", &r.Offset)
	b.int32("maxMsgNums", &r.MaxMessages)
	b.int32("sysFlag", &r.SysFlag)
	b.int64("commitOffset", &r.CommitOffset)
	b.int64("suspendTimeoutMillis", &r.SuspendMillis)
	b.optText("subscription", &r.Subscription)
	b.int64("subVersion", &r.SubscriptionMillis)
	b.optText("expressionType", &r.ExpressionType)
	b.optInt32("maxMsgBytes", &r.MaxBytes)
	b.optInt32("requestSource", &r.Source)
	b.optText("proxyFrowardClientId", &r.ProxyClientID)
	r.bindCommon(b)
}

// PullResponse is the header of the answer to a pull. Its four numbers come with RespSuccess, RespPullNotFound,
// RespPullRetryImmediately and RespPullOffsetMoved only; decoding any other answer fails for want of them.
type PullResponse struct {
	SuggestBrokerID int64 // which replica to pull from next; 0 = master
	NextOffset      int64
	MinOffset       int64
	MaxOffset       int64 // the next offset to be written
	OffsetDelta     Opt[int64]
	TopicSysFlag    Opt[int32]
	GroupSysFlag    Opt[int32]
	ForbiddenType   Opt[int32]
	Other           Fields
}

func (r *PullResponse) bind(b *binder) {
	b.int64("suggestWhichBrokerId", &r.SuggestBrokerID)
	b.int64("nextBeginOffset", &r.NextOffset)
	b.int64("minOffset", &r.MinOffset)
	b.int64("maxOffset", &r.MaxOffset)
	b.optInt64("offsetDelta", &r.OffsetDelta)
	b.optInt32("topicSysFlag", &r.TopicSysFlag)
	b.optInt32("groupSysFlag", &r.GroupSysFlag)
	b.optInt32("forbiddenType", &r.ForbiddenType)
	b.rest(&r.Other)
}
