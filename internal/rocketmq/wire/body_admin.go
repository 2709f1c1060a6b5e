package wire

import "encoding/json"

// Connection is one client of a group.
type Connection struct {
	Addr     string `json:"clientAddr"`
	ClientID string `json:"clientId"`
	Language string `json:"language"`
	Version  int32  `json:"version"`
}

// ConsumerConnections is the answer to 203.
type ConsumerConnections struct {
	Connections      []Connection                `json:"connectionSet,omitzero"`
	ConsumeFromWhere ConsumeFromWhere            `json:"consumeFromWhere"`
	ConsumeType      ConsumeType                 `json:"consumeType"`
	MessageModel     MessageModel                `json:"messageModel"`
	Subscriptions    map[string]SubscriptionData `json:"subscriptionTable,omitzero"`
}

// ProducerConnections is the answer to 204.
type ProducerConnections struct {
	Connections []Connection `json:"connectionSet,omitzero"`
}

// TopicStats is the answer to 202.
type TopicStats struct {
	Offsets QueueTable[TopicOffset] `json:"offsetTable,omitzero"`
	PutTPS  *float64                `json:"topicPutTps,omitempty"` // 5.3.3
}

// TopicOffset is the extent of one queue.
type TopicOffset struct {
	LastUpdateMillis int64 `json:"lastUpdateTimestamp"`
	MaxOffset        int64 `json:"maxOffset"`
	MinOffset        int64 `json:"minOffset"`
}

// ConsumeStats is the answer to 208. It covers the retry topic when the request named no topic.
type ConsumeStats struct {
	TPS     float64                   `json:"consumeTps"`
	Offsets QueueTable[ConsumeOffset] `json:"offsetTable,omitzero"`
}

// ConsumeOffset is how far a group is in one queue.
type ConsumeOffset struct {
	BrokerOffset   int64  `json:"brokerOffset"`
	ConsumerOffset int64  `json:"consumerOffset"`
	LastMillis     int64  `json:"lastTimestamp"`        // store time of the last consumed message
	PullOffset     *int64 `json:"pullOffset,omitempty"` // later 5.x
}

// TimeSpans is the answer to 303.
type TimeSpans struct {
	Spans []TimeSpan `json:"consumeTimeSpanSet,omitzero"`
}

// TimeSpan is the extent of one queue in time and a group's place in it, in milliseconds. Java derives the texts.
type TimeSpan struct {
	ConsumeMillis int64        `json:"consumeTimeStamp"`
	ConsumeText   string       `json:"consumeTimeStampStr,omitempty"`
	DelayMillis   int64        `json:"delayTime"`
	MaxMillis     int64        `json:"maxTimeStamp"`
	MaxText       string       `json:"maxTimeStampStr,omitempty"`
	Queue         MessageQueue `json:"messageQueue"`
	MinMillis     int64        `json:"minTimeStamp"`
	MinText       string       `json:"minTimeStampStr,omitempty"`
}

// QuerySubscriptionBody is the answer to 345.
type QuerySubscriptionBody struct {
	Group            string            `json:"group"`
	SubscriptionData *SubscriptionData `json:"subscriptionData,omitempty"`
	Topic            string            `json:"topic,omitempty"`
}

// SubscriptionGroup is a consumer group as a broker keeps it: the body of 200 and the answer to 352. The fields since 5.0
// are absent when nil.
type SubscriptionGroup struct {
	Attributes                     map[string]string `json:"attributes,omitzero"`
	BrokerID                       int64             `json:"brokerId"`
	ConsumeBroadcastEnable         bool              `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool              `json:"consumeEnable"`
	ConsumeFromMinEnable           bool              `json:"consumeFromMinEnable"`
	ConsumeMessageOrderly          *bool             `json:"consumeMessageOrderly,omitempty"`
	ConsumeTimeoutMinute           *int32            `json:"consumeTimeoutMinute,omitempty"`
	GroupName                      string            `json:"groupName"`
	RetryPolicy                    json.RawMessage   `json:"groupRetryPolicy,omitempty"`
	GroupSysFlag                   *int32            `json:"groupSysFlag,omitempty"`
	NotifyConsumerIDsChangedEnable bool              `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int32             `json:"retryMaxTimes"`
	RetryQueues                    int32             `json:"retryQueueNums"`
	Subscriptions                  json.RawMessage   `json:"subscriptionDataSet,omitempty"`
	WhichBrokerWhenConsumeSlowly   int64             `json:"whichBrokerWhenConsumeSlowly"`
}

// NewSubscriptionGroup returns a group with RocketMQ's defaults (remoting-protocol.md 3.10).
func NewSubscriptionGroup(name string) SubscriptionGroup {
	return SubscriptionGroup{
		ConsumeBroadcastEnable:         true,
		ConsumeEnable:                  true,
		ConsumeFromMinEnable:           true,
		GroupName:                      name,
		NotifyConsumerIDsChangedEnable: true,
		RetryMaxTimes:                  16,
		RetryQueues:                    1,
		WhichBrokerWhenConsumeSlowly:   1,
	}
}

// SubscriptionGroupTable is the answer to 201.
type SubscriptionGroupTable struct {
	DataVersion DataVersion                  `json:"dataVersion"`
	Forbidden   json.RawMessage              `json:"forbiddenTable,omitempty"`
	Groups      map[string]SubscriptionGroup `json:"subscriptionGroupTable,omitzero"`
}
