package broker

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// scanLimit is how many messages one filtering pull looks at (consumer-semantics.md 3.7).
const scanLimit = 800

// The bits of a pull's sysFlag that matter here, remoting-protocol.md 2.5.
const (
	pullCommits       = 1
	pullSuspends      = 2
	pullHasExpression = 4
)

// statusReset is the status of a pull that picks up a reset.
const statusReset store.Status = "OFFSET_RESET"

// pull is a request of 11 or 361.
type pull struct {
	request             *remote.Request
	group, topic        string
	queue               int32
	offset, commit      int64
	max                 int
	flags               int32
	suspend             int64
	expression, kind    string
	subscriptionVersion int64
	filter              filter
}

func (p *pull) groupQueue() groupQueue { return queueOf(p.group, p.topic, p.queue) }

// onPull is 11 and 361.
func (b *Broker) onPull(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	p := &pull{
		request: r, group: f.text("consumerGroup"), topic: f.text("topic"), queue: f.int32("queueId"),
		offset: f.int64("queueOffset"), max: int(f.int32("maxMsgNums")), flags: f.int32("sysFlag"),
		commit: f.int64Or("commitOffset", 0), suspend: f.int64Or("suspendTimeoutMillis", 0),
		expression: f.optional("subscription"), kind: f.optional("expressionType"), subscriptionVersion: f.int64Or("subVersion", 0),
	}
	if bad := f.bad(); bad != nil {
		return bad
	}
	if bad := b.checkPull(p); bad != nil {
		return bad
	}
	if bad := b.chooseFilter(p); bad != nil {
		return bad
	}
	a, nothing := b.tryPull(p)
	b.offsets.notePull(p.groupQueue(), p.offset)
	if p.flags&pullCommits != 0 {
		b.offsets.piggyback(p.groupQueue(), p.commit)
	}
	if nothing && p.flags&pullSuspends != 0 && p.suspend > 0 {
		a.Release()
		b.hold(p)
		return nil
	}
	return a
}

// checkPull holds the refusals before any subscription is looked at, in RocketMQ's order (consumer-semantics.md 3.6).
func (b *Broker) checkPull(p *pull) *remote.Answer {
	if b.tuned.permission.Load()&wire.PermRead == 0 {
		return headed(wire.RespNoPermission, "the broker["+b.Address()+"] pulling message is forbidden", forbidden(1))
	}
	group, ok := b.groups.ensure(p.group)
	if !ok {
		return headed(wire.RespGroupNotExist, fmt.Sprintf("subscription group [%s] does not exist, %s", p.group, faq))
	}
	if !group.ConsumeEnable {
		return headed(wire.RespNoPermission, "subscription group no permission, "+p.group, forbidden(2))
	}
	topic, ok := b.topics.get(p.topic)
	if !ok {
		return headed(wire.RespTopicNotExist, fmt.Sprintf("topic[%s] not exist, apply first please! %s", p.topic, faq))
	}
	if topic.Perm&wire.PermRead == 0 {
		return headed(wire.RespNoPermission, fmt.Sprintf("the topic[%s] pulling message is forbidden", p.topic), forbidden(3))
	}
	if p.queue < 0 || p.queue >= topic.ReadQueues {
		return headed(wire.RespInvalidParameter, fmt.Sprintf("queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[/%s]",
			p.queue, p.topic, topic.ReadQueues, p.request.Conn.Remote()))
	}
	return nil
}

// forbidden tells what it is that forbids a pull (ForbiddenType): 1 the broker, 2 the group, 3 the topic, 4 broadcasting.
func forbidden(by int64) wire.Field { return number("forbiddenType", by) }

func (b *Broker) mayBroadcast(group string) bool {
	g, ok := b.groups.get(group)
	return ok && g.ConsumeBroadcastEnable
}

// tryPull reads the store once. nothing is true when there is nothing new and the request may be held.
func (b *Broker) tryPull(p *pull) (a *remote.Answer, nothing bool) {
	if offset, reset := b.offsets.takeReset(p.groupQueue()); reset {
		first, next, _ := b.storage.Bounds(p.topic, p.queue)
		return pullAnswer(wire.RespPullOffsetMoved, store.Result{Status: statusReset, Next: offset, Min: first, Max: next}), false
	}
	limits := store.Limits{
		Messages: max(min(p.max, int(b.tuned.pullMessages.Load())), 1), Bytes: int(b.tuned.pullBytes.Load()),
	}
	limits.Scan = max(scanLimit, limits.Messages) // Not what the client wants: whoever wakes a held pull would wait for that.
	began, buffer := time.Now(), b.pulls.lend(0)
	limits.Buffer = *buffer
	result := b.storage.Read(p.topic, p.queue, p.offset, limits, p.filter.match())
	b.counters.getTimes.Add(time.Since(began))
	b.counters.pulled(b.config.Cluster, p.groupQueue(), result)
	if cap(*buffer) < result.TotalSize {
		*buffer = make([]byte, 0, result.TotalSize+result.TotalSize/8) // So the next one has room.
	}
	c := pullCode(result.Status, p.offset)
	a = pullAnswer(c, result)
	a.Release = func() { b.pulls.giveBack(buffer) }
	return a, c == wire.RespPullNotFound
}

// pullCode is the response code of a status, consumer-semantics.md 3.8.
func pullCode(s store.Status, offset int64) wire.ResponseCode {
	switch s {
	case store.Found:
		return wire.RespSuccess
	case store.NoMatchedMessage:
		return wire.RespPullRetryImmediately
	case store.NoMessageInQueue:
		if offset == 0 {
			return wire.RespPullNotFound
		}
		return wire.RespPullOffsetMoved
	case store.OverflowOne:
		return wire.RespPullNotFound
	default: // too small, beyond the end
		return wire.RespPullOffsetMoved
	}
}

// pullAnswer always has the four numbers that Java clients read without a check.
func pullAnswer(c wire.ResponseCode, r store.Result) *remote.Answer {
	a := headed(c, string(r.Status),
		text("suggestWhichBrokerId", "0"),
		number("nextBeginOffset", r.Next),
		number("minOffset", r.Min),
		number("maxOffset", r.Max),
		text("topicSysFlag", "0"),
		text("groupSysFlag", "0"),
	)
	a.Parts = r.Messages
	return a
}
