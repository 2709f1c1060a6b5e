package wire

import "strconv"

// RequestCode is what a request asks for (RequestCode; remoting-protocol.md 2.1).
type RequestCode int32

// The request codes that streamd sends, answers, or names in a trace.
const (
	ReqSendMessage                RequestCode = 10
	ReqPullMessage                RequestCode = 11
	ReqQueryMessage               RequestCode = 12
	ReqQueryConsumerOffset        RequestCode = 14
	ReqUpdateConsumerOffset       RequestCode = 15
	ReqUpdateAndCreateTopic       RequestCode = 17
	ReqGetAllTopicConfig          RequestCode = 21
	ReqGetBrokerConfig            RequestCode = 26
	ReqGetBrokerRuntimeInfo       RequestCode = 28
	ReqSearchOffsetByTimestamp    RequestCode = 29
	ReqGetMaxOffset               RequestCode = 30
	ReqGetMinOffset               RequestCode = 31
	ReqGetEarliestStoreTime       RequestCode = 32
	ReqViewMessageByID            RequestCode = 33
	ReqHeartbeat                  RequestCode = 34
	ReqUnregisterClient           RequestCode = 35
	ReqSendBack                   RequestCode = 36
	ReqEndTransaction             RequestCode = 37
	ReqGetConsumerList            RequestCode = 38
	ReqCheckTransactionState      RequestCode = 39
	ReqNotifyConsumerIDsChanged   RequestCode = 40
	ReqLockQueues                 RequestCode = 41
	ReqUnlockQueues               RequestCode = 42
	ReqCheckClientConfig          RequestCode = 46
	ReqPutKVConfig                RequestCode = 100
	ReqGetKVConfig                RequestCode = 101
	ReqDeleteKVConfig             RequestCode = 102
	ReqRegisterBroker             RequestCode = 103
	ReqUnregisterBroker           RequestCode = 104
	ReqGetRoute                   RequestCode = 105
	ReqGetClusterInfo             RequestCode = 106
	ReqUpdateSubscriptionGroup    RequestCode = 200
	ReqGetAllSubscriptionGroups   RequestCode = 201
	ReqGetTopicStats              RequestCode = 202
	ReqGetConsumerConnections     RequestCode = 203
	ReqGetProducerConnections     RequestCode = 204
	ReqGetAllTopics               RequestCode = 206
	ReqDeleteSubscriptionGroup    RequestCode = 207
	ReqGetConsumeStats            RequestCode = 208
	ReqDeleteTopicInBroker        RequestCode = 215
	ReqDeleteTopicInNameServer    RequestCode = 216
	ReqGetKVListByNamespace       RequestCode = 219
	ReqResetConsumerClientOffset  RequestCode = 220
	ReqGetConsumerStatusOfClient  RequestCode = 221
	ReqResetOffset                RequestCode = 222
	ReqGetConsumerStatus          RequestCode = 223
	ReqQueryTopicConsumers        RequestCode = 300
	ReqQueryConsumeTimeSpan       RequestCode = 303
	ReqGetConsumerRunningInfo     RequestCode = 307
	ReqConsumeDirectly            RequestCode = 309
	ReqSendMessageV2              RequestCode = 310
	ReqCloneGroupOffset           RequestCode = 314
	ReqSendBatchMessage           RequestCode = 320
	ReqQueryDataVersion           RequestCode = 322
	ReqSendReplyMessage           RequestCode = 324
	ReqSendReplyMessageV2         RequestCode = 325
	ReqPushReplyMessage           RequestCode = 326
	ReqQueryTopicsByConsumer      RequestCode = 343
	ReqQuerySubscription          RequestCode = 345
	ReqGetTopicConfig             RequestCode = 351
	ReqGetSubscriptionGroupConfig RequestCode = 352
	ReqLitePullMessage            RequestCode = 361
	ReqRecallMessage              RequestCode = 370
	ReqQueryAssignment            RequestCode = 400
	ReqSetMessageRequestMode      RequestCode = 401
	ReqPopMessage                 RequestCode = 200050
	ReqAckMessage                 RequestCode = 200051
	ReqPeekMessage                RequestCode = 200052
	ReqChangeInvisibleTime        RequestCode = 200053
	ReqNotification               RequestCode = 200054
	ReqPollingInfo                RequestCode = 200055
	ReqBatchAckMessage            RequestCode = 200151
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
	default:
		return c.nameFrom300()
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
	default:
		return ""
	}
}

func (c RequestCode) nameFrom300() string {
	switch c {
	case ReqQueryTopicConsumers:
		return "QUERY_TOPIC_CONSUME_BY_WHO"
	case ReqQueryConsumeTimeSpan:
		return "QUERY_CONSUME_TIME_SPAN"
	case ReqGetConsumerRunningInfo:
		return "GET_CONSUMER_RUNNING_INFO"
	case ReqConsumeDirectly:
		return "CONSUME_MESSAGE_DIRECTLY"
	case ReqSendMessageV2:
		return "SEND_MESSAGE_V2"
	case ReqCloneGroupOffset:
		return "CLONE_GROUP_OFFSET"
	case ReqSendBatchMessage:
		return "SEND_BATCH_MESSAGE"
	case ReqQueryDataVersion:
		return "QUERY_DATA_VERSION"
	case ReqSendReplyMessage:
		return "SEND_REPLY_MESSAGE"
	case ReqSendReplyMessageV2:
		return "SEND_REPLY_MESSAGE_V2"
	case ReqPushReplyMessage:
		return "PUSH_REPLY_MESSAGE_TO_CLIENT"
	case ReqQueryTopicsByConsumer:
		return "QUERY_TOPICS_BY_CONSUMER"
	case ReqQuerySubscription:
		return "QUERY_SUBSCRIPTION_BY_CONSUMER"
	case ReqGetTopicConfig:
		return "GET_TOPIC_CONFIG"
	case ReqGetSubscriptionGroupConfig:
		return "GET_SUBSCRIPTIONGROUP_CONFIG"
	case ReqLitePullMessage:
		return "LITE_PULL_MESSAGE"
	case ReqRecallMessage:
		return "RECALL_MESSAGE"
	case ReqQueryAssignment:
		return "QUERY_ASSIGNMENT"
	case ReqSetMessageRequestMode:
		return "SET_MESSAGE_REQUEST_MODE"
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
	case ReqBatchAckMessage:
		return "BATCH_ACK_MESSAGE"
	default:
		return ""
	}
}
