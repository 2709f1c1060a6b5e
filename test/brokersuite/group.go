package brokersuite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func groupScenarios() []Scenario {
	return []Scenario{
		{"offsets", offsets},
		{"offsets-young", offsetsYoung},
		{"offsets-by-time", offsetsByTime},
		{"locks", locks},
		{"heartbeat", heartbeat},
		{"heartbeat-v2", heartbeatV2},
		{"membership", membership},
		{"membership-broadcast", membershipBroadcast},
	}
}

func offsets(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	s.fill(topic, 0, 5)
	at := fields{"consumerGroup": group, "topic": topic, "queueId": 0}
	query := func(step string, more fields) { s.ask(step, wire.ReqQueryConsumerOffset, at.with(more), nil) }
	commit := func(step string, more fields) {
		s.ask(step, wire.ReqUpdateConsumerOffset, at.with(fields{"commitOffset": 3}).with(more), nil)
	}
	query("nothing stored, not to be zero", fields{"setZeroIfNotFound": false})
	commit("commit", nil)
	query("committed", nil)
	commit("lower", fields{"commitOffset": 1})
	query("lower is taken", nil)
	commit("beyond the end", fields{"commitOffset": 100})
	query("beyond the end is taken", nil)
	commit("negative", fields{"commitOffset": -1})
	query("negative is taken", nil)
	commit("of text", fields{"commitOffset": "x"})
	commit("without offset", fields{"commitOffset": nil})
	commit("without queue", fields{"queueId": nil})
	commit("queue beyond the topic", fields{"queueId": 2})
	commit("negative queue", fields{"queueId": -1})
	commit("commit, unknown topic", fields{"topic": s.name("absent")})
	commit("commit, unknown group", fields{"consumerGroup": s.name("absent")})
	query("unknown group", fields{"consumerGroup": s.name("absent"), "setZeroIfNotFound": false})
	query("unknown topic", fields{"topic": s.name("absent")})
	query("queue beyond the topic, asked", fields{"queueId": 9})
	query("empty queue", fields{"queueId": 1})
	query("without group", fields{"consumerGroup": nil})
	s.main.oneway(wire.ReqUpdateConsumerOffset, at.with(fields{"commitOffset": 4}).with(nil), nil)
	s.poll("the one-way commit", func() bool {
		return s.do(s.main, wire.ReqQueryConsumerOffset, at, nil).Ext.Get("offset") == "4"
	})
	query("one-way", nil)
	for _, c := range []struct {
		step string
		code wire.RequestCode
		f    fields
	}{
		{"max", wire.ReqGetMaxOffset, at},
		{"max of an empty queue", wire.ReqGetMaxOffset, at.with(fields{"queueId": 1})},
		{"max of an unknown queue", wire.ReqGetMaxOffset, at.with(fields{"queueId": 9})},
		{"max of an unknown topic", wire.ReqGetMaxOffset, at.with(fields{"topic": s.name("absent")})},
		{"max without topic", wire.ReqGetMaxOffset, at.with(fields{"topic": nil})},
		{"min", wire.ReqGetMinOffset, at},
		{"min of an empty queue", wire.ReqGetMinOffset, at.with(fields{"queueId": 1})},
		{"min of an unknown topic", wire.ReqGetMinOffset, at.with(fields{"topic": s.name("absent")})},
		{"first time", wire.ReqGetEarliestStoreTime, at},
		{"first time of an empty queue", wire.ReqGetEarliestStoreTime, at.with(fields{"queueId": 1})},
		{"first time of an unknown topic", wire.ReqGetEarliestStoreTime, at.with(fields{"topic": s.name("absent")})},
		{"without queue, max", wire.ReqGetMaxOffset, at.with(fields{"queueId": nil})},
	} {
		s.ask(c.step, c.code, c.f, nil)
	}
	s.ask("a group's topics", wire.ReqQueryTopicsByConsumer, fields{"group": group}, nil)
	s.ask("a topic's groups", wire.ReqQueryTopicConsumers, fields{"topic": topic}, nil)
}

// offsetsYoung: a topic whose first messages are still at hand is read from its start, whatever the group wants.
func offsetsYoung(s *session) {
	topic := s.topic("T", 1)
	group := s.group("G")
	at := fields{"consumerGroup": group, "topic": topic, "queueId": 0}
	s.ask("empty", wire.ReqQueryConsumerOffset, at, nil)
	s.fill(topic, 0, 3)
	s.ask("young", wire.ReqQueryConsumerOffset, at, nil)
	s.ask("young, said to be zero", wire.ReqQueryConsumerOffset, at.with(fields{"setZeroIfNotFound": true}), nil)
	s.ask("young, not to be zero", wire.ReqQueryConsumerOffset, at.with(fields{"setZeroIfNotFound": false}), nil)
	s.ask("young, of a group that is not there", wire.ReqQueryConsumerOffset, at.with(fields{"consumerGroup": s.name("absent")}), nil)
}

func offsetsByTime(s *session) {
	topic := s.topic("T", 2)
	var times []int64
	for i := range 3 {
		s.send(topic, 0, fmt.Sprint("m", i), "UNIQ_KEY", fmt.Sprint("u", i))
		s.readable(topic, 0, int64(i+1))
		a := s.do(s.main, wire.ReqPullMessage, pullFields(s.name("G"), topic, 0, int64(i)), nil)
		var m wire.Message
		if _, err := m.Decode(a.Body); err != nil {
			s.tb.Fatal(err)
		}
		times = append(times, m.StoreMillis)
		s.pause(30 * time.Millisecond)
	}
	at := fields{"topic": topic, "queueId": 0}
	for _, c := range []struct {
		step   string
		millis int64
	}{
		{"long before", times[0] - 100000},
		{"just before the first", times[0] - 1},
		{"the first", times[0]},
		{"just after the first", times[0] + 1},
		{"the second", times[1]},
		{"the last", times[2]},
		{"just after the last", times[2] + 1},
		{"long after", times[2] + 100000},
		{"zero", 0},
		{"negative", -1},
	} {
		for _, boundary := range []any{nil, "LOWER", "UPPER", "lower", "upper"} {
			s.ask(fmt.Sprintf("%s, %v", c.step, boundary), wire.ReqSearchOffsetByTimestamp, at.with(fields{"timestamp": c.millis, "boundaryType": boundary}), nil)
		}
	}
	s.ask("of an empty queue", wire.ReqSearchOffsetByTimestamp, at.with(fields{"timestamp": times[0], "queueId": 1}), nil)
	s.ask("of an unknown topic", wire.ReqSearchOffsetByTimestamp, at.with(fields{"timestamp": times[0], "topic": s.name("absent")}), nil)
	s.ask("without time", wire.ReqSearchOffsetByTimestamp, at, nil)
}

func locks(s *session) {
	topic, group := s.topic("T", 3), s.group("G")
	queue := func(id int32) wire.MessageQueue {
		return wire.MessageQueue{Topic: topic, BrokerName: "broker-a", QueueID: id}
	}
	lock := func(step string, code wire.RequestCode, client, group string, ids ...int32) {
		b := wire.LockBody{ClientID: s.name(client), Group: group}
		for _, id := range ids {
			b.Queues = append(b.Queues, queue(id))
		}
		s.ask(step, code, nil, s.bytes(&b))
	}
	lock("first", wire.ReqLockQueues, "c1", group, 0, 1)
	lock("again", wire.ReqLockQueues, "c1", group, 0)
	lock("another client", wire.ReqLockQueues, "c2", group, 0, 1, 2)
	lock("another group", wire.ReqLockQueues, "c2", s.name("G2"), 0)
	lock("unlock what another holds", wire.ReqUnlockQueues, "c2", group, 0)
	lock("still held", wire.ReqLockQueues, "c2", group, 0)
	lock("unlock", wire.ReqUnlockQueues, "c1", group, 0)
	lock("free now", wire.ReqLockQueues, "c2", group, 0)
	lock("nothing", wire.ReqLockQueues, "c1", group)
	lock("queue that is not there", wire.ReqLockQueues, "c1", group, 77)
	lock("unlock in an unknown group", wire.ReqUnlockQueues, "c1", s.name("absent"), 0)
	s.ask("lock without body", wire.ReqLockQueues, nil, nil)
	s.ask("unlock without body", wire.ReqUnlockQueues, nil, nil)
	s.ask("lock with a bad body", wire.ReqLockQueues, nil, []byte("nonsense"))
}

func heartbeat(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	s.ask("first", wire.ReqHeartbeat, nil, s.bytes(s.beat("c1", group, 1, s.subscription(topic, "*"))))
	s.ask("again", wire.ReqHeartbeat, nil, s.bytes(s.beat("c1", group, 1, s.subscription(topic, "*"))))
	s.ask("producer only", wire.ReqHeartbeat, nil, s.bytes(&wire.HeartbeatData{
		ClientID: s.name("p1"), ProducerDataSet: []wire.ProducerData{{GroupName: s.name("PG")}},
	}))
	s.ask("unknown group", wire.ReqHeartbeat, nil, s.bytes(s.beat("c2", s.name("new"), 1, s.subscription(topic, "*"))))
	s.ask("its retry topic", wire.ReqGetTopicConfig, fields{"topic": "%RETRY%" + s.name("new")}, nil)
	s.ask("its configuration", wire.ReqGetSubscriptionGroupConfig, fields{"group": s.name("new")}, nil)
	s.routed("%RETRY%" + s.name("new"))
	s.ask("no body", wire.ReqHeartbeat, nil, nil)
	s.ask("bad body", wire.ReqHeartbeat, nil, []byte("{nonsense"))
	s.ask("empty body", wire.ReqHeartbeat, nil, []byte("{}"))
	s.ask("consumers", wire.ReqGetConsumerConnections, fields{"consumerGroup": group}, nil)
	s.ask("producers", wire.ReqGetProducerConnections, fields{"producerGroup": s.name("PG")}, nil)
	s.ask("producers of an unknown group", wire.ReqGetProducerConnections, fields{"producerGroup": s.name("absent")}, nil)
	s.ask("consumers of an unknown group", wire.ReqGetConsumerConnections, fields{"consumerGroup": s.name("absent")}, nil)
	s.ask("subscription", wire.ReqQuerySubscription, fields{"group": group, "topic": topic}, nil)
	s.ask("subscription of an unknown topic", wire.ReqQuerySubscription, fields{"group": group, "topic": s.name("absent")}, nil)
	s.ask("subscription of an unknown group", wire.ReqQuerySubscription, fields{"group": s.name("absent"), "topic": topic}, nil)
	s.ask("a topic's groups", wire.ReqQueryTopicConsumers, fields{"topic": topic}, nil)
	s.ask("unregister a producer", wire.ReqUnregisterClient, fields{"clientID": s.name("p1"), "producerGroup": s.name("PG")}, nil)
	s.ask("producers afterwards", wire.ReqGetProducerConnections, fields{"producerGroup": s.name("PG")}, nil)
}

func heartbeatV2(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	full := s.beat("c1", group, 1, s.subscription(topic, "*"))
	print1, err := full.Fingerprint()
	if err != nil {
		s.tb.Fatal(err)
	}
	full.HeartbeatFingerprint = print1
	s.ask("full", wire.ReqHeartbeat, nil, s.bytes(full))
	s.ask("full again", wire.ReqHeartbeat, nil, s.bytes(full))
	short := &wire.HeartbeatData{
		ClientID: full.ClientID, HeartbeatFingerprint: print1, WithoutSub: true, ProducerDataSet: full.ProducerDataSet,
		ConsumerDataSet: []wire.ConsumerData{full.ConsumerDataSet[0]},
	}
	short.ConsumerDataSet[0].SubscriptionDataSet = []wire.SubscriptionData{}
	s.ask("short", wire.ReqHeartbeat, nil, s.bytes(short))
	s.ask("still subscribed", wire.ReqQuerySubscription, fields{"group": group, "topic": topic}, nil)
	other := s.beat("c1", group, 2, s.subscription(topic, "red"))
	if other.HeartbeatFingerprint, err = other.Fingerprint(); err != nil {
		s.tb.Fatal(err)
	}
	s.ask("another fingerprint", wire.ReqHeartbeat, nil, s.bytes(other))
	s.ask("the short one of before", wire.ReqHeartbeat, nil, s.bytes(short))
}

// members lists a group as 38 does.
func (s *session) members(step, group string) {
	s.tb.Helper()
	s.ask(step, wire.ReqGetConsumerList, fields{"consumerGroup": group}, nil)
}

// notices writes down how many 40 each connection gets after something happened. Several may have come before, and servers
// may merge them, so what counts is that there is one more.
func (s *session) notices(step string, before map[*peer]int, peers ...*peer) {
	s.tb.Helper()
	var lines []string
	for i, p := range peers {
		all, err := p.waitPushed(wire.ReqNotifyConsumerIDsChanged, before[p]+1)
		if err != nil {
			lines = append(lines, fmt.Sprintf("connection %d: none", i+1))
			continue
		}
		c := all[len(all)-1]
		lines = append(lines, fmt.Sprintf("connection %d: 40 %s oneway=%t", i+1, strings.Join(s.normal().fields(c.Ext), " "), c.IsOneway()))
	}
	s.note(step, lines...)
}

func counts(peers ...*peer) map[*peer]int {
	m := make(map[*peer]int)
	for _, p := range peers {
		m[p] = p.notified()
	}
	return m
}

func membership(s *session) {
	topic, group := s.topic("T", 4), s.group("G")
	p1, p2, p3 := s.peer(), s.peer(), s.peer()
	sub := func() wire.SubscriptionData { return s.subscription(topic, "*") }
	s.members("nobody", group)
	before := counts(p1)
	s.join(p1, "c1", group, 1, sub())
	s.notices("the first hears of itself", before, p1)
	before = counts(p1, p2)
	s.join(p2, "c2", group, 1, sub())
	s.notices("both hear of the second", before, p1, p2)
	s.members("two", group)
	before = counts(p1, p2)
	s.join(p2, "c2", group, 2, sub(), s.subscription("%RETRY%"+group, "*"))
	s.notices("both hear of another topic", before, p1, p2)
	before = counts(p1, p2, p3)
	s.join(p3, "c3", group, 2, sub(), s.subscription("%RETRY%"+group, "*"))
	s.notices("three", before, p1, p2, p3)
	s.ask("connections", wire.ReqGetConsumerConnections, fields{"consumerGroup": group}, nil)
	before = counts(p1, p2)
	s.askAs(p3, "unregister", wire.ReqUnregisterClient, fields{"clientID": s.name("c3"), "consumerGroup": group}, nil)
	s.notices("the others hear that it left", before, p1, p2)
	s.members("two again", group)
	s.askAs(p3, "commit after leaving", wire.ReqUpdateConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 1}, nil)
	before = counts(p1)
	p2.close()
	s.notices("a connection that ends is a member that left", before, p1)
	s.members("one", group)
	s.askAs(p1, "unregister twice", wire.ReqUnregisterClient, fields{"clientID": s.name("c3"), "consumerGroup": group}, nil)
	s.askAs(p1, "unregister the last", wire.ReqUnregisterClient, fields{"clientID": s.name("c1"), "consumerGroup": group}, nil)
	s.members("nobody again", group)
	s.askAs(p1, "unregister without client", wire.ReqUnregisterClient, fields{"consumerGroup": group}, nil)
	s.ask("no group", wire.ReqGetConsumerList, nil, nil)
	silent := s.group("silent", fields{"notifyConsumerIdsChangedEnable": false})
	a, b := s.peer(), s.peer()
	s.join(a, "c1", silent, 1, sub())
	s.join(b, "c2", silent, 1, sub())
	s.members("two that are not told", silent)
	s.note("not told", fmt.Sprint(a.notified(), " and ", b.notified()))
}

func membershipBroadcast(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	p1, p2 := s.peer(), s.peer()
	for i, p := range []*peer{p1, p2} {
		b := s.beat(fmt.Sprint("c", i+1), group, 1, s.subscription(topic, "*"))
		b.ConsumerDataSet[0].MessageModel = wire.Broadcasting
		s.do(p, wire.ReqHeartbeat, nil, s.bytes(b))
	}
	s.members("two", group)
	s.ask("connections", wire.ReqGetConsumerConnections, fields{"consumerGroup": group}, nil)
	s.ask("progress", wire.ReqGetConsumeStats, fields{"consumerGroup": group, "topic": topic}, nil, func(v *view) {
		v.drop = func(path string) bool { return strings.HasSuffix(path, "/consumeTps") }
	})
	s.note("told", fmt.Sprint(slices.Max([]int{p1.notified(), p2.notified()})))
}
