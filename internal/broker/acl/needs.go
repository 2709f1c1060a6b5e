package acl

import (
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// permission is what an account may do with a topic or group.
type permission uint8

const (
	deny   permission = 0
	pub    permission = 1
	sub    permission = 2
	either            = pub | sub // to read what a topic is like
)

// need is one right that a request takes.
type need struct {
	group bool
	name  string
	perm  permission
}

// open tells the codes that need no account: reading the name server.
func open(c wire.RequestCode) bool {
	switch c {
	case wire.ReqGetRoute, wire.ReqGetClusterInfo, wire.ReqGetAllTopics, wire.ReqGetKVConfig, wire.ReqGetKVListByNamespace,
		wire.ReqGetTopicsByCluster, wire.ReqGetSystemTopicsFromNameServer:
		return true
	default:
		return false
	}
}

// needsOf lists the rights that a request takes of an account that is no administrator (remoting-protocol.md 1.11, last
// table). False: only an administrator may send it.
func needsOf(cmd *wire.Command) ([]need, bool) {
	field := cmd.Ext.Get
	switch cmd.RequestCode() {
	case wire.ReqSendMessage, wire.ReqSendReplyMessage, wire.ReqRecallMessage:
		return sending(field("topic")), true
	case wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqSendReplyMessageV2:
		return sending(field("b")), true
	case wire.ReqEndTransaction:
		if topic := field("topic"); topic != "" { // since 5.3; before it the half message says whose it is
			return sending(topic), true
		}
		return nil, true
	case wire.ReqPullMessage, wire.ReqLitePullMessage, wire.ReqQueryConsumerOffset, wire.ReqUpdateConsumerOffset:
		return consuming(field("consumerGroup"), field("topic")), true
	case wire.ReqGetConsumerList, wire.ReqUnregisterClient:
		if group := field("consumerGroup"); group != "" {
			return consuming(group), true
		}
		return nil, true
	case wire.ReqSendBack:
		return consuming(field("group")), true
	case wire.ReqHeartbeat:
		return ofHeartbeat(cmd.Body)
	case wire.ReqCheckClientConfig:
		return ofClientCheck(cmd.Body)
	case wire.ReqLockQueues, wire.ReqUnlockQueues:
		return ofLock(cmd.Body)
	case wire.ReqQueryAssignment:
		return ofAssignment(cmd.Body)
	case wire.ReqQueryMessage:
		return topicNeed(field("topic"), sub), true
	case wire.ReqSearchOffsetByTimestamp, wire.ReqGetMaxOffset, wire.ReqGetMinOffset, wire.ReqGetEarliestStoreTime,
		wire.ReqGetTopicConfig, wire.ReqGetTopicStats, wire.ReqQueryConsumeTimeSpan, wire.ReqQueryTopicConsumers:
		return topicNeed(field("topic"), either), true
	case wire.ReqGetConsumerConnections, wire.ReqGetConsumerStatus, wire.ReqGetConsumerRunningInfo, wire.ReqGetConsumeStats,
		wire.ReqGetSubscriptionGroupConfig, wire.ReqQueryTopicsByConsumer, wire.ReqQuerySubscription:
		if group := field("consumerGroup") + field("group"); group != "" {
			return consuming(group), true
		}
		return nil, false
	default:
		return nil, false
	}
}

// topicNeed is the right on a topic; a retry topic is its group's.
func topicNeed(topic string, perm permission) []need {
	if wire.IsRetryTopic(topic) {
		return []need{{true, topic[len(wire.RetryPrefix):], sub}}
	}
	return []need{{false, topic, perm}}
}

func sending(topic string) []need { return topicNeed(topic, pub) }

// consuming is the right to be a member of a group, and to read topics.
func consuming(group string, topics ...string) []need {
	needs := []need{{true, group, sub}}
	for _, t := range topics {
		if !wire.IsRetryTopic(t) {
			needs = append(needs, need{false, t, sub})
		}
	}
	return needs
}

func ofHeartbeat(body []byte) ([]need, bool) {
	var data wire.HeartbeatData
	if err := wire.DecodeBody(body, &data); err != nil {
		return nil, true // the broker tells what is wrong with it
	}
	var needs []need
	for i := range data.ConsumerDataSet {
		c := &data.ConsumerDataSet[i]
		needs = append(needs, consuming(c.GroupName)...)
		for j := range c.SubscriptionDataSet {
			needs = append(needs, consuming(c.GroupName, c.SubscriptionDataSet[j].Topic)[1:]...)
		}
	}
	return needs, true
}

func ofClientCheck(body []byte) ([]need, bool) {
	var data wire.CheckClientBody
	if err := wire.DecodeBody(body, &data); err != nil {
		return nil, true
	}
	return consuming(data.Group, data.SubscriptionData.Topic), true
}

func ofAssignment(body []byte) ([]need, bool) {
	var data wire.QueryAssignmentBody
	if err := wire.DecodeBody(body, &data); err != nil {
		return nil, true
	}
	return consuming(data.Group, data.Topic), true
}

func ofLock(body []byte) ([]need, bool) {
	var data wire.LockBody
	if err := wire.DecodeBody(body, &data); err != nil {
		return nil, true
	}
	needs := consuming(data.Group)
	for _, q := range data.Queues {
		needs = append(needs, consuming(data.Group, q.Topic)[1:]...)
	}
	return needs, true
}
