package wire

import "encoding/json"

// TopicRoute is the answer to 105: where a topic's queues are (TopicRouteData; remoting-protocol.md 3.2).
type TopicRoute struct {
	Brokers           []BrokerData        `json:"brokerDatas,omitzero"`
	FilterServerTable map[string][]string `json:"filterServerTable,omitzero"` // legacy; never nil when written
	// OrderTopicConf ("broker-a:4;broker-b:4") replaces Queues for a global order topic.
	OrderTopicConf string      `json:"orderTopicConf,omitempty"`
	Queues         []QueueData `json:"queueDatas,omitzero"`
	// Mappings holds the static topics' part as it stands.
	Mappings json.RawMessage `json:"topicQueueMappingByBroker,omitempty"`
}

// BrokerData is one broker with its replicas.
type BrokerData struct {
	Addrs              IDTable[string] `json:"brokerAddrs,omitzero"` // by broker id; 0 = master
	Name               string          `json:"brokerName"`
	Cluster            string          `json:"cluster"`
	EnableActingMaster *bool           `json:"enableActingMaster,omitempty"` // 5.0
	ZoneName           string          `json:"zoneName,omitempty"`           // 5.0
}

// QueueData is how many queues of a topic a broker has.
type QueueData struct {
	BrokerName   string `json:"brokerName"`
	Perm         int32  `json:"perm"`
	ReadQueues   int32  `json:"readQueueNums"`
	TopicSysFlag int32  `json:"topicSysFlag"`
	WriteQueues  int32  `json:"writeQueueNums"`
}

// ClusterInfo is the answer to 106.
type ClusterInfo struct {
	Brokers  map[string]BrokerData `json:"brokerAddrTable,omitzero"`
	Clusters map[string][]string   `json:"clusterAddrTable,omitzero"`
}

// KVTable is the answer to 219, and what 103 answers of order topics.
type KVTable struct {
	Table map[string]string `json:"table,omitzero"`
}

// TopicList is the answer to 206 and 343.
type TopicList struct {
	BrokerAddr string   `json:"brokerAddr,omitempty"`
	Topics     []string `json:"topicList,omitzero"`
}

// GroupList is the answer to 300.
type GroupList struct {
	Groups []string `json:"groupList,omitzero"`
}

// DataVersion counts the changes of a table.
type DataVersion struct {
	Counter      int64  `json:"counter"`
	StateVersion *int64 `json:"stateVersion,omitempty"` // 5.0
	Timestamp    int64  `json:"timestamp"`              // milliseconds
}

// TopicConfig is a topic as a broker keeps it.
type TopicConfig struct {
	Attributes   map[string]string `json:"attributes,omitzero"` // 5.0; nil = absent
	Order        bool              `json:"order"`
	Perm         int32             `json:"perm"`
	ReadQueues   int32             `json:"readQueueNums"`
	FilterType   string            `json:"topicFilterType"`
	Name         string            `json:"topicName"`
	TopicSysFlag int32             `json:"topicSysFlag"`
	WriteQueues  int32             `json:"writeQueueNums"`
	// Mapping is the static topic's part in an answer to 351, as it stands.
	Mapping json.RawMessage `json:"mappingDetail,omitempty"`
}

// TopicConfigTable is the answer to 21 and the greater part of a registration.
type TopicConfigTable struct {
	DataVersion        DataVersion            `json:"dataVersion"`
	MappingDataVersion *DataVersion           `json:"mappingDataVersion,omitempty"` // 5.0
	Topics             map[string]TopicConfig `json:"topicConfigTable,omitzero"`
	MappingDetails     json.RawMessage        `json:"topicQueueMappingDetailMap,omitempty"`
	MappingInfos       json.RawMessage        `json:"topicQueueMappingInfoMap,omitempty"`
}

// RegisterBrokerBody is the body of 103.
type RegisterBrokerBody struct {
	FilterServers []string         `json:"filterServerList,omitzero"`
	Table         TopicConfigTable `json:"topicConfigSerializeWrapper"`
}
