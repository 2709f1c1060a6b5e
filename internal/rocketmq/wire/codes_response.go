package wire

import "strconv"

// ResponseCode is a response's outcome (ResponseCode, RemotingSysResponseCode; remoting-protocol.md 2.2). Brokers before
// 5.3.2 answer SystemError where later ones answer InvalidParameter.
type ResponseCode int32

// The response codes.
const (
	RespSuccess                 ResponseCode = 0
	RespSystemError             ResponseCode = 1
	RespSystemBusy              ResponseCode = 2
	RespNotSupported            ResponseCode = 3
	RespTransactionFailed       ResponseCode = 4
	RespFlushDiskTimeout        ResponseCode = 10
	RespSlaveNotAvailable       ResponseCode = 11
	RespFlushSlaveTimeout       ResponseCode = 12
	RespMessageIllegal          ResponseCode = 13
	RespServiceNotAvailable     ResponseCode = 14
	RespVersionNotSupported     ResponseCode = 15
	RespNoPermission            ResponseCode = 16
	RespTopicNotExist           ResponseCode = 17
	RespTopicExists             ResponseCode = 18
	RespPullNotFound            ResponseCode = 19
	RespPullRetryImmediately    ResponseCode = 20
	RespPullOffsetMoved         ResponseCode = 21
	RespQueryNotFound           ResponseCode = 22
	RespSubscriptionParseFailed ResponseCode = 23
	RespSubscriptionNotExist    ResponseCode = 24
	RespSubscriptionNotLatest   ResponseCode = 25
	RespGroupNotExist           ResponseCode = 26
	RespFilterDataNotExist      ResponseCode = 27
	RespFilterDataNotLatest     ResponseCode = 28
	RespInvalidParameter        ResponseCode = 29
	RespNoBuyerID               ResponseCode = 204
	RespNotInCurrentUnit        ResponseCode = 205
	RespConsumerNotOnline       ResponseCode = 206
	RespConsumeTimeout          ResponseCode = 207
	RespNoMessage               ResponseCode = 208
	RespPollingFull             ResponseCode = 209
	RespPollingTimeout          ResponseCode = 210
	RespBrokerNotExist          ResponseCode = 211
	RespDispatchNotComplete     ResponseCode = 212
	RespBroadcastConsumption    ResponseCode = 213
	RespFlowControl             ResponseCode = 215
	RespNotLeaderForQueue       ResponseCode = 501
	RespIllegalOperation        ResponseCode = 604
	RespGoAway                  ResponseCode = 1500
	RespUserNotExist            ResponseCode = 3001
	RespPolicyNotExist          ResponseCode = 3002
)

// String returns RocketMQ's name of the code, or the number.
func (c ResponseCode) String() string {
	if name := c.name(); name != "" {
		return name
	}
	return strconv.Itoa(int(c))
}

func (c ResponseCode) name() string {
	switch c {
	case RespSuccess:
		return "SUCCESS"
	case RespSystemError:
		return "SYSTEM_ERROR"
	case RespSystemBusy:
		return "SYSTEM_BUSY"
	case RespNotSupported:
		return "REQUEST_CODE_NOT_SUPPORTED"
	case RespTransactionFailed:
		return "TRANSACTION_FAILED"
	case RespFlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case RespSlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	case RespFlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case RespMessageIllegal:
		return "MESSAGE_ILLEGAL"
	case RespServiceNotAvailable:
		return "SERVICE_NOT_AVAILABLE"
	case RespVersionNotSupported:
		return "VERSION_NOT_SUPPORTED"
	case RespNoPermission:
		return "NO_PERMISSION"
	case RespTopicNotExist:
		return "TOPIC_NOT_EXIST"
	case RespTopicExists:
		return "TOPIC_EXIST_ALREADY"
	case RespPullNotFound:
		return "PULL_NOT_FOUND"
	case RespPullRetryImmediately:
		return "PULL_RETRY_IMMEDIATELY"
	case RespPullOffsetMoved:
		return "PULL_OFFSET_MOVED"
	case RespQueryNotFound:
		return "QUERY_NOT_FOUND"
	case RespSubscriptionParseFailed:
		return "SUBSCRIPTION_PARSE_FAILED"
	case RespSubscriptionNotExist:
		return "SUBSCRIPTION_NOT_EXIST"
	case RespSubscriptionNotLatest:
		return "SUBSCRIPTION_NOT_LATEST"
	case RespGroupNotExist:
		return "SUBSCRIPTION_GROUP_NOT_EXIST"
	case RespFilterDataNotExist:
		return "FILTER_DATA_NOT_EXIST"
	case RespFilterDataNotLatest:
		return "FILTER_DATA_NOT_LATEST"
	case RespInvalidParameter:
		return "INVALID_PARAMETER"
	case RespNoBuyerID:
		return "NO_BUYER_ID"
	case RespNotInCurrentUnit:
		return "NOT_IN_CURRENT_UNIT"
	case RespConsumerNotOnline:
		return "CONSUMER_NOT_ONLINE"
	case RespConsumeTimeout:
		return "CONSUME_MSG_TIMEOUT"
	case RespNoMessage:
		return "NO_MESSAGE"
	case RespPollingFull:
		return "POLLING_FULL"
	case RespPollingTimeout:
		return "POLLING_TIMEOUT"
	case RespBrokerNotExist:
		return "BROKER_NOT_EXIST"
	case RespDispatchNotComplete:
		return "BROKER_DISPATCH_NOT_COMPLETE"
	case RespBroadcastConsumption:
		return "BROADCAST_CONSUMPTION"
	case RespFlowControl:
		return "FLOW_CONTROL"
	case RespNotLeaderForQueue:
		return "NOT_LEADER_FOR_QUEUE"
	case RespIllegalOperation:
		return "ILLEGAL_OPERATION"
	case RespGoAway:
		return "GO_AWAY"
	case RespUserNotExist:
		return "USER_NOT_EXIST"
	case RespPolicyNotExist:
		return "POLICY_NOT_EXIST"
	}
	return ""
}
