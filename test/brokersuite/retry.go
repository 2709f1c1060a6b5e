package brokersuite

import (
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func retryScenarios() []Scenario {
	return []Scenario{
		{"send-back", sendBack}, {"send-back-refused", sendBackRefused}, {"send-back-dead", sendBackDead}, {"retry-topic", retryTopic},
	}
}

func backFields(group, topic string, offset int64, level int) fields {
	return fields{
		"offset": offset, "group": group, "delayLevel": level, "originMsgId": "origin", "originTopic": topic, "unitMode": false,
		"maxReconsumeTimes": 16, "bname": "broker-a",
	}
}

// logOf is the log offset of a message that is read.
func (s *session) last(messages []wire.Message) int64 { return messages[len(messages)-1].LogOffset }

func sendBack(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	ids := s.fill(topic, 0, 1, "TAGS", "red", "KEYS", "k1", "own", "1")
	retry := "%RETRY%" + group
	s.ask("level of the broker", wire.ReqSendBack, backFields(group, topic, s.logOffset(ids[0]), 0), nil)
	first := s.stored("after one attempt", retry, 0, 1)
	s.ask("again", wire.ReqSendBack, backFields(group, topic, s.last(first), 0), nil)
	second := s.stored("after two attempts", retry, 0, 2)
	s.ask("with a level", wire.ReqSendBack, backFields(group, topic, s.last(second), 1), nil)
	s.stored("after three attempts", retry, 0, 3)
	s.ask("retry topic", wire.ReqGetTopicConfig, fields{"topic": retry}, nil)
	s.ask("end of the topic itself", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
	s.ask("level beyond the last", wire.ReqSendBack, backFields(group, topic, s.logOffset(ids[0]), 1000), nil)
}

func sendBackRefused(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	offset := s.logOffset(s.fill(topic, 0, 1)[0])
	base := backFields(group, topic, offset, 1)
	for _, c := range []struct {
		step string
		f    fields
	}{
		{"offset that holds nothing", base.with(fields{"offset": 1 << 50})},
		{"no group", base.with(fields{"group": nil})},
		{"no offset", base.with(fields{"offset": nil})},
		{"no level", base.with(fields{"delayLevel": nil})},
		{"unknown group", base.with(fields{"group": s.name("absent")})},
		{"without what is optional", base.with(fields{"originMsgId": nil, "originTopic": nil, "unitMode": nil, "maxReconsumeTimes": nil, "bname": nil})},
	} {
		s.ask(c.step, wire.ReqSendBack, c.f, nil)
	}
	none := s.group("none", fields{"retryQueueNums": 0})
	s.ask("group without retry queues", wire.ReqSendBack, base.with(fields{"group": none}), nil)
}

func sendBackDead(s *session) {
	topic, group := s.topic("T", 1), s.group("G", fields{"retryMaxTimes": 1})
	ids := s.fill(topic, 0, 4, "TAGS", "red", "KEYS", "k1")
	dead := "%DLQ%" + group
	s.ask("at once", wire.ReqSendBack, backFields(group, topic, s.logOffset(ids[0]), -1), nil)
	s.stored("dead letter", dead, 0, 1)
	s.ask("dead letters' topic", wire.ReqGetTopicConfig, fields{"topic": dead}, nil)
	s.ask("the client's limit", wire.ReqSendBack, backFields(group, topic, s.logOffset(ids[1]), 1).with(fields{"maxReconsumeTimes": 0}), nil)
	s.stored("dead letter of the client's limit", dead, 0, 2)
	f := backFields(group, topic, s.logOffset(ids[2]), 1).with(fields{"maxReconsumeTimes": nil})
	s.ask("the group's limit, first", wire.ReqSendBack, f, nil)
	once := s.stored("retried", "%RETRY%"+group, 0, 1)
	s.ask("the group's limit, second", wire.ReqSendBack, f.with(fields{"offset": s.last(once)}), nil)
	letters := s.stored("dead letter of the group's limit", dead, 0, 3)
	s.ask("a dead letter sent back", wire.ReqSendBack, backFields(group, dead, s.last(letters), 1).with(fields{"maxReconsumeTimes": 16}), nil)
	s.stored("retried dead letter", "%RETRY%"+group, 0, 2)
	s.ask("old client", wire.ReqSendBack, backFields(group, topic, s.logOffset(ids[3]), -1), nil)
}

// retryTopic is what a client sends to a retry topic itself, when 36 failed or an orderly consumer gives up.
func retryTopic(s *session) {
	group := s.group("G", fields{"retryMaxTimes": 2})
	retry := "%RETRY%" + group
	s.join(s.main, "c1", group, 1)
	send := func(step string, more fields, pairs ...string) {
		s.ask(step, wire.ReqSendMessageV2, sendFields(retry, 0, properties(append([]string{"UNIQ_KEY", "u-" + step}, pairs...)...)).with(more), []byte(step), hideQueueOffset)
	}
	send("without attempts", fields{"j": nil, "l": nil})
	send("attempts used up by the client's limit", fields{"j": 4, "l": 3}, "RETRY_TOPIC", s.name("T"))
	send("attempts at the client's limit", fields{"j": 3, "l": 3}, "RETRY_TOPIC", s.name("T"))
	send("attempts used up by the group's limit", fields{"j": 3, "l": nil}, "RETRY_TOPIC", s.name("T"))
	// The last: its delay of a second may be over before a slow machine has sent another one.
	send("resent", fields{"j": 1, "l": 16}, "RETRY_TOPIC", s.name("T"), "RECONSUME_TIME", "1", "MAX_RECONSUME_TIMES", "16", "DELAY", "1")
	s.stored("retried", retry, 0, 3)
	s.stored("dead letters", "%DLQ%"+group, 0, 2)
	s.note("ends", fmt.Sprint("retry ", s.end(retry, 0)), fmt.Sprint("dead ", s.end("%DLQ%"+group, 0)))
}
