package wire

// ResetOffsetBody is the body of 220 and the answer to 222: the new offsets.
type ResetOffsetBody struct {
	Offsets QueueTable[int64] `json:"offsetTable,omitzero"`
}

// ConsumerStatusBody is the answer to 221, which fills Queues, and to 223, which fills Consumers by client id.
type ConsumerStatusBody struct {
	Consumers map[string]QueueTable[int64] `json:"consumerTable,omitzero"`
	Queues    QueueTable[int64]            `json:"messageQueueTable,omitzero"`
}

// ConsumerRunningInfo is the answer to 307: what a member says of itself (remoting-protocol.md 3.7). Properties also carries
// what streamd's members tell each other (design.md 7).
type ConsumerRunningInfo struct {
	Jstack           string                          `json:"jstack,omitempty"`
	PopTable         QueueTable[PopProcessQueueInfo] `json:"mqPopTable,omitzero"` // 5.0
	Queues           QueueTable[ProcessQueueInfo]    `json:"mqTable,omitzero"`
	Properties       map[string]string               `json:"properties,omitzero"`
	Status           map[string]ConsumeStatus        `json:"statusTable,omitzero"` // by topic
	Subscriptions    []SubscriptionData              `json:"subscriptionSet,omitzero"`
	UserConsumerInfo map[string]string               `json:"userConsumerInfo,omitzero"` // 5.0
}

// The names in ConsumerRunningInfo.Properties that tools read.
const (
	RunningNameServers = "PROP_NAMESERVER_ADDR"
	RunningThreads     = "PROP_THREADPOOL_CORE_SIZE"
	RunningOrderly     = "PROP_CONSUMEORDERLY" // "true" or "false"
	RunningConsumeType = "PROP_CONSUME_TYPE"   // a ConsumeType
	RunningVersion     = "PROP_CLIENT_VERSION" // as Version.String
	RunningStartMillis = "PROP_CONSUMER_START_TIMESTAMP"
)

// ProcessQueueInfo is the state of one queue at its owner. Times are in milliseconds.
type ProcessQueueInfo struct {
	CachedCount          int32 `json:"cachedMsgCount"`
	CachedMaxOffset      int64 `json:"cachedMsgMaxOffset"`
	CachedMinOffset      int64 `json:"cachedMsgMinOffset"`
	CachedMiB            int32 `json:"cachedMsgSizeInMiB"`
	CommitOffset         int64 `json:"commitOffset"`
	Dropped              bool  `json:"droped"` // Java's spelling
	LastConsumeMillis    int64 `json:"lastConsumeTimestamp"`
	LastLockMillis       int64 `json:"lastLockTimestamp"`
	LastPullMillis       int64 `json:"lastPullTimestamp"`
	Locked               bool  `json:"locked"` // true for concurrent consumers
	TransactionCount     int32 `json:"transactionMsgCount"`
	TransactionMaxOffset int64 `json:"transactionMsgMaxOffset"`
	TransactionMinOffset int64 `json:"transactionMsgMinOffset"`
	UnlockAttempts       int64 `json:"tryUnlockTimes"`
}

// PopProcessQueueInfo is the state of one queue of a POP consumer.
type PopProcessQueueInfo struct {
	Dropped       bool  `json:"droped"`
	LastPopMillis int64 `json:"lastPopTimestamp"`
	WaitAckCount  int32 `json:"waitAckCount"`
}

// ConsumeStatus holds the rates of one topic at one member: milliseconds and per second.
type ConsumeStatus struct {
	FailedMessages int64   `json:"consumeFailedMsgs"`
	FailedTPS      float64 `json:"consumeFailedTPS"`
	OKTPS          float64 `json:"consumeOKTPS"`
	ConsumeRT      float64 `json:"consumeRT"`
	PullRT         float64 `json:"pullRT"`
	PullTPS        float64 `json:"pullTPS"`
}

// ConsumeDirectlyResult is the answer to 309.
type ConsumeDirectlyResult struct {
	AutoCommit  bool          `json:"autoCommit"`
	Result      ConsumeResult `json:"consumeResult"`
	Order       bool          `json:"order"`
	Remark      string        `json:"remark,omitempty"`
	SpentMillis int64         `json:"spentTimeMills"` // Java's spelling
}

// ConsumeResult is what became of a message that was consumed on demand.
type ConsumeResult string

// The consume results, in ordinal order.
const (
	ConsumeSuccess        ConsumeResult = "CR_SUCCESS"
	ConsumeLater          ConsumeResult = "CR_LATER"
	ConsumeRollback       ConsumeResult = "CR_ROLLBACK"
	ConsumeCommit         ConsumeResult = "CR_COMMIT"
	ConsumeThrewException ConsumeResult = "CR_THROW_EXCEPTION"
	ConsumeReturnedNull   ConsumeResult = "CR_RETURN_NULL"
)

// UnmarshalJSON reads a name or an ordinal; the Go client sends the ordinal.
func (r *ConsumeResult) UnmarshalJSON(text []byte) error {
	return readEnum(text, (*string)(r), string(ConsumeSuccess), string(ConsumeLater), string(ConsumeRollback),
		string(ConsumeCommit), string(ConsumeThrewException), string(ConsumeReturnedNull))
}
