package brokersuite

import (
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func queryScenarios() []Scenario { return []Scenario{{"query-key", queryKey}, {"query-id", queryID}} }

func queryFields(topic, key string) fields {
	return fields{
		"topic": topic, "key": key, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": time.Now().Add(time.Hour).UnixMilli(), "_UNIQUE_KEY_QUERY": "false",
	}
}

func queryKey(s *session) {
	topic := s.topic("T", 2)
	s.send(topic, 0, "one", "UNIQ_KEY", s.name("u1"), "KEYS", "k1 k2", "TAGS", "red")
	s.send(topic, 1, "two", "UNIQ_KEY", s.name("u2"), "KEYS", "k2")
	s.send(topic, 0, "three", "UNIQ_KEY", s.name("u3"), "KEYS", "")
	s.send(topic, 0, "four", "UNIQ_KEY", s.name("u4"), "KEYS", " k3  k4 ")
	// The index is written a moment after the message.
	s.poll("the index", func() bool {
		a := s.main.await(s.main.start(&wire.Command{Code: int32(wire.ReqQueryMessage), Ext: queryFields(topic, "k4").list()}))
		return a != nil && a.Code == 0
	})
	query := func(step, key string, more fields) {
		s.ask(step, wire.ReqQueryMessage, queryFields(topic, key).with(more), nil, sortedMessages, noIndexTime)
	}
	query("a key", "k1", nil)
	query("a key of two messages", "k2", nil)
	query("one of them", "k2", fields{"maxNum": 1})
	query("a key among blanks", "k3", nil)
	query("unknown key", "absent", nil)
	query("part of the keys", "k1 k2", nil)
	query("unique key, asked as a key", s.name("u1"), nil)
	query("unique key", s.name("u1"), fields{"_UNIQUE_KEY_QUERY": "true"})
	query("unique key of a message without keys", s.name("u3"), fields{"_UNIQUE_KEY_QUERY": "true"})
	query("key, asked as a unique key", "k1", fields{"_UNIQUE_KEY_QUERY": "true"})
	query("without the switch", "k1", fields{"_UNIQUE_KEY_QUERY": nil})
	query("another topic", "k1", fields{"topic": s.name("absent")})
	query("before the messages", "k1", fields{"endTimestamp": time.Now().Add(-time.Hour).UnixMilli()})
	query("after the messages", "k1", fields{"beginTimestamp": time.Now().Add(time.Minute).UnixMilli()})
	query("by tag as index type", "red", fields{"indexType": "T"})
	query("no key", "k1", fields{"key": nil})
	query("no count", "k1", fields{"maxNum": nil})
	query("no times", "k1", fields{"beginTimestamp": nil, "endTimestamp": nil})
	query("empty key", "", nil)
}

func queryID(s *session) {
	topic := s.topic("T", 1)
	id := s.fill(topic, 0, 1, "KEYS", "k", "TAGS", "red")[0]
	offset := s.logOffset(id)
	s.ask("by log offset", wire.ReqViewMessageByID, fields{"offset": offset}, nil)
	s.ask("by log offset and topic", wire.ReqViewMessageByID, fields{"offset": offset, "topic": topic}, nil)
	s.ask("by log offset and another topic", wire.ReqViewMessageByID, fields{"offset": offset, "topic": s.name("absent")}, nil)
	s.ask("beyond the log", wire.ReqViewMessageByID, fields{"offset": 1 << 50}, nil)
	s.ask("negative", wire.ReqViewMessageByID, fields{"offset": -1}, nil)
	s.ask("no offset", wire.ReqViewMessageByID, nil, nil)
}
