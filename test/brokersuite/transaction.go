package brokersuite

import (
	"fmt"
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func transactionScenarios() []Scenario {
	return []Scenario{{"transaction", transaction}, {"transaction-checks", transactionChecks}, {"transaction-refused", transactionRefused}}
}

const (
	unknownType  = 0
	commitType   = 8
	rollbackType = 12
)

// endFields is the header of 37 for the answer to a half message.
func (s *session) endFields(a *wire.Command, topic, group string, how int) fields {
	s.tb.Helper()
	queueOffset, err := strconv.ParseInt(a.Ext.Get("queueOffset"), 10, 64)
	if err != nil {
		s.tb.Fatal(err)
	}
	return fields{
		"topic": topic, "producerGroup": group, "tranStateTableOffset": queueOffset, "commitLogOffset": s.logOffset(a.Ext.Get("msgId")),
		"commitOrRollback": how, "fromTransactionCheck": false, "msgId": "m", "transactionId": a.Ext.Get("transactionId"), "bname": "broker-a",
	}
}

// hideQueueOffset makes the queue offset of a half message, which depends on what other scenarios sent, comparable.
func hideQueueOffset(v *view) { v.hideOffset = true }

func transaction(s *session) {
	topic, group := s.topic("T", 1), s.name("PG")
	s.do(s.main, wire.ReqHeartbeat, nil, s.bytes(&wire.HeartbeatData{ClientID: s.name("p"), ProducerDataSet: []wire.ProducerData{{GroupName: group}}}))
	committed := s.half("committed", topic, group, "u1", "KEYS", "k1")
	rolled := s.half("rolled back", topic, group, "u2")
	s.ask("nothing visible", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
	s.end37("roll back", s.endFields(rolled, topic, group, rollbackType))
	s.end37("commit", s.endFields(committed, topic, group, commitType))
	s.stored("visible", topic, 0, 1)
	oneway := s.half("ended one-way", topic, group, "u4")
	s.main.oneway(wire.ReqEndTransaction, s.endFields(oneway, topic, group, commitType), nil)
	s.stored("visible, one-way", topic, 0, 2)
	delayed := s.half("with a delay", topic, group, "u3", "DELAY", "2")
	s.end37("commit the delayed one", s.endFields(delayed, topic, group, commitType))
	s.shown(topic, 0, 3) // a real broker never does
	s.stored("what is visible at last", topic, 0, s.end(topic, 0))
}

// half sends a half message.
func (s *session) half(step, topic, group, unique string, more ...string) *wire.Command {
	s.tb.Helper()
	props := properties(append([]string{"UNIQ_KEY", unique, "TRAN_MSG", "true", "PGROUP", group, "TAGS", "red", "WAIT", "true"}, more...)...)
	return s.ask(step, wire.ReqSendMessageV2, sendFields(topic, 0, props).with(fields{"a": group, "f": 4}), []byte(step), hideQueueOffset)
}

// end37 ends a transaction. A real broker does not answer when the outcome is no outcome, which is not waited for long.
func (s *session) end37(step string, f fields) {
	s.tb.Helper()
	ch := s.main.start(&wire.Command{Code: int32(wire.ReqEndTransaction), Ext: f.list()})
	limit := callTimeout
	if f["commitOrRollback"] == unknownType {
		limit = 10 * time.Second
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-ch:
		s.record(step, wire.ReqEndTransaction, a)
	case <-timer.C:
		s.note(step, "no answer")
	}
}

// transactionChecks lets the broker ask for the outcome.
func transactionChecks(s *session) {
	topic, group := s.topic("T", 1), s.name("PG")
	p := s.peer()
	s.do(p, wire.ReqHeartbeat, nil, s.bytes(&wire.HeartbeatData{ClientID: s.name("p"), ProducerDataSet: []wire.ProducerData{{GroupName: group}}}))
	sent := s.half("sent", topic, group, "u1")
	s.end37("unknown yet", s.endFields(sent, topic, group, unknownType))
	checks, err := p.waitPushed(wire.ReqCheckTransactionState, 1)
	if err != nil {
		s.tb.Fatal(err)
	}
	c := checks[0]
	n := s.normal()
	var m wire.Message
	if _, err := m.Decode(c.Body); err != nil {
		s.tb.Fatal(err)
	}
	m.QueueOffset = 0
	s.note("first check", append(n.fields(c.Ext), fmt.Sprintf("oneway %t", c.IsOneway()), n.message(&m))...)
	more, err := p.waitPushed(wire.ReqCheckTransactionState, 2)
	if err != nil {
		s.tb.Fatal(err)
	}
	second := more[1]
	if _, err := m.Decode(second.Body); err != nil {
		s.tb.Fatal(err)
	}
	m.QueueOffset = 0
	s.note("second check", append(n.fields(second.Ext), n.message(&m))...)
	f := fields{
		"topic": topic, "producerGroup": group, "tranStateTableOffset": second.Ext.Get("tranStateTableOffset"),
		"commitLogOffset": second.Ext.Get("commitLogOffset"), "commitOrRollback": commitType, "fromTransactionCheck": true,
		"msgId": second.Ext.Get("msgId"), "transactionId": second.Ext.Get("transactionId"), "bname": "broker-a",
	}
	s.askAs(p, "committed by the answer to a check", wire.ReqEndTransaction, f, nil)
	s.stored("visible", topic, 0, 1)
}

func transactionRefused(s *session) {
	topic, group := s.topic("T", 1), s.name("PG")
	sent := s.half("sent", topic, group, "u1")
	base := s.endFields(sent, topic, group, commitType)
	for _, c := range []struct {
		step string
		f    fields
	}{
		{"another group", base.with(fields{"producerGroup": "another"})},
		{"offset that holds nothing", base.with(fields{"commitLogOffset": 1 << 50})},
		{"another state offset", base.with(fields{"tranStateTableOffset": 1 << 40})},
		{"neither", base.with(fields{"commitOrRollback": 3})},
		{"unknown", base.with(fields{"commitOrRollback": unknownType})},
		{"no log offset", base.with(fields{"commitLogOffset": nil})},
		{"no group", base.with(fields{"producerGroup": nil})},
	} {
		s.end37(c.step, c.f)
	}
	plain := s.send(topic, 0, "plain", "UNIQ_KEY", "u2")
	s.end37("message that is no half one", base.with(fields{"commitLogOffset": s.logOffset(plain), "tranStateTableOffset": 0}))
	s.end37("roll back", base.with(fields{"commitOrRollback": rollbackType}))
	s.ask("end", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
}
