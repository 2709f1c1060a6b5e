package broker

import (
	"errors"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

type code = wire.RequestCode

// handler answers one request code. Nil means that the answer comes later, through the request.
type handler func(b *Broker, r *remote.Request) *remote.Answer

// handlers is the table of the codes a broker answers itself; the name server has its own.
func handlers() map[code]handler {
	return map[code]handler{
		wire.ReqSendMessage:             (*Broker).onSend,
		wire.ReqSendMessageV2:           (*Broker).onSend,
		wire.ReqSendBatchMessage:        (*Broker).onSend,
		wire.ReqSendReplyMessage:        (*Broker).onReply,
		wire.ReqSendReplyMessageV2:      (*Broker).onReply,
		wire.ReqRecallMessage:           (*Broker).onRecall,
		wire.ReqPullMessage:             (*Broker).onPull,
		wire.ReqLitePullMessage:         (*Broker).onPull,
		wire.ReqQueryConsumerOffset:     (*Broker).onQueryOffset,
		wire.ReqUpdateConsumerOffset:    (*Broker).onUpdateOffset,
		wire.ReqSearchOffsetByTimestamp: (*Broker).onSearchOffset,
		wire.ReqGetMaxOffset:            (*Broker).onMaxOffset,
		wire.ReqGetMinOffset:            (*Broker).onMinOffset,
		wire.ReqGetEarliestStoreTime:    (*Broker).onEarliestTime,
		wire.ReqHeartbeat:               (*Broker).onHeartbeat,
		wire.ReqUnregisterClient:        (*Broker).onUnregister,
		wire.ReqSendBack:                (*Broker).onSendBack,
		wire.ReqGetConsumerList:         (*Broker).onConsumerList,
		wire.ReqLockQueues:              (*Broker).onLock,
		wire.ReqUnlockQueues:            (*Broker).onUnlock,
		wire.ReqCheckClientConfig:       (*Broker).onCheckClient,

		wire.ReqEndTransaction:         (*Broker).onEndTransaction,
		wire.ReqQueryMessage:           (*Broker).onQueryMessage,
		wire.ReqViewMessageByID:        (*Broker).onViewMessage,
		wire.ReqGetConsumerRunningInfo: (*Broker).onRunningInfo,
		wire.ReqConsumeDirectly:        (*Broker).onConsumeDirectly,
		wire.ReqGetConsumerStatus:      (*Broker).onConsumerStatus,
		wire.ReqResetOffset:            (*Broker).onReset,

		wire.ReqUpdateAndCreateTopic:       (*Broker).onCreateTopic,
		wire.ReqDeleteTopicInBroker:        (*Broker).onDeleteTopic,
		wire.ReqGetTopicConfig:             (*Broker).onTopicConfig,
		wire.ReqGetAllTopicConfig:          (*Broker).onAllTopics,
		wire.ReqGetTopicStats:              (*Broker).onTopicStats,
		wire.ReqUpdateSubscriptionGroup:    (*Broker).onPutGroup,
		wire.ReqDeleteSubscriptionGroup:    (*Broker).onDeleteGroup,
		wire.ReqGetSubscriptionGroupConfig: (*Broker).onGroupConfig,
		wire.ReqGetAllSubscriptionGroups:   (*Broker).onAllGroups,
		wire.ReqGetConsumerConnections:     (*Broker).onConsumers,
		wire.ReqGetProducerConnections:     (*Broker).onProducers,
		wire.ReqGetConsumeStats:            (*Broker).onConsumeStats,
		wire.ReqQueryTopicConsumers:        (*Broker).onTopicGroups,
		wire.ReqQueryTopicsByConsumer:      (*Broker).onGroupTopics,
		wire.ReqQuerySubscription:          (*Broker).onSubscription,
		wire.ReqQueryConsumeTimeSpan:       (*Broker).onTimeSpan,
		wire.ReqCloneGroupOffset:           (*Broker).onCloneOffsets,
		wire.ReqGetBrokerRuntimeInfo:       (*Broker).onRuntimeInfo,
		wire.ReqGetBrokerConfig:            (*Broker).onBrokerConfig,
		wire.ReqUpdateBrokerConfig:         (*Broker).onUpdateConfig,

		wire.ReqUpdateAndCreateTopicList:    (*Broker).onTopicList,
		wire.ReqUpdateSubscriptionGroupList: (*Broker).onGroupList,
		wire.ReqGetSystemTopicsFromBroker:   (*Broker).onSystemTopics,
		wire.ReqCleanExpiredConsumeQueue:    (*Broker).onClean,
		wire.ReqCleanUnusedTopic:            (*Broker).onClean,
		wire.ReqDeleteExpiredCommitLog:      (*Broker).onClean,
		wire.ReqQueryCorrectionOffset:       (*Broker).onCorrectionOffset,
		wire.ReqGetAllConsumerOffset:        (*Broker).onAllOffsets,
		wire.ReqViewBrokerStats:             (*Broker).onViewStats,
		wire.ReqGetBrokerConsumeStats:       (*Broker).onBrokerConsumeStats,
		wire.ReqQueryConsumeQueue:           (*Broker).onConsumeQueue,
		wire.ReqResumeCheckHalf:             (*Broker).onResumeCheck,
		wire.ReqGetAllProducers:             (*Broker).onAllProducers,
		wire.ReqGroupForbidden:              (*Broker).onForbidden,
		wire.ReqGetBrokerHAStatus:           (*Broker).onReplicas,
		wire.ReqGetColdData:                 (*Broker).onColdData,
		wire.ReqQueryAssignment:             (*Broker).onAssignment,
		wire.ReqSetMessageRequestMode:       (*Broker).onSetMode,
		wire.ReqGetAllMessageRequestMode:    (*Broker).onAllModes,
	}
}

// serve is the door of every request: faults first, then access, then the name server's codes, then the broker's.
func (b *Broker) serve(r *remote.Request) {
	b.faults.apply(r, b.admit)
}

func (b *Broker) dispatch(r *remote.Request) {
	defer b.changes.happened()
	c := r.Command.RequestCode()
	h, known := b.handle[c]
	began, at := b.storage.mark(), time.Now()
	answer := b.answering(func() *remote.Answer {
		if err := b.storage.err(); err != nil && errors.Is(err, store.ErrFailed) {
			return b.cannotStore(err) // What the tables have may not be what is stored.
		}
		if a, ok := b.names.answer(r); ok {
			return a
		}
		if !known {
			return notSupported(c)
		}
		return h(b, r)
	})
	switch {
	case answer == nil:
	case changesNothing(c):
		r.Reply(answer)
	default:
		b.replyStored(r, answer, began, func() {
			if isSend(c) {
				b.counters.putTimes.Add(time.Since(at))
			}
		})
	}
}

func isSend(c code) bool {
	return c == wire.ReqSendMessage || c == wire.ReqSendMessageV2 || c == wire.ReqSendBatchMessage
}

// changesNothing names the requests that are asked often and whose answers need not wait until what was changed before them
// is stored. What a pull or a heartbeat changes by the way is promised to nobody.
func changesNothing(c code) bool {
	switch c {
	case wire.ReqPullMessage, wire.ReqLitePullMessage, wire.ReqHeartbeat, wire.ReqLockQueues, wire.ReqUnlockQueues, wire.ReqGetRoute:
		return true
	default:
		return false
	}
}

// replyStored answers when all that the request changed since it began is stored. An answer of success becomes a refusal if it
// is not, or if the store failed meanwhile; stored hears of a success that stays one.
func (b *Broker) replyStored(r *remote.Request, a *remote.Answer, began mark, stored func()) {
	b.storage.settled(began, func(err error) {
		if err == nil && a.Code == wire.RespSuccess {
			stored()
		}
		if err != nil && a.Code == wire.RespSuccess {
			refusal := b.cannotStore(err)
			a = &remote.Answer{Code: refusal.Code, Remark: refusal.Remark, Ext: a.Ext}
		}
		r.Reply(a)
		b.changes.happened()
	})
}
