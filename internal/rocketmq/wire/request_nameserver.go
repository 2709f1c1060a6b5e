package wire

// RouteRequest is the header of 105 GET_ROUTEINFO_BY_TOPIC; the answer's body is a TopicRoute.
type RouteRequest struct {
	Topic        string
	StandardJSON Opt[bool] // acceptStandardJsonOnly: 4.9.4
	Common
}

// RequestCode is ReqGetRoute.
func (*RouteRequest) RequestCode() RequestCode { return ReqGetRoute }

func (r *RouteRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.optBool("acceptStandardJsonOnly", &r.StandardJSON)
	r.bindCommon(b)
}

// PutKVRequest is the header of 100 PUT_KV_CONFIG.
type PutKVRequest struct {
	Namespace string
	Key       string
	Value     string
	Common
}

// RequestCode is ReqPutKVConfig.
func (*PutKVRequest) RequestCode() RequestCode { return ReqPutKVConfig }

func (r *PutKVRequest) bind(b *binder) {
	b.text("namespace", &r.Namespace)
	b.text("key", &r.Key)
	b.text("value", &r.Value)
	r.bindCommon(b)
}

// KVRequest is the header of 101 GET_KV_CONFIG and 102 DELETE_KV_CONFIG.
type KVRequest struct {
	Delete    bool
	Namespace string
	Key       string
	Common
}

// RequestCode is ReqGetKVConfig or ReqDeleteKVConfig.
func (r *KVRequest) RequestCode() RequestCode {
	if r.Delete {
		return ReqDeleteKVConfig
	}
	return ReqGetKVConfig
}

func (r *KVRequest) bind(b *binder) {
	b.text("namespace", &r.Namespace)
	b.text("key", &r.Key)
	r.bindCommon(b)
}

// KVResponse is the header of the answer to 101; without a value the code is RespQueryNotFound.
type KVResponse struct {
	Value Opt[string]
	Other Fields
}

func (r *KVResponse) bind(b *binder) {
	b.optText("value", &r.Value)
	b.rest(&r.Other)
}

// KVListRequest is the header of 219 GET_KVLIST_BY_NAMESPACE; the answer's body is a KVTable.
type KVListRequest struct {
	Namespace string
	Common
}

// RequestCode is ReqGetKVListByNamespace.
func (*KVListRequest) RequestCode() RequestCode { return ReqGetKVListByNamespace }

func (r *KVListRequest) bind(b *binder) {
	b.text("namespace", &r.Namespace)
	r.bindCommon(b)
}

// RegisterBrokerRequest is the header of 103 REGISTER_BROKER; the body is a RegisterBrokerBody.
type RegisterBrokerRequest struct {
	BrokerName             string
	BrokerAddr             string
	ClusterName            string
	HAServerAddr           string
	BrokerID               int64
	HeartbeatTimeoutMillis Opt[int64]
	EnableActingMaster     Opt[bool]
	Compressed             bool
	BodyCRC32              int32 // masked CRC of the body; 0 = not checked
	// Other holds the rest. The field bname does not occur here.
	Other Fields
}

// RequestCode is ReqRegisterBroker.
func (*RegisterBrokerRequest) RequestCode() RequestCode { return ReqRegisterBroker }

func (r *RegisterBrokerRequest) bind(b *binder) {
	b.text("brokerName", &r.BrokerName)
	b.text("brokerAddr", &r.BrokerAddr)
	b.text("clusterName", &r.ClusterName)
	b.text("haServerAddr", &r.HAServerAddr)
	b.int64("brokerId", &r.BrokerID)
	b.optInt64("heartbeatTimeoutMillis", &r.HeartbeatTimeoutMillis)
	b.optBool("enableActingMaster", &r.EnableActingMaster)
	b.lenientBool("compressed", &r.Compressed)
	b.lenientInt32("bodyCrc32", &r.BodyCRC32)
	b.rest(&r.Other)
}

// RegisterBrokerResponse is the header of the answer to 103.
type RegisterBrokerResponse struct {
	HAServerAddr Opt[string]
	MasterAddr   Opt[string] // only told to slaves
	Other        Fields
}

func (r *RegisterBrokerResponse) bind(b *binder) {
	b.optText("haServerAddr", &r.HAServerAddr)
	b.optText("masterAddr", &r.MasterAddr)
	b.rest(&r.Other)
}

// UnregisterBrokerRequest is the header of 104 UNREGISTER_BROKER.
type UnregisterBrokerRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64
	Other       Fields
}

// RequestCode is ReqUnregisterBroker.
func (*UnregisterBrokerRequest) RequestCode() RequestCode { return ReqUnregisterBroker }

func (r *UnregisterBrokerRequest) bind(b *binder) {
	bindBroker(b, &r.BrokerName, &r.BrokerAddr, &r.ClusterName, &r.BrokerID)
	b.rest(&r.Other)
}

func bindBroker(b *binder, name, addr, cluster *string, id *int64) {
	b.text("brokerName", name)
	b.text("brokerAddr", addr)
	b.text("clusterName", cluster)
	b.int64("brokerId", id)
}

// DataVersionRequest is the header of 322 QUERY_DATA_VERSION; both bodies are a DataVersion.
type DataVersionRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64
	Other       Fields
}

// RequestCode is ReqQueryDataVersion.
func (*DataVersionRequest) RequestCode() RequestCode { return ReqQueryDataVersion }

func (r *DataVersionRequest) bind(b *binder) {
	bindBroker(b, &r.BrokerName, &r.BrokerAddr, &r.ClusterName, &r.BrokerID)
	b.rest(&r.Other)
}

// DataVersionResponse is the header of the answer to 322.
type DataVersionResponse struct {
	Changed bool
	Other   Fields
}

func (r *DataVersionResponse) bind(b *binder) {
	b.bool("changed", &r.Changed)
	b.rest(&r.Other)
}

// DeleteTopicRequest is the header of 215 (in a broker) and 216 (in a name server).
type DeleteTopicRequest struct {
	InNameServer bool
	Topic        string
	ClusterName  Opt[string] // 216 only
	Common
}

// RequestCode is ReqDeleteTopicInNameServer or ReqDeleteTopicInBroker.
func (r *DeleteTopicRequest) RequestCode() RequestCode {
	if r.InNameServer {
		return ReqDeleteTopicInNameServer
	}
	return ReqDeleteTopicInBroker
}

func (r *DeleteTopicRequest) bind(b *binder) {
	b.text("topic", &r.Topic)
	b.optText("clusterName", &r.ClusterName)
	r.bindCommon(b)
}
