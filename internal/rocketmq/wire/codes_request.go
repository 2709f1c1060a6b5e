package wire

import "strconv"

// RequestCode is what a request asks for (RequestCode; remoting-protocol.md 2.1).
type RequestCode int32

// The request codes that streamd sends, answers, or names in a trace.
const (
	ReqSendMessage                   RequestCode = 10
	ReqPullMessage                   RequestCode = 11
	ReqQueryMessage                  RequestCode = 12
	ReqQueryConsumerOffset           RequestCode = 14
	ReqUpdateConsumerOffset          RequestCode = 15
	ReqUpdateAndCreateTopic          RequestCode = 17
	ReqUpdateAndCreateTopicList      RequestCode = 18
	ReqGetAllTopicConfig             RequestCode = 21
	ReqUpdateBrokerConfig            RequestCode = 25
	ReqGetBrokerConfig               RequestCode = 26
	ReqGetBrokerRuntimeInfo          RequestCode = 28
	ReqSearchOffsetByTimestamp       RequestCode = 29
	ReqGetMaxOffset                  RequestCode = 30
	ReqGetMinOffset                  RequestCode = 31
	ReqGetEarliestStoreTime          RequestCode = 32
	ReqViewMessageByID               RequestCode = 33
	ReqHeartbeat                     RequestCode = 34
	ReqUnregisterClient              RequestCode = 35
	ReqSendBack                      RequestCode = 36
	ReqEndTransaction                RequestCode = 37
	ReqGetConsumerList               RequestCode = 38
	ReqCheckTransactionState         RequestCode = 39
	ReqNotifyConsumerIDsChanged      RequestCode = 40
	ReqLockQueues                    RequestCode = 41
	ReqUnlockQueues                  RequestCode = 42
	ReqGetAllConsumerOffset          RequestCode = 43
	ReqGetAllDelayOffset             RequestCode = 45
	ReqCheckClientConfig             RequestCode = 46
	ReqPutKVConfig                   RequestCode = 100
	ReqGetKVConfig                   RequestCode = 101
	ReqDeleteKVConfig                RequestCode = 102
	ReqRegisterBroker                RequestCode = 103
	ReqUnregisterBroker              RequestCode = 104
	ReqGetRoute                      RequestCode = 105
	ReqGetClusterInfo                RequestCode = 106
	ReqUpdateSubscriptionGroup       RequestCode = 200
	ReqGetAllSubscriptionGroups      RequestCode = 201
	ReqGetTopicStats                 RequestCode = 202
	ReqGetConsumerConnections        RequestCode = 203
	ReqGetProducerConnections        RequestCode = 204
	ReqWipeWritePerm                 RequestCode = 205
	ReqGetAllTopics                  RequestCode = 206
	ReqDeleteSubscriptionGroup       RequestCode = 207
	ReqGetConsumeStats               RequestCode = 208
	ReqDeleteTopicInBroker           RequestCode = 215
	ReqDeleteTopicInNameServer       RequestCode = 216
	ReqRegisterTopicInNameServer     RequestCode = 217
	ReqGetKVListByNamespace          RequestCode = 219
	ReqResetConsumerClientOffset     RequestCode = 220
	ReqGetConsumerStatusOfClient     RequestCode = 221
	ReqResetOffset                   RequestCode = 222
	ReqGetConsumerStatus             RequestCode = 223
	ReqGetTopicsByCluster            RequestCode = 224
	ReqUpdateSubscriptionGroupList   RequestCode = 225
	ReqQueryTopicConsumers           RequestCode = 300
	ReqQueryConsumeTimeSpan          RequestCode = 303
	ReqGetSystemTopicsFromNameServer RequestCode = 304
	ReqGetSystemTopicsFromBroker     RequestCode = 305
	ReqCleanExpiredConsumeQueue      RequestCode = 306
	ReqGetConsumerRunningInfo        RequestCode = 307
	ReqQueryCorrectionOffset         RequestCode = 308
	ReqConsumeDirectly               RequestCode = 309
	ReqSendMessageV2                 RequestCode = 310
	ReqGetUnitTopics                 RequestCode = 311
	ReqGetHasUnitSubTopics           RequestCode = 312
	ReqGetHasUnitSubUnunitTopics     RequestCode = 313
	ReqCloneGroupOffset              RequestCode = 314
	ReqViewBrokerStats               RequestCode = 315
	ReqCleanUnusedTopic              RequestCode = 316
	ReqGetBrokerConsumeStats         RequestCode = 317
	ReqUpdateNameServerConfig        RequestCode = 318
	ReqGetNameServerConfig           RequestCode = 319
	ReqSendBatchMessage              RequestCode = 320
	ReqQueryConsumeQueue             RequestCode = 321
	ReqQueryDataVersion              RequestCode = 322
	ReqResumeCheckHalf               RequestCode = 323
	ReqSendReplyMessage              RequestCode = 324
	ReqSendReplyMessageV2            RequestCode = 325
	ReqPushReplyMessage              RequestCode = 326
	ReqAddWritePerm                  RequestCode = 327
	ReqGetAllProducers               RequestCode = 328
	ReqDeleteExpiredCommitLog        RequestCode = 329
	ReqQueryTopicsByConsumer         RequestCode = 343
	ReqQuerySubscription             RequestCode = 345
	ReqGetTopicConfig                RequestCode = 351
	ReqGetSubscriptionGroupConfig    RequestCode = 352
	ReqGroupForbidden                RequestCode = 353
	ReqCheckRocksDB                  RequestCode = 354
	ReqExportRocksDB                 RequestCode = 355
	ReqLitePullMessage               RequestCode = 361
	ReqRecallMessage                 RequestCode = 370
	ReqQueryAssignment               RequestCode = 400
	ReqSetMessageRequestMode         RequestCode = 401
	ReqGetAllMessageRequestMode      RequestCode = 402
	ReqUpdateStaticTopic             RequestCode = 513
	ReqGetBrokerMemberGroup          RequestCode = 901
	ReqAddBroker                     RequestCode = 902
	ReqRemoveBroker                  RequestCode = 903
	ReqBrokerHeartbeat               RequestCode = 904
	ReqGetBrokerHAStatus             RequestCode = 907
	ReqResetMasterFlushOffset        RequestCode = 908
	ReqGetBrokerEpoch                RequestCode = 1007
	ReqUpdateColdData                RequestCode = 2001
	ReqRemoveColdData                RequestCode = 2002
	ReqGetColdData                   RequestCode = 2003
	ReqSetCommitLogReadMode          RequestCode = 2004
	ReqPopMessage                    RequestCode = 200050
	ReqAckMessage                    RequestCode = 200051
	ReqPeekMessage                   RequestCode = 200052
	ReqChangeInvisibleTime           RequestCode = 200053
	ReqNotification                  RequestCode = 200054
	ReqPollingInfo                   RequestCode = 200055
	ReqPopRollback                   RequestCode = 200056
	ReqBatchAckMessage               RequestCode = 200151
)

// String returns RocketMQ's name of the code, or the number.
func (c RequestCode) String() string {
	if name := c.name(); name != "" {
		return name
	}
	return strconv.Itoa(int(c))
}

// name looks in switches, not in a map: a map would be package state.
func (c RequestCode) name() string {
	switch {
	case c < 100:
		return c.nameBelow100()
	case c < 300:
		return c.nameBelow300()
	case c < 400:
		return c.nameBelow400()
	default:
		return c.nameFrom400()
	}
}

func (c RequestCode) nameBelow100() string {
	switch c {
	case ReqSendMessage:
		return "SEND_MESSAGE"
	case ReqPullMessage:
		return "PULL_MESSAGE"
	case ReqQueryMessage:
		return "QUERY_MESSAGE"
	case ReqQueryConsumerOffset:
		return "QUERY_CONSUMER_OFFSET"
	case ReqUpdateConsumerOffset:
		return "UPDATE_CONSUMER_OFFSET"
	case ReqUpdateAndCreateTopic:
		return "UPDATE_AND_CREATE_TOPIC"
	case ReqGetAllTopicConfig:
		return "GET_ALL_TOPIC_CONFIG"
	case ReqGetBrokerConfig:
		return "GET_BROKER_CONFIG"
	case ReqGetBrokerRuntimeInfo:
		return "GET_BROKER_RUNTIME_INFO"
	case ReqSearchOffsetByTimestamp:
		return "SEARCH_OFFSET_BY_TIMESTAMP"
	case ReqGetMaxOffset:
		return "GET_MAX_OFFSET"
	case ReqGetMinOffset:
		return "GET_MIN_OFFSET"
	case ReqGetEarliestStoreTime:
		return "GET_EARLIEST_MSG_STORETIME"
	case ReqViewMessageByID:
		return "VIEW_MESSAGE_BY_ID"
	case ReqHeartbeat:
		return "HEART_BEAT"
	case ReqUnregisterClient:
		return "UNREGISTER_CLIENT"
	case ReqSendBack:
		return "CONSUMER_SEND_MSG_BACK"
	case ReqEndTransaction:
		return "END_TRANSACTION"
	case ReqGetConsumerList:
		return "GET_CONSUMER_LIST_BY_GROUP"
	case ReqCheckTransactionState:
		return "CHECK_TRANSACTION_STATE"
	case ReqNotifyConsumerIDsChanged:
		return "NOTIFY_CONSUMER_IDS_CHANGED"
	case ReqLockQueues:
		return "LOCK_BATCH_MQ"
	case ReqUnlockQueues:
		return "UNLOCK_BATCH_MQ"
	case ReqCheckClientConfig:
		return "CHECK_CLIENT_CONFIG"
	case ReqUpdateAndCreateTopicList:
		return "UPDATE_AND_CREATE_TOPIC_LIST"
	case ReqUpdateBrokerConfig:
		return "UPDATE_BROKER_CONFIG"
	case ReqGetAllConsumerOffset:
		return "GET_ALL_CONSUMER_OFFSET"
	case ReqGetAllDelayOffset:
		return "GET_ALL_DELAY_OFFSET"
	default:
		return ""
	}
}

func (c RequestCode) nameBelow300() string {
	switch c {
	case ReqPutKVConfig:
		return "PUT_KV_CONFIG"
	case ReqGetKVConfig:
		return "GET_KV_CONFIG"
	case ReqDeleteKVConfig:
		return "DELETE_KV_CONFIG"
	case ReqRegisterBroker:
		return "REGISTER_BROKER"
	case ReqUnregisterBroker:
		return "UNREGISTER_BROKER"
	case ReqGetRoute:
		return "GET_ROUTEINFO_BY_TOPIC"
	case ReqGetClusterInfo:
		return "GET_BROKER_CLUSTER_INFO"
	case ReqUpdateSubscriptionGroup:
		return "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"
	case ReqGetAllSubscriptionGroups:
		return "GET_ALL_SUBSCRIPTIONGROUP_CONFIG"
	case ReqGetTopicStats:
		return "GET_TOPIC_STATS_INFO"
	case ReqGetConsumerConnections:
		return "GET_CONSUMER_CONNECTION_LIST"
	case ReqGetProducerConnections:
		return "GET_PRODUCER_CONNECTION_LIST"
	case ReqGetAllTopics:
		return "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"
	case ReqDeleteSubscriptionGroup:
		return "DELETE_SUBSCRIPTIONGROUP"
	case ReqGetConsumeStats:
		return "GET_CONSUME_STATS"
	case ReqDeleteTopicInBroker:
		return "DELETE_TOPIC_IN_BROKER"
	case ReqDeleteTopicInNameServer:
		return "DELETE_TOPIC_IN_NAMESRV"
	case ReqGetKVListByNamespace:
		return "GET_KVLIST_BY_NAMESPACE"
	case ReqResetConsumerClientOffset:
		return "RESET_CONSUMER_CLIENT_OFFSET"
	case ReqGetConsumerStatusOfClient:
		return "GET_CONSUMER_STATUS_FROM_CLIENT"
	case ReqResetOffset:
		return "INVOKE_BROKER_TO_RESET_OFFSET"
	case ReqGetConsumerStatus:
		return "INVOKE_BROKER_TO_GET_CONSUMER_STATUS"
	case ReqWipeWritePerm:
		return "WIPE_WRITE_PERM_OF_BROKER"
	case ReqRegisterTopicInNameServer:
		return "REGISTER_TOPIC_IN_NAMESRV"
	case ReqGetTopicsByCluster:
		return "GET_TOPICS_BY_CLUSTER"
	case ReqUpdateSubscriptionGroupList:
		return "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST"
	default:
		return ""
	}
}

func (c RequestCode) nameBelow400() string {
	switch c {
	case ReqQueryTopicConsumers:
		return "QUERY_TOPIC_CONSUME_BY_WHO"
	case ReqQueryConsumeTimeSpan:
		return "QUERY_CONSUME_TIME_SPAN"
	case ReqGetSystemTopicsFromNameServer:
		return "GET_SYSTEM_TOPIC_LIST_FROM_NS"
	case ReqGetSystemTopicsFromBroker:
		return "GET_SYSTEM_TOPIC_LIST_FROM_BROKER"
	case ReqCleanExpiredConsumeQueue:
		return "CLEAN_EXPIRED_CONSUMEQUEUE"
	case ReqGetConsumerRunningInfo:
		return "GET_CONSUMER_RUNNING_INFO"
	case ReqQueryCorrectionOffset:
		return "QUERY_CORRECTION_OFFSET"
	case ReqConsumeDirectly:
		return "CONSUME_MESSAGE_DIRECTLY"
	case ReqSendMessageV2:
		return "SEND_MESSAGE_V2"
	case ReqGetUnitTopics:
		return "GET_UNIT_TOPIC_LIST"
	case ReqGetHasUnitSubTopics:
		return "GET_HAS_UNIT_SUB_TOPIC_LIST"
	case ReqGetHasUnitSubUnunitTopics:
		return "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST"
	case ReqCloneGroupOffset:
		return "CLONE_GROUP_OFFSET"
	case ReqViewBrokerStats:
		return "VIEW_BROKER_STATS_DATA"
	case ReqCleanUnusedTopic:
		return "CLEAN_UNUSED_TOPIC"
	case ReqGetBrokerConsumeStats:
		return "GET_BROKER_CONSUME_STATS"
	case ReqUpdateNameServerConfig:
		return "UPDATE_NAMESRV_CONFIG"
	case ReqGetNameServerConfig:
		return "GET_NAMESRV_CONFIG"
	case ReqSendBatchMessage:
		return "SEND_BATCH_MESSAGE"
	case ReqQueryConsumeQueue:
		return "QUERY_CONSUME_QUEUE"
	case ReqQueryDataVersion:
		return "QUERY_DATA_VERSION"
	case ReqResumeCheckHalf:
		return "RESUME_CHECK_HALF_MESSAGE"
	case ReqSendReplyMessage:
		return "SEND_REPLY_MESSAGE"
	case ReqSendReplyMessageV2:
		return "SEND_REPLY_MESSAGE_V2"
	case ReqPushReplyMessage:
		return "PUSH_REPLY_MESSAGE_TO_CLIENT"
	case ReqAddWritePerm:
		return "ADD_WRITE_PERM_OF_BROKER"
	case ReqGetAllProducers:
		return "GET_ALL_PRODUCER_INFO"
	case ReqDeleteExpiredCommitLog:
		return "DELETE_EXPIRED_COMMITLOG"
	case ReqQueryTopicsByConsumer:
		return "QUERY_TOPICS_BY_CONSUMER"
	case ReqQuerySubscription:
		return "QUERY_SUBSCRIPTION_BY_CONSUMER"
	case ReqGetTopicConfig:
		return "GET_TOPIC_CONFIG"
	case ReqGetSubscriptionGroupConfig:
		return "GET_SUBSCRIPTIONGROUP_CONFIG"
	case ReqGroupForbidden:
		return "UPDATE_AND_GET_GROUP_FORBIDDEN"
	case ReqCheckRocksDB:
		return "CHECK_ROCKSDB_CQ_WRITE_PROGRESS"
	case ReqExportRocksDB:
		return "EXPORT_ROCKSDB_CONFIG_TO_JSON"
	case ReqLitePullMessage:
		return "LITE_PULL_MESSAGE"
	case ReqRecallMessage:
		return "RECALL_MESSAGE"
	default:
		return ""
	}
}

func (c RequestCode) nameFrom400() string {
	switch c {
	case ReqQueryAssignment:
		return "QUERY_ASSIGNMENT"
	case ReqSetMessageRequestMode:
		return "SET_MESSAGE_REQUEST_MODE"
	case ReqGetAllMessageRequestMode:
		return "GET_ALL_MESSAGE_REQUEST_MODE"
	case ReqUpdateStaticTopic:
		return "UPDATE_AND_CREATE_STATIC_TOPIC"
	case ReqGetBrokerMemberGroup:
		return "GET_BROKER_MEMBER_GROUP"
	case ReqAddBroker:
		return "ADD_BROKER"
	case ReqRemoveBroker:
		return "REMOVE_BROKER"
	case ReqBrokerHeartbeat:
		return "BROKER_HEARTBEAT"
	case ReqGetBrokerHAStatus:
		return "GET_BROKER_HA_STATUS"
	case ReqResetMasterFlushOffset:
		return "RESET_MASTER_FLUSH_OFFSET"
	case ReqGetBrokerEpoch:
		return "GET_BROKER_EPOCH_CACHE"
	case ReqUpdateColdData:
		return "UPDATE_COLD_DATA_FLOW_CTR_CONFIG"
	case ReqRemoveColdData:
		return "REMOVE_COLD_DATA_FLOW_CTR_CONFIG"
	case ReqGetColdData:
		return "GET_COLD_DATA_FLOW_CTR_INFO"
	case ReqSetCommitLogReadMode:
		return "SET_COMMITLOG_READ_MODE"
	case ReqPopMessage:
		return "POP_MESSAGE"
	case ReqAckMessage:
		return "ACK_MESSAGE"
	case ReqPeekMessage:
		return "PEEK_MESSAGE"
	case ReqChangeInvisibleTime:
		return "CHANGE_MESSAGE_INVISIBLETIME"
	case ReqNotification:
		return "NOTIFICATION"
	case ReqPollingInfo:
		return "POLLING_INFO"
	case ReqPopRollback:
		return "POP_ROLLBACK"
	case ReqBatchAckMessage:
		return "BATCH_ACK_MESSAGE"
	default:
		return ""
	}
}
