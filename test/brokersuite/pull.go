package brokersuite

import (
	"fmt"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func pullScenarios() []Scenario {
	return []Scenario{
		{"pull", pullBasics},
		{"pull-refused", pullRefused},
		{"pull-held", pullHeld},
		{"pull-subscribed", pullSubscribed},
		{"pull-commits", pullCommits},
		{"pull-limits", pullLimits},
	}
}

func pullBasics(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	s.fill(topic, 0, 5)
	pull := func(step string, queue int, offset int64, more fields) {
		s.ask(step, wire.ReqPullMessage, pullFields(group, topic, queue, offset).with(more), nil)
	}
	pull("from the start", 0, 0, nil)
	pull("from the middle, two", 0, 2, fields{"maxMsgNums": 2})
	pull("at the end", 0, 5, nil)
	pull("one beyond the end", 0, 6, nil)
	pull("far beyond the end", 0, 500, nil)
	pull("below the start", 0, -1, nil)
	pull("empty queue", 1, 0, nil)
	pull("empty queue, beyond", 1, 3, nil)
	pull("no messages wanted", 0, 0, fields{"maxMsgNums": 0})
	pull("fewer than no messages", 0, 0, fields{"maxMsgNums": -5})
	pull("no such tag", 0, 0, fields{"subscription": "absent"})
	pull("tag that cannot be parsed", 0, 0, fields{"subscription": "||"})
	pull("empty expression", 0, 0, fields{"subscription": ""})
	pull("no expression type", 0, 0, fields{"expressionType": nil, "maxMsgNums": 1})
	pull("unknown expression type", 0, 0, fields{"expressionType": "XPATH", "maxMsgNums": 1})
	s.ask("by the lite code", wire.ReqLitePullMessage, pullFields(group, topic, 0, 3).with(fields{"sysFlag": 4 | 16}), nil)
	s.ask("suspended although something is there", wire.ReqPullMessage,
		pullFields(group, topic, 0, 4).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 15000}), nil)
	s.ask("suspended beyond the end", wire.ReqPullMessage,
		pullFields(group, topic, 0, 50).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 15000}), nil)
	s.ask("suspended without match", wire.ReqPullMessage,
		pullFields(group, topic, 0, 0).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 15000, "subscription": "absent"}), nil)
}

func pullRefused(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	s.fill(topic, 0, 1)
	base := pullFields(group, topic, 0, 0)
	for _, c := range []struct {
		step string
		f    fields
	}{
		{"unknown topic", base.with(fields{"topic": s.name("absent")})},
		{"queue beyond the topic", base.with(fields{"queueId": 1})},
		{"negative queue", base.with(fields{"queueId": -1})},
		{"group made by the pull", base.with(fields{"consumerGroup": s.name("new")})},
		{"group with an illegal name", base.with(fields{"consumerGroup": "bs group"})},
		{"no group", base.with(fields{"consumerGroup": nil})},
		{"no offset", base.with(fields{"queueOffset": nil})},
		{"offset of text", base.with(fields{"queueOffset": "x"})},
		{"no count", base.with(fields{"maxMsgNums": nil})},
		{"no subscription version", base.with(fields{"subVersion": nil})},
		{"nobody subscribed", base.with(fields{"sysFlag": 0})},
	} {
		s.ask(c.step, wire.ReqPullMessage, c.f, nil)
	}
	closed := s.group("closed", fields{"consumeEnable": false})
	s.ask("group that may not consume", wire.ReqPullMessage, base.with(fields{"consumerGroup": closed}), nil)
	writeOnly := s.topic("writeonly", 1, fields{"perm": 2})
	s.ask("topic that may not be read", wire.ReqPullMessage, base.with(fields{"topic": writeOnly}), nil)
	// Another scenario writes to the template's first queue, at any time.
	s.ask("template", wire.ReqPullMessage, base.with(fields{"topic": wire.DefaultTopic, "queueId": 5}), nil)
}

func pullHeld(s *session) {
	topic, group := s.topic("T", 6), s.group("G")
	hold := func(queue int, more fields) (*peer, <-chan *wire.Command) {
		p := s.peer()
		f := pullFields(group, topic, queue, 0).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 20000}).with(more)
		held := p.start(&wire.Command{Code: int32(wire.ReqPullMessage), Ext: f.list()})
		// A server that carries out what comes over one connection in turn holds the pull now.
		s.do(p, wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": queue}, nil)
		return p, held
	}
	p, held := hold(0, nil)
	empty, heldEmpty := hold(2, fields{"suspendTimeoutMillis": 1000})
	p.waitOutstanding(s, held)
	s.send(topic, 0, "wake", "UNIQ_KEY", "u3")
	s.record("woken", wire.ReqPullMessage, p.await(held))
	s.wokenByTag(topic, 1, 4, 5)
	s.record("nothing came", wire.ReqPullMessage, empty.await(heldEmpty))
	gone, _ := hold(3, nil)
	gone.close()
	s.send(topic, 3, "after", "UNIQ_KEY", "u4")
	s.readable(topic, 3, 1)
	s.ask("after the holder left", wire.ReqPullMessage, pullFields(group, topic, 3, 0), nil)
	s.ask("not to be held", wire.ReqPullMessage, pullFields(group, topic, 0, 1).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 0}), nil)
}

// wokenByTag holds a pull that wants a tag, lets a message of another tag come and then one of its own. A real broker looks at all
// pulls that it holds every 5 s, whatever came; a look between the two messages ends the pull with 20, and another queue tries
// again, in the first one's name.
func (s *session) wokenByTag(topic string, queues ...int) {
	s.tb.Helper()
	for i, queue := range queues {
		p := s.peer()
		f := pullFields(s.name("G"), topic, queue, 0).with(fields{"sysFlag": 6, "suspendTimeoutMillis": 20000, "subscription": "red"})
		held := p.start(&wire.Command{Code: int32(wire.ReqPullMessage), Ext: f.list()})
		p.waitOutstanding(s, held)
		s.send(topic, queue, "blue", "UNIQ_KEY", "u1", "TAGS", "blue")
		s.send(topic, queue, "red", "UNIQ_KEY", "u2", "TAGS", "red")
		a := p.await(held)
		if a != nil && a.Code == int32(wire.RespPullRetryImmediately) && i < len(queues)-1 {
			continue
		}
		lines := s.normal().answer(wire.ReqPullMessage, a)
		for j := range lines {
			lines[j] = strings.ReplaceAll(lines[j], fmt.Sprintf("%s/%d@", topic, queue), fmt.Sprintf("%s/%d@", topic, queues[0]))
		}
		s.note("woken by its tag", lines...)
		return
	}
}

// waitOutstanding gives the broker time to hold a pull, and fails when it answers instead.
func (p *peer) waitOutstanding(s *session, held <-chan *wire.Command) {
	s.tb.Helper()
	timer := time.NewTimer(300 * time.Millisecond)
	defer timer.Stop()
	select {
	case a := <-held:
		s.tb.Fatalf("a pull was to be held, but was answered: %+v", a)
	case <-timer.C:
	}
}

func pullSubscribed(s *session) {
	topic, other, group := s.topic("T", 1), s.topic("other", 1), s.group("G")
	s.fill(topic, 0, 2, "TAGS", "red")
	s.fill(other, 0, 1)
	base := pullFields(group, topic, 0, 0).with(fields{"sysFlag": 0, "subscription": nil, "expressionType": nil})
	pull := func(step string, more fields) { s.ask(step, wire.ReqPullMessage, base.with(more), nil) }
	pull("no member", nil)
	s.join(s.main, "c1", group, 100, s.subscription(topic, "red"))
	pull("subscribed", fields{"subVersion": 100})
	pull("older version", fields{"subVersion": 99})
	pull("newer version", fields{"subVersion": 101})
	pull("topic that is not subscribed", fields{"topic": other})
	s.join(s.main, "c1", group, 101, s.subscription(topic, "blue"))
	pull("another tag", fields{"subVersion": 101})
	s.join(s.main, "c1", group, 50, s.subscription(topic, "red"))
	pull("a lower version changes nothing", fields{"subVersion": 50})
	s.join(s.main, "c1", group, 102, s.subscription(topic, "*"))
	pull("everything", fields{"subVersion": 102})
	pull("the expression of the pull counts", fields{"sysFlag": 4, "subscription": "blue", "subVersion": 102})
	p := s.peer()
	b := s.beat("c2", s.group("broadcast", fields{"consumeBroadcastEnable": false}), 1, s.subscription(topic, "*"))
	b.ConsumerDataSet[0].MessageModel = wire.Broadcasting
	s.do(p, wire.ReqHeartbeat, nil, s.bytes(b))
	pull("group that may not broadcast", fields{"consumerGroup": s.name("broadcast"), "subVersion": 1})
}

func pullCommits(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	s.fill(topic, 0, 4)
	committed := func(step string) {
		s.ask(step, wire.ReqQueryConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "setZeroIfNotFound": false}, nil)
	}
	base := pullFields(group, topic, 0, 0)
	s.ask("pull without commit", wire.ReqPullMessage, base.with(fields{"commitOffset": 2, "maxMsgNums": 1}), nil)
	committed("nothing committed")
	s.ask("pull with commit", wire.ReqPullMessage, base.with(fields{"sysFlag": 5, "commitOffset": 2, "maxMsgNums": 1}), nil)
	committed("committed")
	s.ask("pull with a lower commit", wire.ReqPullMessage, base.with(fields{"sysFlag": 5, "commitOffset": 1, "maxMsgNums": 1}), nil)
	committed("lower")
	s.ask("pull with commit −1", wire.ReqPullMessage, base.with(fields{"sysFlag": 5, "commitOffset": -1, "maxMsgNums": 1}), nil)
	committed("as before")
	s.ask("pull that is refused", wire.ReqPullMessage, base.with(fields{"sysFlag": 5, "commitOffset": 3, "queueId": 7}), nil)
	committed("not by a refused one")
}

func pullLimits(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	s.fill(topic, 0, 40)
	count := func(step string, queue, wanted int) {
		a := s.do(s.main, wire.ReqPullMessage, pullFields(group, topic, queue, 0).with(fields{"maxMsgNums": wanted}), nil)
		n := 0
		for body := a.Body; len(body) > 0; n++ {
			var m wire.Message
			size, err := m.Decode(body)
			if err != nil {
				s.tb.Fatal(err)
			}
			body = body[size:]
		}
		s.note(step, fmt.Sprint("messages ", n), "next "+a.Ext.Get("nextBeginOffset"))
	}
	count("32 at most", 0, 1000)
	count("as many as wanted", 0, 7)
	for i := range 4 {
		s.send(topic, 1, string(make([]byte, 100_000)), "UNIQ_KEY", fmt.Sprint("big", i))
	}
	s.readable(topic, 1, 4)
	count("256 KiB at most", 1, 32)
}
