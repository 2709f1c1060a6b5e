package wire

// CreateTopicRequest is the header of 17 UPDATE_AND_CREATE_TOPIC (remoting-protocol.md 2.8).
type CreateTopicRequest struct {
	Topic        string
	DefaultTopic string
	ReadQueues   int32
	WriteQueues  int32
	Perm         int32
	FilterType   string // FilterTypeSingleTag or FilterTypeMultiTag
	TopicSysFlag Opt[int32]
	Order        bool
	Attributes   Opt[string] // 5.0: "+key=value,-key"
	Force        Opt[bool]
	Common
}

// The values of CreateTopicRequest.FilterType and TopicConfig.FilterType.
const (
	FilterTypeSingleTag = "SINGLE_TAG"
	FilterTypeMultiTag  = "MULTI_TAG"
)

// RequestCode is ReqUpdateAndCreateTopic.
func (*CreateTopicRequest) RequestCode() RequestCode { return ReqUpdateAndCreateTopic }

func (r *CreateTopicRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("defaultTopic", &r.DefaultTopic)
	b.int32("readQueueNums", &r.ReadQueues)
	b.int32("writeQueueNums", &r.WriteQueues)
	b.int32("perm", &r.Perm)
	b.text("topicFilterType", &r.FilterType)
	b.optInt32("topicSysFlag", &r.TopicSysFlag)
	b.bool("order", &r.Order)
	b.optText("attributes", &r.Attributes)
	b.optBool("force", &r.Force)
	r.bindCommon(b)
}

// TopicRequest is the header of the requests that name a topic and nothing else: 202, 300, 351.
type TopicRequest struct {
	Op    RequestCode
	Topic string
	Common
}

// RequestCode returns Op.
func (r *TopicRequest) RequestCode() RequestCode { return r.Op }

func (r *TopicRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	r.bindCommon(b)
}

// ConsumerConnectionsRequest is the header of 203; the answer's body is a ConsumerConnections, or the code is
// RespConsumerNotOnline.
type ConsumerConnectionsRequest struct {
	Group string
	Common
}

// RequestCode is ReqGetConsumerConnections.
func (*ConsumerConnectionsRequest) RequestCode() RequestCode { return ReqGetConsumerConnections }

func (r *ConsumerConnectionsRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	r.bindCommon(b)
}

// ProducerConnectionsRequest is the header of 204; the answer's body is a ProducerConnections.
type ProducerConnectionsRequest struct {
	Group string
	Common
}

// RequestCode is ReqGetProducerConnections.
func (*ProducerConnectionsRequest) RequestCode() RequestCode { return ReqGetProducerConnections }

func (r *ProducerConnectionsRequest) bind(b *binder) {
	b.text("producerGroup", &r.Group)
	r.bindCommon(b)
}

// ConsumeStatsRequest is the header of 208; the answer's body is a ConsumeStats.
type ConsumeStatsRequest struct {
	Group  string
	Topic  Opt[string] // absent: all topics of the group
	Topics Opt[string] // topicList: separated by semicolons, 5.3.2
	Common
}

// RequestCode is ReqGetConsumeStats.
func (*ConsumeStatsRequest) RequestCode() RequestCode { return ReqGetConsumeStats }

func (r *ConsumeStatsRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	b.optText("topic", &r.Topic)
	b.optText("topicList", &r.Topics)
	r.bindCommon(b)
}

// GroupRequest is the header of the requests that name a group and perhaps a topic: 343, 345, 352.
type GroupRequest struct {
	Op    RequestCode
	Group string
	Topic Opt[string] // 345 only
	Common
}

// RequestCode returns Op.
func (r *GroupRequest) RequestCode() RequestCode { return r.Op }

func (r *GroupRequest) bind(b *binder) {
	b.text("group", &r.Group)
	b.optText("topic", &r.Topic)
	r.bindCommon(b)
}

// DeleteGroupRequest is the header of 207 DELETE_SUBSCRIPTIONGROUP. 5.0 renamed the second field; send both.
type DeleteGroupRequest struct {
	Group        string
	CleanOffset  Opt[bool]
	RemoveOffset Opt[bool] // 4.9
	Common
}

// RequestCode is ReqDeleteSubscriptionGroup.
func (*DeleteGroupRequest) RequestCode() RequestCode { return ReqDeleteSubscriptionGroup }

func (r *DeleteGroupRequest) bind(b *binder) {
	b.text("groupName", &r.Group)
	b.optBool("cleanOffset", &r.CleanOffset)
	b.optBool("removeOffset", &r.RemoveOffset)
	r.bindCommon(b)
}

// TimeSpanRequest is the header of 303 QUERY_CONSUME_TIME_SPAN; the answer's body is a TimeSpans.
type TimeSpanRequest struct {
	Topic string
	Group string
	Common
}

// RequestCode is ReqQueryConsumeTimeSpan.
func (*TimeSpanRequest) RequestCode() RequestCode { return ReqQueryConsumeTimeSpan }

func (r *TimeSpanRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("group", &r.Group)
	r.bindCommon(b)
}

// CloneOffsetRequest is the header of 314 CLONE_GROUP_OFFSET.
type CloneOffsetRequest struct {
	From    string
	To      string
	Topic   Opt[string]
	Offline bool
	Common
}

// RequestCode is ReqCloneGroupOffset.
func (*CloneOffsetRequest) RequestCode() RequestCode { return ReqCloneGroupOffset }

func (r *CloneOffsetRequest) bind(b *binder) {
	b.text("srcGroup", &r.From)
	b.text("destGroup", &r.To)
	b.optText("topic", &r.Topic)
	b.lenientBool("offline", &r.Offline)
	r.bindCommon(b)
}

// QueryMessageRequest is the header of 12 QUERY_MESSAGE; the answer's body holds stored messages.
type QueryMessageRequest struct {
	Topic       string
	Key         string
	Max         int32
	BeginMillis int64
	EndMillis   int64
	UniqueKey   Opt[string] // _UNIQUE_KEY_QUERY: "true" when Key is a unique id. See remoting-protocol.md 1.11 on signing
	Common
}

// RequestCode is ReqQueryMessage.
func (*QueryMessageRequest) RequestCode() RequestCode { return ReqQueryMessage }

func (r *QueryMessageRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.text("key", &r.Key)
	b.int32("maxNum", &r.Max)
	b.int64("beginTimestamp", &r.BeginMillis)
	b.int64("endTimestamp", &r.EndMillis)
	b.optText("_UNIQUE_KEY_QUERY", &r.UniqueKey)
	r.bindCommon(b)
}

// QueryMessageResponse is the header of the answer to 12.
type QueryMessageResponse struct {
	IndexMillis    int64 // indexLastUpdateTimestamp
	IndexLogOffset int64 // indexLastUpdatePhyoffset
	Other          Fields
}

func (r *QueryMessageResponse) bind(b *binder) {
	b.int64("indexLastUpdateTimestamp", &r.IndexMillis)
	b.int64("indexLastUpdatePhyoffset", &r.IndexLogOffset)
	b.rest(&r.Other)
}

// ViewMessageRequest is the header of 33 VIEW_MESSAGE_BY_ID; the answer's body is one stored message.
type ViewMessageRequest struct {
	LogOffset int64       // offset
	Topic     Opt[string] // 5.3
	Common
}

// RequestCode is ReqViewMessageByID.
func (*ViewMessageRequest) RequestCode() RequestCode { return ReqViewMessageByID }

func (r *ViewMessageRequest) bind(b *binder) {
	b.int64("offset", &r.LogOffset)
	b.optText("topic", &r.Topic)
	r.bindCommon(b)
}
