package wire

// QueryOffsetRequest is the header of 14 QUERY_CONSUMER_OFFSET (remoting-protocol.md 2.4). Only RespQueryNotFound means
// that nothing is stored; any other failure says nothing about the offset.
type QueryOffsetRequest struct {
	Group             string
	Topic             string
	QueueID           int32
	SetZeroIfNotFound Opt[bool] // 5.0; false suppresses the broker's "young topic" answer of 0
	Common
}

// RequestCode is ReqQueryConsumerOffset.
func (*QueryOffsetRequest) RequestCode() RequestCode { return ReqQueryConsumerOffset }

func (r *QueryOffsetRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	b.optBool("setZeroIfNotFound", &r.SetZeroIfNotFound)
	r.bindCommon(b)
}

// OffsetResponse is the header of the answers to 14, 29, 30 and 31.
type OffsetResponse struct {
	Offset int64
	Other  Fields
}

func (r *OffsetResponse) bind(b *binder) {
	b.int64("offset", &r.Offset)
	b.rest(&r.Other)
}

// UpdateOffsetRequest is the header of 15 UPDATE_CONSUMER_OFFSET. Clients send it oneway as a rule; awaited, a RespSuccess
// whose remark says "previously reset" is no confirmation (design.md 7).
type UpdateOffsetRequest struct {
	Group   string
	Topic   string
	QueueID int32
	Offset  int64 // commitOffset: the next one to consume
	Common
}

// RequestCode is ReqUpdateConsumerOffset.
func (*UpdateOffsetRequest) RequestCode() RequestCode { return ReqUpdateConsumerOffset }

func (r *UpdateOffsetRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	b.int64("commitOffset", &r.Offset)
	r.bindCommon(b)
}

// SearchOffsetRequest is the header of 29 SEARCH_OFFSET_BY_TIMESTAMP (remoting-protocol.md 2.7).
type SearchOffsetRequest struct {
	Topic    string
	QueueID  int32
	Millis   int64       // store time
	Boundary Opt[string] // BoundaryLower or BoundaryUpper: 5.1
	Common
}

// The values of SearchOffsetRequest.Boundary.
const (
	BoundaryLower = "LOWER" // first message stored at or after the time
	BoundaryUpper = "UPPER" // last message stored at or before it
)

// RequestCode is ReqSearchOffsetByTimestamp.
func (*SearchOffsetRequest) RequestCode() RequestCode { return ReqSearchOffsetByTimestamp }

func (r *SearchOffsetRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	b.int64("timestamp", &r.Millis)
	b.optText("boundaryType", &r.Boundary)
	r.bindCommon(b)
}

// MaxOffsetRequest is the header of 30 GET_MAX_OFFSET: the next offset to be written.
type MaxOffsetRequest struct {
	Topic     string
	QueueID   int32
	Committed Opt[bool] // 5.0
	Common
}

// RequestCode is ReqGetMaxOffset.
func (*MaxOffsetRequest) RequestCode() RequestCode { return ReqGetMaxOffset }

func (r *MaxOffsetRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	b.optBool("committed", &r.Committed)
	r.bindCommon(b)
}

// MinOffsetRequest is the header of 31 GET_MIN_OFFSET: the first readable offset.
type MinOffsetRequest struct {
	Topic   string
	QueueID int32
	Common
}

// RequestCode is ReqGetMinOffset.
func (*MinOffsetRequest) RequestCode() RequestCode { return ReqGetMinOffset }

func (r *MinOffsetRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	r.bindCommon(b)
}

// EarliestTimeRequest is the header of 32 GET_EARLIEST_MSG_STORETIME.
type EarliestTimeRequest struct {
	Topic   string
	QueueID int32
	Common
}

// RequestCode is ReqGetEarliestStoreTime.
func (*EarliestTimeRequest) RequestCode() RequestCode { return ReqGetEarliestStoreTime }

func (r *EarliestTimeRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.int32("queueId", &r.QueueID)
	r.bindCommon(b)
}

// EarliestTimeResponse is the header of the answer to 32; −1 when the queue has no message.
type EarliestTimeResponse struct {
	Millis int64
	Other  Fields
}

func (r *EarliestTimeResponse) bind(b *binder) {
	b.int64("timestamp", &r.Millis)
	b.rest(&r.Other)
}
