package wire

// ResetOffsetRequest is the header of 222, by which a tool asks a broker for a reset (remoting-protocol.md 2.8).
type ResetOffsetRequest struct {
	Topic   string
	Group   string
	Millis  int64 // timestamp: where to go; −1 = the end
	Force   bool
	QueueID Opt[int32] // 5.0; −1 = all
	Offset  Opt[int64] // 5.0
	Common
}

// RequestCode is ReqResetOffset.
func (*ResetOffsetRequest) RequestCode() RequestCode { return ReqResetOffset }

func (r *ResetOffsetRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("group", &r.Group)
	b.int64("timestamp", &r.Millis)
	b.bool("isForce", &r.Force)
	b.optInt32("queueId", &r.QueueID)
	b.optInt64("offset", &r.Offset)
	r.bindCommon(b)
}

// ResetClientRequest is the header of 220, by which a broker hands new offsets to a member; the body is a ResetOffsetBody.
type ResetClientRequest struct {
	Topic   string
	Group   string
	Millis  int64
	Force   bool // always false in what brokers send
	QueueID Opt[int32]
	Common
}

// RequestCode is ReqResetConsumerClientOffset.
func (*ResetClientRequest) RequestCode() RequestCode { return ReqResetConsumerClientOffset }

func (r *ResetClientRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("group", &r.Group)
	b.int64("timestamp", &r.Millis)
	b.lenientBool("isForce", &r.Force)
	b.optInt32("queueId", &r.QueueID)
	r.bindCommon(b)
}

// ClientStatusRequest is the header of 221, by which a broker asks a member for its offsets; the answer's body is a
// ConsumerStatusBody.
type ClientStatusRequest struct {
	Topic string
	Group string
	Common
}

// RequestCode is ReqGetConsumerStatusOfClient.
func (*ClientStatusRequest) RequestCode() RequestCode { return ReqGetConsumerStatusOfClient }

func (r *ClientStatusRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("group", &r.Group)
	r.bindCommon(b)
}

// ConsumerStatusRequest is the header of 223, by which a tool makes a broker send 221 to the members.
type ConsumerStatusRequest struct {
	Topic    string
	Group    string
	ClientID Opt[string] // clientAddr
	Common
}

// RequestCode is ReqGetConsumerStatus.
func (*ConsumerStatusRequest) RequestCode() RequestCode { return ReqGetConsumerStatus }

func (r *ConsumerStatusRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("group", &r.Group)
	b.optText("clientAddr", &r.ClientID)
	r.bindCommon(b)
}

// RunningInfoRequest is the header of 307; the answer's body is a ConsumerRunningInfo.
type RunningInfoRequest struct {
	Group    string
	ClientID string
	Jstack   bool
	Common
}

// RequestCode is ReqGetConsumerRunningInfo.
func (*RunningInfoRequest) RequestCode() RequestCode { return ReqGetConsumerRunningInfo }

func (r *RunningInfoRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.text("clientId", &r.ClientID)
	b.lenientBool("jstackEnable", &r.Jstack)
	r.bindCommon(b)
}

// ConsumeDirectlyRequest is the header of 309; on its way to the client the body is one stored message, and the answer's
// body is a ConsumeDirectlyResult.
type ConsumeDirectlyRequest struct {
	Group        string
	ClientID     Opt[string]
	MessageID    Opt[string] // the offset id
	Broker       Opt[string] // brokerName
	Topic        Opt[string]
	TopicSysFlag Opt[int32]
	GroupSysFlag Opt[int32]
	Common
}

// RequestCode is ReqConsumeDirectly.
func (*ConsumeDirectlyRequest) RequestCode() RequestCode { return ReqConsumeDirectly }

func (r *ConsumeDirectlyRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.optText("clientId", &r.ClientID)
	b.optText("msgId", &r.MessageID)
	b.optText("brokerName", &r.Broker)
	b.optText("topic", &r.Topic)
	b.optInt32("topicSysFlag", &r.TopicSysFlag)
	b.optInt32("groupSysFlag", &r.GroupSysFlag)
	r.bindCommon(b)
}

// EndTransactionRequest is the header of 37 END_TRANSACTION (remoting-protocol.md 2.10).
type EndTransactionRequest struct {
	Topic         Opt[string] // 5.3.0
	ProducerGroup string
	QueueOffset   int64 // tranStateTableOffset: of the half message
	LogOffset     int64 // commitLogOffset: of the half message
	Outcome       int32 // commitOrRollback: SysFlagCommit, SysFlagRollback, or 0 = unknown
	FromCheck     Opt[bool]
	MessageID     string
	TransactionID Opt[string]
	Common
}

// RequestCode is ReqEndTransaction.
func (*EndTransactionRequest) RequestCode() RequestCode { return ReqEndTransaction }

func (r *EndTransactionRequest) bind(b *binder) {
	b.optText("topic", &r.Topic)
	b.text("producerGroup", &r.ProducerGroup)
	b.int64("tranStateTableOffset", &r.QueueOffset)
	b.int64("commitLogOffset", &r.LogOffset)
	b.int32("commitOrRollback", &r.Outcome)
	b.optBool("fromTransactionCheck", &r.FromCheck)
	b.text("msgId", &r.MessageID)
	b.optText("transactionId", &r.TransactionID)
	r.bindCommon(b)
}

// CheckTransactionRequest is the header of 39, by which a broker asks a producer what became of a transaction; the body is
// the half message.
type CheckTransactionRequest struct {
	Topic           Opt[string]
	QueueOffset     int64
	LogOffset       int64
	MessageID       Opt[string]
	TransactionID   Opt[string]
	OffsetMessageID Opt[string]
	Common
}

// RequestCode is ReqCheckTransactionState.
func (*CheckTransactionRequest) RequestCode() RequestCode { return ReqCheckTransactionState }

func (r *CheckTransactionRequest) bind(b *binder) {
	b.optText("topic", &r.Topic)
	b.int64("tranStateTableOffset", &r.QueueOffset)
	b.int64("commitLogOffset", &r.LogOffset)
	b.optText("msgId", &r.MessageID)
	b.optText("transactionId", &r.TransactionID)
	b.optText("offsetMsgId", &r.OffsetMessageID)
	r.bindCommon(b)
}
