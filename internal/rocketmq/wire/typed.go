package wire

// NewHeader returns an empty typed header for a request's code, nil for a code that has none here. Requests without fields
// get a PlainRequest.
func NewHeader(code RequestCode) Request {
	if h := newConsumerHeader(code); h != nil {
		return h
	}
	if h := newProducerHeader(code); h != nil {
		return h
	}
	return newAdminHeader(code)
}

func newConsumerHeader(code RequestCode) Request {
	switch code {
	case ReqPullMessage, ReqLitePullMessage:
		return &PullRequest{Lite: code == ReqLitePullMessage}
	case ReqQueryConsumerOffset:
		return &QueryOffsetRequest{}
	case ReqUpdateConsumerOffset:
		return &UpdateOffsetRequest{}
	case ReqSearchOffsetByTimestamp:
		return &SearchOffsetRequest{}
	case ReqGetMaxOffset:
		return &MaxOffsetRequest{}
	case ReqGetMinOffset:
		return &MinOffsetRequest{}
	case ReqGetEarliestStoreTime:
		return &EarliestTimeRequest{}
	case ReqUnregisterClient:
		return &UnregisterClientRequest{}
	case ReqSendBack:
		return &SendBackRequest{}
	case ReqGetConsumerList:
		return &ConsumerListRequest{}
	case ReqNotifyConsumerIDsChanged:
		return &NotifyConsumersRequest{}
	case ReqResetConsumerClientOffset:
		return &ResetClientRequest{}
	case ReqGetConsumerStatusOfClient:
		return &ClientStatusRequest{}
	case ReqGetConsumerRunningInfo:
		return &RunningInfoRequest{}
	case ReqConsumeDirectly:
		return &ConsumeDirectlyRequest{}
	case ReqHeartbeat, ReqLockQueues, ReqUnlockQueues, ReqCheckClientConfig:
		return &PlainRequest{Op: code}
	default:
		return nil
	}
}

func newProducerHeader(code RequestCode) Request {
	switch code {
	case ReqSendMessage, ReqSendMessageV2, ReqSendBatchMessage, ReqSendReplyMessage, ReqSendReplyMessageV2:
		return &SendRequest{Op: code}
	case ReqPushReplyMessage:
		return &PushReplyRequest{}
	case ReqEndTransaction:
		return &EndTransactionRequest{}
	case ReqCheckTransactionState:
		return &CheckTransactionRequest{}
	case ReqGetRoute:
		return &RouteRequest{}
	case ReqPutKVConfig:
		return &PutKVRequest{}
	case ReqGetKVConfig, ReqDeleteKVConfig:
		return &KVRequest{Delete: code == ReqDeleteKVConfig}
	case ReqGetKVListByNamespace:
		return &KVListRequest{}
	case ReqRegisterBroker:
		return &RegisterBrokerRequest{}
	case ReqUnregisterBroker:
		return &UnregisterBrokerRequest{}
	case ReqQueryDataVersion:
		return &DataVersionRequest{}
	case ReqGetClusterInfo, ReqGetAllTopics:
		return &PlainRequest{Op: code}
	default:
		return nil
	}
}

func newAdminHeader(code RequestCode) Request {
	switch code {
	case ReqUpdateAndCreateTopic:
		return &CreateTopicRequest{}
	case ReqGetTopicStats, ReqQueryTopicConsumers, ReqGetTopicConfig:
		return &TopicRequest{Op: code}
	case ReqGetConsumerConnections:
		return &ConsumerConnectionsRequest{}
	case ReqGetProducerConnections:
		return &ProducerConnectionsRequest{}
	case ReqGetConsumeStats:
		return &ConsumeStatsRequest{}
	case ReqQueryTopicsByConsumer, ReqQuerySubscription, ReqGetSubscriptionGroupConfig:
		return &GroupRequest{Op: code}
	case ReqDeleteSubscriptionGroup:
		return &DeleteGroupRequest{}
	case ReqQueryConsumeTimeSpan:
		return &TimeSpanRequest{}
	case ReqCloneGroupOffset:
		return &CloneOffsetRequest{}
	case ReqQueryMessage:
		return &QueryMessageRequest{}
	case ReqViewMessageByID:
		return &ViewMessageRequest{}
	case ReqDeleteTopicInBroker, ReqDeleteTopicInNameServer:
		return &DeleteTopicRequest{InNameServer: code == ReqDeleteTopicInNameServer}
	case ReqResetOffset:
		return &ResetOffsetRequest{}
	case ReqGetConsumerStatus:
		return &ConsumerStatusRequest{}
	case ReqUpdateSubscriptionGroup, ReqGetAllSubscriptionGroups, ReqGetAllTopicConfig, ReqGetBrokerConfig, ReqGetBrokerRuntimeInfo:
		return &PlainRequest{Op: code}
	default:
		return nil
	}
}

// NewResponseHeader returns an empty typed header for a successful answer to a request's code; a PlainResponse for those
// whose answers have no fields.
func NewResponseHeader(code RequestCode) Header {
	switch code {
	case ReqPullMessage, ReqLitePullMessage:
		return &PullResponse{}
	case ReqSendMessage, ReqSendMessageV2, ReqSendBatchMessage, ReqSendReplyMessage, ReqSendReplyMessageV2:
		return &SendResponse{}
	case ReqQueryConsumerOffset, ReqSearchOffsetByTimestamp, ReqGetMaxOffset, ReqGetMinOffset:
		return &OffsetResponse{}
	case ReqGetEarliestStoreTime:
		return &EarliestTimeResponse{}
	case ReqHeartbeat:
		return &HeartbeatResponse{}
	case ReqGetKVConfig:
		return &KVResponse{}
	case ReqRegisterBroker:
		return &RegisterBrokerResponse{}
	case ReqQueryDataVersion:
		return &DataVersionResponse{}
	case ReqQueryMessage:
		return &QueryMessageResponse{}
	default:
		return &PlainResponse{}
	}
}
