package wire

// SendRequest is the header of 10, 310, 320 and of their kin for replies, 324 and 325 (remoting-protocol.md 2.6).
type SendRequest struct {
	// Op is the code; zero means ReqSendMessageV2. It decides between long names (10, 324) and one-letter names.
	Op RequestCode

	ProducerGroup     string
	Topic             string
	DefaultTopic      string // template of auto creation, DefaultTopic as a rule
	DefaultQueues     int32  // wanted queues on auto creation
	QueueID           int32  // negative: the broker picks one
	SysFlag           int32
	BornMillis        int64
	Flag              int32
	Properties        Opt[string] // RocketMQ's text form; for a batch those of the batch as a whole
	ReconsumeTimes    Opt[int32]
	UnitMode          Opt[bool]
	MaxReconsumeTimes Opt[int32] // for sends to a retry topic
	// Batch, not the code, makes the body a batch.
	Batch Opt[bool]
	Common
}

// RequestCode returns Op.
func (r *SendRequest) RequestCode() RequestCode {
	if r.Op == 0 {
		return ReqSendMessageV2
	}
	return r.Op
}

// bind has the one-letter names in alphabetical order, which is also the order of their long names' meaning.
func (r *SendRequest) bind(b *binder) {
	long := r.Op == ReqSendMessage || r.Op == ReqSendReplyMessage
	name := func(short, full string) string {
		if long {
			return full
		}
		return short
	}
	b.text(name("a", "producerGroup"), &r.ProducerGroup)
	b.text(name("b", "topic"), &r.Topic)
	b.text(name("c", "defaultTopic"), &r.DefaultTopic)
	b.int32(name("d", "defaultTopicQueueNums"), &r.DefaultQueues)
	b.int32(name("e", "queueId"), &r.QueueID)
	b.int32(name("f", "sysFlag"), &r.SysFlag)
	b.int64(name("g", "bornTimestamp"), &r.BornMillis)
	b.int32(name("h", "flag"), &r.Flag)
	b.optText(name("i", "properties"), &r.Properties)
	b.optInt32(name("j", "reconsumeTimes"), &r.ReconsumeTimes)
	b.optBool(name("k", "unitMode"), &r.UnitMode)
	b.optInt32(name("l", "maxReconsumeTimes"), &r.MaxReconsumeTimes)
	b.optBool(name("m", "batch"), &r.Batch)
	b.optText(name("n", "bname"), &r.BrokerName)
	r.bindTail(b)
}

// SendResponse is the header of the answer to a send. It comes with RespSuccess and with the three codes that mean
// "stored, but": RespFlushDiskTimeout, RespSlaveNotAvailable, RespFlushSlaveTimeout.
type SendResponse struct {
	// OffsetMessageID is the field msgId: the offset id, for a batch a comma separated list of them.
	OffsetMessageID string
	QueueID         int32
	QueueOffset     int64 // of the first message
	TransactionID   Opt[string]
	BatchUniqueID   Opt[string]
	RecallHandle    Opt[string]
	Region          Opt[string] // MSG_REGION
	TraceOn         Opt[string]
	Other           Fields
}

func (r *SendResponse) bind(b *binder) {
	b.text("msgId", &r.OffsetMessageID)
	b.int32("queueId", &r.QueueID)
	b.int64("queueOffset", &r.QueueOffset)
	b.optText("transactionId", &r.TransactionID)
	b.optText("batchUniqId", &r.BatchUniqueID)
	b.optText("recallHandle", &r.RecallHandle)
	b.optText("MSG_REGION", &r.Region)
	b.optText("TRACE_ON", &r.TraceOn)
	b.rest(&r.Other)
}

// SendBackRequest is the header of 36 CONSUMER_SEND_MSG_BACK.
type SendBackRequest struct {
	LogOffset         int64 // offset: the physical one
	Group             string
	DelayLevel        int32 // negative: dead-letter now; 0: 3 + reconsume times; else that level
	OriginMessageID   Opt[string]
	OriginTopic       Opt[string]
	UnitMode          bool
	MaxReconsumeTimes Opt[int32]
	Common
}

// RequestCode is ReqSendBack.
func (*SendBackRequest) RequestCode() RequestCode { return ReqSendBack }

func (r *SendBackRequest) bind(b *binder) {
	b.int64("offset", &r.LogOffset)
	b.text("group", &r.Group)
	b.int32("delayLevel", &r.DelayLevel)
	b.optText("originMsgId", &r.OriginMessageID)
	b.optText("originTopic", &r.OriginTopic)
	b.lenientBool("unitMode", &r.UnitMode)
	b.optInt32("maxReconsumeTimes", &r.MaxReconsumeTimes)
	r.bindCommon(b)
}

// PushReplyRequest is the header of 326, by which a broker hands a reply to the client that waits for it.
type PushReplyRequest struct {
	ProducerGroup  string
	Topic          string
	DefaultTopic   string
	DefaultQueues  int32
	QueueID        int32
	SysFlag        int32
	BornMillis     int64
	Flag           int32
	Properties     Opt[string]
	ReconsumeTimes Opt[int32]
	UnitMode       Opt[bool]
	BornHost       string
	StoreHost      string
	StoreMillis    int64
	Common
}

// RequestCode is ReqPushReplyMessage.
func (*PushReplyRequest) RequestCode() RequestCode { return ReqPushReplyMessage }

func (r *PushReplyRequest) bind(b *binder) {
	b.text("producerGroup", &r.ProducerGroup)
	b.text("topic", &r.Topic)
	b.text("defaultTopic", &r.DefaultTopic)
	b.int32("defaultTopicQueueNums", &r.DefaultQueues)
	b.int32("queueId", &r.QueueID)
	b.int32("sysFlag", &r.SysFlag)
	b.int64("bornTimestamp", &r.BornMillis)
	b.int32("flag", &r.Flag)
	b.optText("properties", &r.Properties)
	b.optInt32("reconsumeTimes", &r.ReconsumeTimes)
	b.optBool("unitMode", &r.UnitMode)
	b.text("bornHost", &r.BornHost)
	b.text("storeHost", &r.StoreHost)
	b.int64("storeTimestamp", &r.StoreMillis)
	r.bindCommon(b)
}
