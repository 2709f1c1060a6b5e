package wire

// PlainRequest is the header of a request that has no fields of its own, such as 34, 41, 42, 46, 106 and 206.
type PlainRequest struct {
	Op RequestCode
	Common
}

// RequestCode returns Op.
func (r *PlainRequest) RequestCode() RequestCode { return r.Op }

func (r *PlainRequest) bind(b *binder) { r.bindCommon(b) }

// PlainResponse is the header of an answer that has no fields of its own.
type PlainResponse struct{ Other Fields }

func (r *PlainResponse) bind(b *binder) { b.rest(&r.Other) }

// HeartbeatResponse is the header of the answer to 34. Brokers before 5.1.3 send neither field.
type HeartbeatResponse struct {
	SupportsV2          Opt[bool]
	SubscriptionChanged Opt[bool] // always true in answers to a plain heartbeat
	Other               Fields
}

func (r *HeartbeatResponse) bind(b *binder) {
	b.optBool("IS_SUPPORT_HEART_BEAT_V2", &r.SupportsV2)
	b.optBool("IS_SUB_CHANGE", &r.SubscriptionChanged)
	b.rest(&r.Other)
}

// UnregisterClientRequest is the header of 35 UNREGISTER_CLIENT, sent once for each group of a client.
type UnregisterClientRequest struct {
	ClientID      string
	ProducerGroup Opt[string]
	ConsumerGroup Opt[string]
	Common
}

// RequestCode is ReqUnregisterClient.
func (*UnregisterClientRequest) RequestCode() RequestCode { return ReqUnregisterClient }

func (r *UnregisterClientRequest) bind(b *binder) {
	b.text("clientID", &r.ClientID)
	b.optText("producerGroup", &r.ProducerGroup)
	b.optText("consumerGroup", &r.ConsumerGroup)
	r.bindCommon(b)
}

// ConsumerListRequest is the header of 38 GET_CONSUMER_LIST_BY_GROUP; the answer's body is a ConsumerList. A group with
// nobody online is answered with RespSystemError, not with an empty list.
type ConsumerListRequest struct {
	Group string
	Common
}

// RequestCode is ReqGetConsumerList.
func (*ConsumerListRequest) RequestCode() RequestCode { return ReqGetConsumerList }

func (r *ConsumerListRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	r.bindCommon(b)
}

// NotifyConsumersRequest is the header of 40, by which a broker says that a group's members changed.
type NotifyConsumersRequest struct {
	Group string
	Common
}

// RequestCode is ReqNotifyConsumerIDsChanged.
func (*NotifyConsumersRequest) RequestCode() RequestCode { return ReqNotifyConsumerIDsChanged }

func (r *NotifyConsumersRequest) bind(b *binder) {
	b.text("consumerGroup", &r.Group)
	r.bindCommon(b)
}
