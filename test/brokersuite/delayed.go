package brokersuite

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func timeScenarios() []Scenario {
	return []Scenario{{"delay-levels", delayLevels}, {"timer", timer}, {"timer-refused", timerRefused}, {"timer-recall", timerRecall}}
}

func delayLevels(s *session) {
	topic := s.topic("T", 4)
	var waited int64
	for queue, level := range []string{"1", "2", "18"} { // The last one takes 12 s: a slow machine needs some for what is asked meanwhile.
		a := s.ask("level "+level, wire.ReqSendMessageV2, sendFields(topic, queue, properties("UNIQ_KEY", "u"+level, "TAGS", "red", "DELAY", level)), []byte("level "+level), hideQueueOffset)
		if queue == 0 {
			waited = s.logOffset(a.Ext.Get("msgId"))
		}
	}
	s.ask("not visible yet", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 2}, nil)
	s.ask("level beyond the last", wire.ReqSendMessageV2, sendFields(topic, 3, properties("UNIQ_KEY", "u99", "DELAY", "99")), []byte("level 99"), hideQueueOffset)
	s.ask("level 0", wire.ReqSendMessageV2, sendFields(topic, 3, properties("UNIQ_KEY", "u0", "DELAY", "0")), []byte("level 0"))
	s.ask("negative level", wire.ReqSendMessageV2, sendFields(topic, 3, properties("UNIQ_KEY", "u-1", "DELAY", "-1")), []byte("level -1"))
	s.ask("level of text", wire.ReqSendMessageV2, sendFields(topic, 3, properties("UNIQ_KEY", "ux", "DELAY", "x")), []byte("level x"))
	s.stored("at once", topic, 3, 2) // before the one beyond the last level joins them
	s.stored("delivered, level 1", topic, 0, 1)
	s.ask("what waited, by the id that its sender was given", wire.ReqViewMessageByID, fields{"offset": waited}, nil, onlyCode)
	s.stored("delivered, level 2", topic, 1, 1)
	s.stored("delivered, level 18", topic, 2, 1)
	s.ask("the schedule topic cannot be sent to", wire.ReqSendMessageV2, sendFields(wire.ScheduleTopic, 0, ""), []byte("x"))
}

func timer(s *session) {
	topic := s.topic("T", 5)
	in := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).UnixMilli()) }
	for queue, c := range []struct {
		step, name string
		value      func() string
	}{
		{"seconds", "TIMER_DELAY_SEC", func() string { return "12" }},
		{"milliseconds", "TIMER_DELAY_MS", func() string { return "1500" }},
		{"moment", "TIMER_DELIVER_MS", func() string { return in(12 * time.Second) }},
		{"past moment", "TIMER_DELIVER_MS", func() string { return in(-time.Hour) }},
		{"no delay", "TIMER_DELAY_SEC", func() string { return "0" }},
	} {
		props := properties("UNIQ_KEY", "u-"+c.step, "TAGS", "red", c.name, c.value())
		s.ask(c.step, wire.ReqSendMessageV2, sendFields(topic, queue, props), []byte(c.step), hideQueueOffset)
		if queue == 0 { // At once: a slow machine needs its seconds for the rest.
			s.ask("not visible yet", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
		}
	}
	for queue, step := range []string{"seconds", "milliseconds", "moment", "past moment", "no delay"} {
		s.stored("delivered, "+step, topic, queue, 1)
	}
}

func timerRefused(s *session) {
	topic := s.topic("T", 1)
	for _, c := range []struct{ step, name, value string }{
		{"four days", "TIMER_DELAY_SEC", "345600"},
		{"of text", "TIMER_DELAY_SEC", "soon"},
		{"negative", "TIMER_DELAY_SEC", "-5"},
		{"milliseconds of text", "TIMER_DELAY_MS", "x"},
		{"moment of text", "TIMER_DELIVER_MS", "x"},
		{"moment in four days", "TIMER_DELIVER_MS", fmt.Sprint(time.Now().Add(96 * time.Hour).UnixMilli())},
	} {
		s.ask(c.step, wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "u-"+c.step, c.name, c.value)), []byte(c.step), hideQueueOffset)
	}
	s.ask("level and timer", wire.ReqSendMessageV2,
		sendFields(topic, 0, properties("UNIQ_KEY", "u-both", "DELAY", "1", "TIMER_DELAY_SEC", "1")), []byte("both"), hideQueueOffset)
	var body []byte
	body = append(body, part("one", properties("UNIQ_KEY", "p1"), 0)...)
	s.ask("batch with a timer", wire.ReqSendBatchMessage,
		sendFields(topic, 0, properties("UNIQ_KEY", "b1", "TIMER_DELAY_SEC", "1")).with(fields{"m": true}), body, hideQueueOffset) // in the wheel's topic, which scenarios share
}

func timerRecall(s *session) {
	topic := s.topic("T", 2)
	unique := "7F0000010001000000000000000000A1"
	a := s.ask("sent", wire.ReqSendMessageV2,
		sendFields(topic, 0, properties("UNIQ_KEY", unique, "TIMER_DELAY_SEC", "8")), []byte("recalled"), hideQueueOffset)
	handle := a.Ext.Get("recallHandle")
	s.note("has a handle", fmt.Sprint(handle != ""))
	recall := func(step string, f fields) {
		s.ask(step, wire.ReqRecallMessage, fields{"producerGroup": "PG", "topic": topic, "recallHandle": handle}.with(f), nil)
	}
	recall("recalled", nil)
	recall("recalled again", nil)
	recall("another topic", fields{"topic": s.name("absent")})
	recall("bad handle", fields{"recallHandle": "nonsense"})
	recall("no handle", fields{"recallHandle": nil})
	s.send(topic, 1, "last", "UNIQ_KEY", "u-last", "TIMER_DELAY_SEC", "9")
	s.readable(topic, 1, 1)
	s.ask("was not delivered", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
}
