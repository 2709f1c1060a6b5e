package wire

import "encoding/json"

// BrokerStats is the answer to 315: one statistic over the last minute, hour and day.
type BrokerStats struct {
	Day    StatsItem `json:"statsDay"`
	Hour   StatsItem `json:"statsHour"`
	Minute StatsItem `json:"statsMinute"`
}

// StatsItem is a statistic over one span of time.
type StatsItem struct {
	Average float64 `json:"avgpt"` // for each event
	Sum     int64   `json:"sum"`
	TPS     float64 `json:"tps"` // a second
}

// BrokerConsumeStats is the answer to 317: for each group its progress, topic by topic.
type BrokerConsumeStats struct {
	BrokerAddr    string                      `json:"brokerAddr"`
	Groups        []map[string][]ConsumeStats `json:"consumeStatsList"`
	TotalDiff     int64                       `json:"totalDiff"`
	TotalInflight int64                       `json:"totalInflightDiff"`
}

// ConsumeQueueBody is the answer to 321: a part of a queue's index.
type ConsumeQueueBody struct {
	FilterData   string              `json:"filterData,omitempty"`
	Max          int64               `json:"maxQueueIndex"`
	Min          int64               `json:"minQueueIndex"`
	Entries      []ConsumeQueueEntry `json:"queueData"`
	Subscription *SubscriptionData   `json:"subscriptionData,omitempty"`
}

// ConsumeQueueEntry is one entry of a queue's index. Eval says whether the group's filter lets it pass, where that is an
// expression.
type ConsumeQueueEntry struct {
	Eval      bool   `json:"eval"`
	Message   string `json:"msg,omitempty"` // what is wrong with it
	LogOffset int64  `json:"physicOffset"`
	Size      int32  `json:"physicSize"`
	TagHash   int64  `json:"tagsCode"`
}

// ProducerTable is the answer to 328.
type ProducerTable struct {
	Data map[string][]ProducerInfo `json:"data"`
}

// ProducerInfo is one producer of a group.
type ProducerInfo struct {
	ClientID   string `json:"clientId"`
	Language   string `json:"language"`
	SeenMillis int64  `json:"lastUpdateTimestamp"`
	RemoteIP   string `json:"remoteIP"` // "/ip:port"
	Version    int32  `json:"version"`
}

// GroupForbidden is the answer to 353: whether a group may read a topic.
type GroupForbidden struct {
	Group    string `json:"group"`
	Readable bool   `json:"readable"`
	Topic    string `json:"topic"`
}

// CorrectionOffsets is the answer to 308: by queue id the lowest offset that any group committed.
type CorrectionOffsets struct {
	Offsets IDTable[int64] `json:"correctionOffsets"`
}

// TopicConfigList is the body of 18.
type TopicConfigList struct {
	Topics []TopicConfig `json:"topicConfigList"`
}

// SubscriptionGroupList is the body of 225. Each is read over the defaults of a new group, so it stays raw.
type SubscriptionGroupList struct {
	Groups []json.RawMessage `json:"groupConfigList"`
}

// AllConsumerOffsets is the answer to 43: by "topic@group" and queue id what was committed.
type AllConsumerOffsets struct {
	DataVersion DataVersion               `json:"dataVersion"`
	Topics      map[string][]string       `json:"groupTopicMap"`
	Offsets     map[string]IDTable[int64] `json:"offsetTable"`
}

// MemberGroup is the answer to 901: the addresses of a broker's replicas, of which there is one here.
type MemberGroup struct {
	Group struct {
		Addrs   IDTable[string] `json:"brokerAddrs"`
		Name    string          `json:"brokerName"`
		Cluster string          `json:"cluster"`
	} `json:"brokerMemberGroup"`
}

// MessageRequestMode is how a group gets a topic's messages: the body of 401.
type MessageRequestMode struct {
	Group    string `json:"consumerGroup"`
	Mode     string `json:"mode"` // PULL or POP
	PopShare int32  `json:"popShareQueueNum"`
	Topic    string `json:"topic"`
}

// MessageRequestModes is the answer to 402, by topic and group.
type MessageRequestModes struct {
	Modes map[string]map[string]MessageRequestMode `json:"messageRequestModeMap"`
}

// QueryAssignmentBody is the body of 400.
type QueryAssignmentBody struct {
	ClientID string       `json:"clientId"`
	Group    string       `json:"consumerGroup"`
	Model    MessageModel `json:"messageModel"`
	Strategy string       `json:"strategyName"`
	Topic    string       `json:"topic"`
}

// Assignments is the answer to 400. Nil when the broker does not know the strategy.
type Assignments struct {
	Queues []Assignment `json:"messageQueueAssignments,omitzero"`
}

// Assignment is one queue that a member shall consume.
type Assignment struct {
	Attachments map[string]string `json:"attachments,omitempty"`
	Queue       MessageQueue      `json:"messageQueue"`
	Mode        string            `json:"mode"`
}
