package brokersuite

import (
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func produceScenarios() []Scenario {
	return []Scenario{
		{"produce-v2", produceV2},
		{"produce-v1", produceV1},
		{"produce-refused", produceRefused},
		{"produce-names", produceNames},
		{"produce-batch", produceBatch},
		{"produce-compressed", produceCompressed},
		{"produce-oneway", produceOneway},
	}
}

func produceV2(s *session) {
	topic := s.topic("T", 2)
	send := func(step, props string, more fields, body string) {
		s.ask(step, wire.ReqSendMessageV2, sendFields(topic, 0, props).with(more), []byte(body))
	}
	send("plain", properties("UNIQ_KEY", "u1", "WAIT", "true"), nil, "plain")
	send("tags and keys", properties("UNIQ_KEY", "u2", "KEYS", "k1 k2", "TAGS", "red", "WAIT", "true"), nil, "tags")
	send("no properties", "", nil, "bare")
	send("user properties", properties("UNIQ_KEY", "u3", "a", "1", "名", "値", "with blank", "x y=z"), nil, "user")
	send("empty value", properties("UNIQ_KEY", "u4", "empty", "", "b", "2"), nil, "empty value")
	send("repeated name", properties("UNIQ_KEY", "u5", "r", "1", "r", "2"), nil, "repeated")
	send("no last separator", strings.TrimSuffix(properties("UNIQ_KEY", "u6", "z", "9"), "\x02"), nil, "unterminated")
	send("text without link", properties("UNIQ_KEY", "u7")+"junk\x02"+properties("y", "1"), nil, "junk")
	send("separators only", "\x02\x02"+properties("UNIQ_KEY", "u8"), nil, "separators")
	send("flag", properties("UNIQ_KEY", "u9"), fields{"h": 7}, "flag")
	send("negative flag", properties("UNIQ_KEY", "u10"), fields{"h": -1}, "negative")
	send("born long ago", properties("UNIQ_KEY", "u11"), fields{"g": 1}, "old")
	send("attempts", properties("UNIQ_KEY", "u12"), fields{"j": 3}, "attempts")
	send("unit mode", properties("UNIQ_KEY", "u13"), fields{"k": true}, "unit")
	send("broker's own properties", properties("UNIQ_KEY", "u14", "MSG_REGION", "mine", "CLUSTER", "mine", "TRACE_ON", "false"), nil, "own")
	send("pop check point", properties("UNIQ_KEY", "u15", "POP_CK", "x"), nil, "pop")
	send("empty unique key", properties("UNIQ_KEY", ""), nil, "no key")
	send("only what is required", "", fields{"i": nil, "j": nil, "k": nil, "m": nil, "n": nil}, "minimal")
	s.stored("stored", topic, 0, 18)
	s.ask("another queue", wire.ReqSendMessageV2, sendFields(topic, 1, properties("UNIQ_KEY", "u16")), []byte("one"))
	s.stored("stored in another queue", topic, 1, 1)
}

func produceV1(s *session) {
	topic := s.topic("T", 1)
	s.ask("plain", wire.ReqSendMessage, sendFieldsV1(topic, 0, properties("UNIQ_KEY", "u1", "TAGS", "red", "KEYS", "k")), []byte("one"))
	s.ask("flag", wire.ReqSendMessage, sendFieldsV1(topic, 0, properties("UNIQ_KEY", "u2")).with(fields{"flag": 3}), []byte("two"))
	s.ask("only what is required", wire.ReqSendMessage,
		sendFieldsV1(topic, 0, "").with(fields{"properties": nil, "reconsumeTimes": nil, "unitMode": nil, "batch": nil}), []byte("three"))
	s.ask("queue beyond the topic", wire.ReqSendMessage, sendFieldsV1(topic, 5, ""), []byte("x"))
	s.ask("no topic", wire.ReqSendMessage, sendFieldsV1(topic, 0, "").with(fields{"topic": nil}), []byte("x"))
	s.stored("stored", topic, 0, 3)
}

func produceRefused(s *session) {
	topic := s.topic("T", 1)
	base := sendFields(topic, 0, properties("UNIQ_KEY", "u1"))
	for _, c := range []struct {
		step string
		f    fields
		body string
	}{
		{"queue beyond the topic", base.with(fields{"e": 1}), "x"},
		{"queue of text", base.with(fields{"e": "one"}), "x"},
		{"no queue", base.with(fields{"e": nil}), "x"},
		{"no topic", base.with(fields{"b": nil}), "x"},
		{"no producer group", base.with(fields{"a": nil}), "x"},
		{"no body", base, ""},
		{"long properties", base.with(fields{"i": properties("UNIQ_KEY", "u2", "p", strings.Repeat("x", 32750))}), "x"},
		{"long body", base.with(fields{"i": properties("UNIQ_KEY", "u3")}), strings.Repeat("x", 4<<20+1)},
		{"unknown topic, no template", base.with(fields{"b": s.name("nobody"), "c": "no-such-template"}), "x"},
	} {
		s.ask(c.step, wire.ReqSendMessageV2, c.f, []byte(c.body))
	}
	s.ask("longest body", wire.ReqSendMessageV2, base.with(fields{"i": properties("UNIQ_KEY", "u4")}), []byte(strings.Repeat("x", 4<<20)))
	s.ask("longest properties", wire.ReqSendMessageV2, base.with(fields{"i": properties("UNIQ_KEY", "u5", "p", strings.Repeat("x", 32600))}), []byte("x"))
	readOnly := s.topic("readonly", 1, fields{"perm": 4})
	s.ask("read-only topic", wire.ReqSendMessageV2, sendFields(readOnly, 0, properties("UNIQ_KEY", "u6")), []byte("x"))
	s.ask("any queue", wire.ReqSendMessageV2, base.with(fields{"e": -1, "i": properties("UNIQ_KEY", "u7")}), []byte("any"))
	s.shown(topic, 0, 4)
	s.ask("end", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
}

// produceNames tries topics that are made by their first message, and names that none may have.
func produceNames(s *session) {
	send := func(step, topic string) {
		s.ask(step, wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "u-"+step)), []byte("x"), hideQueueOffset)
	}
	made := s.name("made")
	send("made by the first message", made)
	s.routed(made)
	s.ask("its configuration", wire.ReqGetTopicConfig, fields{"topic": made}, nil)
	s.askAs(s.ns, "its route", wire.ReqGetRoute, fields{"topic": made}, nil)
	many := s.name("many")
	s.ask("made with many queues", wire.ReqSendMessageV2, sendFields(many, 0, properties("UNIQ_KEY", "u-many")).with(fields{"d": 64}), []byte("x"))
	s.ask("its queues", wire.ReqGetTopicConfig, fields{"topic": many}, nil)
	for _, t := range []struct{ step, topic string }{
		{"name with a dot", "bs.produce"},
		{"name with a blank", "bs produce"},
		{"name of 127", strings.Repeat("n", 127)},
		{"name of 128", strings.Repeat("n", 128)},
		{"empty name", ""},
		{"schedule topic", wire.ScheduleTopic},
		{"half topic", wire.HalfTopic},
		{"template", wire.DefaultTopic},
		{"self test", wire.SelfTestTopic},
		{"trace topic", wire.TraceTopic},
		{"system name", "rmq_sys_mine"},
		{"wheel timer", wire.TimerTopic},
		{"retry topic of a group that is not there", "%RETRY%" + s.name("absent")},
		{"dead letters of a group that is not there", "%DLQ%" + s.name("absent")},
		{"name with a percent sign", s.name("a%b|c_d")},
	} {
		send(t.step, t.topic)
	}
}

func part(body, props string, flag int32) []byte {
	p := wire.BatchPart{Flag: flag, Body: []byte(body), Properties: []byte(props)}
	out, err := p.Append(nil)
	if err != nil {
		return nil
	}
	return out
}

func produceBatch(s *session) {
	topic := s.topic("T", 1)
	batch := func(step, props string, more fields, parts ...[]byte) {
		var body []byte
		for _, p := range parts {
			body = append(body, p...)
		}
		s.ask(step, wire.ReqSendBatchMessage, sendFields(topic, 0, props).with(fields{"m": true}).with(more), body)
	}
	one, two := part("one", properties("UNIQ_KEY", "p1", "TAGS", "a"), 0), part("two", properties("UNIQ_KEY", "p2", "KEYS", "k"), 5)
	batch("two parts", properties("UNIQ_KEY", "b1", "WAIT", "true"), nil, one, two)
	batch("no properties", "", nil, one, two)
	batch("parts without properties", "", nil, part("three", "", 0), part("four", "", 0))
	batch("one part", properties("UNIQ_KEY", "b2"), nil, one)
	batch("with a delay", properties("UNIQ_KEY", "b3", "DELAY", "1"), nil, one)
	batch("to a retry topic", properties("UNIQ_KEY", "b4"), fields{"b": "%RETRY%" + s.name("G")}, one)
	batch("not said to be a batch", properties("UNIQ_KEY", "b5"), fields{"m": false}, one)
	batch("no parts", properties("UNIQ_KEY", "b6"), nil)
	s.ask("a batch by the code of one message", wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "b7")).with(fields{"m": true}), one)
	s.stored("stored", topic, 0, 9)
}

func produceCompressed(s *session) {
	topic := s.topic("T", 1)
	body := []byte(strings.Repeat("compress me ", 20))
	for _, c := range []struct {
		step string
		kind wire.Compression
	}{{"untyped", 0}, {"lz4", 1}, {"zstd", 2}, {"zlib", 3}} {
		kind := c.kind
		if kind == 0 {
			kind = 3
		}
		z, err := wire.NewDeflater(kind)
		if err != nil {
			s.tb.Fatal(err)
		}
		packed, err := z.Append(nil, body)
		if err != nil {
			s.tb.Fatal(err)
		}
		s.ask(c.step, wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "u-"+c.step)).with(fields{"f": c.kind.SysFlag()}), packed)
	}
	s.readable(topic, 0, 4)
	a := s.do(s.main, wire.ReqPullMessage, pullFields(s.name("G"), topic, 0, 0), nil)
	inflater := wire.NewInflater(1 << 20)
	var lines []string
	for rest := a.Body; len(rest) > 0; {
		var m wire.Message
		n, err := m.Decode(rest)
		if err != nil {
			s.tb.Fatal(err)
		}
		plain, err := inflater.AppendBody(nil, &m)
		if err != nil || string(plain) != string(body) {
			s.tb.Errorf("message %d: %q, %v", m.QueueOffset, plain, err)
		}
		m.Body = []byte("<compressed>")
		m.BodyCRC = wire.BodyCRC(m.Body)
		lines, rest = append(lines, s.normal().message(&m)), rest[n:]
	}
	s.note("stored", lines...)
}

func produceOneway(s *session) {
	topic := s.topic("T", 1)
	p := s.peer()
	p.oneway(wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "u1")), []byte("one"))
	s.readable(topic, 0, 1) // a real broker stores what comes on one connection in any order
	p.oneway(wire.ReqSendMessage, sendFieldsV1(topic, 0, properties("UNIQ_KEY", "u2")), []byte("two"))
	s.stored("stored", topic, 0, 2)
	p.oneway(wire.ReqSendMessageV2, sendFields(topic, 9, ""), []byte("refused in silence"))
	s.askAs(p, "the connection goes on", wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": 0}, nil)
}
