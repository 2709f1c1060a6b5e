package wire

import "encoding/json"

// SubscriptionData is what a group's member says of one subscription (remoting-protocol.md 3.4). Build it with
// NewSubscriptionData.
type SubscriptionData struct {
	ClassFilterMode bool     `json:"classFilterMode"`
	CodeSet         CodeSet  `json:"codeSet,omitzero"`
	ExpressionType  string   `json:"expressionType"`
	SubString       string   `json:"subString"`
	SubVersion      int64    `json:"subVersion"` // milliseconds; the Go client's are nanoseconds
	TagsSet         []string `json:"tagsSet,omitzero"`
	Topic           string   `json:"topic"`
}

// HeartbeatData is the body of 34.
type HeartbeatData struct {
	ClientID             string         `json:"clientID"`
	ConsumerDataSet      []ConsumerData `json:"consumerDataSet,omitzero"`
	HeartbeatFingerprint int32          `json:"heartbeatFingerprint"`
	ProducerDataSet      []ProducerData `json:"producerDataSet,omitzero"`
	WithoutSub           bool           `json:"withoutSub"`
}

// ConsumerData is one consumer group of a client.
type ConsumerData struct {
	ConsumeFromWhere    ConsumeFromWhere   `json:"consumeFromWhere"`
	ConsumeType         ConsumeType        `json:"consumeType"`
	GroupName           string             `json:"groupName"`
	MessageModel        MessageModel       `json:"messageModel"`
	SubscriptionDataSet []SubscriptionData `json:"subscriptionDataSet,omitzero"`
	UnitMode            bool               `json:"unitMode"`
}

// ProducerData is one producer group of a client.
type ProducerData struct {
	GroupName string `json:"groupName"`
}

// ConsumeType says how a member gets its messages.
type ConsumeType string

// The consume types, in ordinal order.
const (
	ConsumeActively  ConsumeType = "CONSUME_ACTIVELY" // pull
	ConsumePassively ConsumeType = "CONSUME_PASSIVELY"
	ConsumePop       ConsumeType = "CONSUME_POP"
)

// UnmarshalJSON reads a name or an ordinal.
func (t *ConsumeType) UnmarshalJSON(text []byte) error {
	return readEnum(text, (*string)(t), string(ConsumeActively), string(ConsumePassively), string(ConsumePop))
}

// MessageModel says whether a group's members share the messages or each get all.
type MessageModel string

// The message models, in ordinal order.
const (
	Broadcasting MessageModel = "BROADCASTING"
	Clustering   MessageModel = "CLUSTERING"
)

// UnmarshalJSON reads a name or an ordinal.
func (m *MessageModel) UnmarshalJSON(text []byte) error {
	return readEnum(text, (*string)(m), string(Broadcasting), string(Clustering))
}

// ConsumeFromWhere says where a new group starts.
type ConsumeFromWhere string

// The start positions that are in use.
const (
	ConsumeFromLastOffset  ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
	ConsumeFromFirstOffset ConsumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"
	ConsumeFromTimestamp   ConsumeFromWhere = "CONSUME_FROM_TIMESTAMP"
)

// UnmarshalJSON reads a name or an ordinal; the three names between are deprecated and mean the last offset.
func (w *ConsumeFromWhere) UnmarshalJSON(text []byte) error {
	return readEnum(text, (*string)(w), string(ConsumeFromLastOffset), "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
		"CONSUME_FROM_MIN_OFFSET", "CONSUME_FROM_MAX_OFFSET", string(ConsumeFromFirstOffset), string(ConsumeFromTimestamp))
}

// readEnum reads an enumeration as Java does: by name, or by ordinal. An ordinal beyond the names reads as "".
func readEnum(text []byte, into *string, names ...string) error {
	var ordinal int
	if err := json.Unmarshal(text, &ordinal); err != nil {
		return json.Unmarshal(text, into)
	}
	*into = ""
	if ordinal >= 0 && ordinal < len(names) {
		*into = names[ordinal]
	}
	return nil
}

// ConsumerList is the answer to 38: the client ids of a group's members.
type ConsumerList struct {
	ConsumerIDs []string `json:"consumerIdList,omitzero"`
}

// LockBody is the body of 41 and 42.
type LockBody struct {
	ClientID       string         `json:"clientId"`
	Group          string         `json:"consumerGroup"`
	Queues         []MessageQueue `json:"mqSet,omitzero"`
	OnlyThisBroker bool           `json:"onlyThisBroker"` // 5.0
}

// LockResult is the answer to 41: the queues that the client holds now.
type LockResult struct {
	Queues []MessageQueue `json:"lockOKMQSet,omitzero"`
}

// CheckClientBody is the body of 46.
type CheckClientBody struct {
	ClientID         string           `json:"clientId"`
	Group            string           `json:"group"`
	Namespace        string           `json:"namespace,omitempty"`
	SubscriptionData SubscriptionData `json:"subscriptionData"`
}
