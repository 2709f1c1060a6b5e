package brokersuite

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func errorScenarios() []Scenario {
	return []Scenario{{"errors-codes", unknownCodes}, {"errors-frames", badFrames}, {"binary-header", binaryHeader}, {"pop", pop}}
}

func unknownCodes(s *session) {
	for _, code := range []wire.RequestCode{0, 1, 999, 12345, 32767} {
		s.ask(fmt.Sprint("broker ", int32(code)), code, nil, nil)
		s.askAs(s.ns, fmt.Sprint("name server ", int32(code)), code, nil, nil)
	}
	p := s.peer()
	p.oneway(999, nil, nil)
	s.askAs(p, "after an unknown one-way", wire.ReqGetConsumerList, fields{"consumerGroup": s.name("G")}, nil)
}

// badFrames: what cannot be a frame ends the connection, without a word.
func badFrames(s *session) {
	for _, c := range []struct {
		step string
		raw  []byte
	}{
		{"length beyond the limit", []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 2, '{', '}'}},
		{"negative length", []byte{0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 2, '{', '}'}},
		{"header longer than the frame", []byte{0, 0, 0, 6, 0, 0, 0, 99, '{', '}'}},
		{"unknown form of header", []byte{0, 0, 0, 6, 9, 0, 0, 2, '{', '}'}},
		{"header that is no JSON", []byte{0, 0, 0, 6, 0, 0, 0, 2, 'x', 'y'}},
	} {
		p := s.peer()
		// A real server looks at twelve bytes before it begins.
		if _, err := p.conn.Write(append(c.raw, make([]byte, 16)...)); err != nil {
			s.tb.Fatal(err)
		}
		s.note(c.step, p.outcome(callTimeout))
	}
	s.ask("others go on", wire.ReqGetConsumerList, fields{"consumerGroup": s.name("G")}, nil)
}

// outcome tells whether the server ended the connection.
func (p *peer) outcome(limit time.Duration) string {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return "closed"
	case <-timer.C:
		return "open"
	}
}

func binaryHeader(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	ask := func(step string, code wire.RequestCode, f fields, body []byte) {
		a := s.main.await(s.main.start(&wire.Command{Code: int32(code), Ext: f.list(), Body: body, Encoding: wire.EncodingBinary}))
		s.record(step, code, a)
	}
	ask("send", wire.ReqSendMessageV2, sendFields(topic, 0, properties("UNIQ_KEY", "u1", "TAGS", "red")), []byte("one"))
	s.readable(topic, 0, 1)
	ask("pull", wire.ReqPullMessage, pullFields(group, topic, 0, 0), nil)
	ask("commit", wire.ReqUpdateConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 1}, nil)
	ask("offset", wire.ReqQueryConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0}, nil)
	ask("unknown code", 999, nil, nil)
	ask("heartbeat", wire.ReqHeartbeat, nil, s.bytes(s.beat("c1", group, 1, s.subscription(topic, "*"))))
}

// pop asks for what a broker of RocketMQ 5 has beyond the classic protocol.
func pop(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	s.fill(topic, 0, 2)
	s.join(s.main, "c1", group, 1, s.subscription(topic, "*"))
	s.ask("assignment", wire.ReqQueryAssignment, nil, toJSON(s.tb, fields{
		"clientId": s.name("c1"), "consumerGroup": group, "messageModel": "CLUSTERING", "strategyName": "AVG", "topic": topic,
	}))
	s.ask("request mode", wire.ReqSetMessageRequestMode, nil, toJSON(s.tb, fields{
		"consumerGroup": group, "topic": topic, "mode": "PULL", "popShareQueueNum": 0,
	}))
	now := fmt.Sprint(1)
	f := fields{
		"consumerGroup": group, "topic": topic, "queueId": -1, "maxMsgNums": 1, "invisibleTime": 60000, "pollTime": 0, "bornTime": now, "initMode": 0,
		"exp": "*", "expType": "TAG", "order": false, "attemptId": "a",
	}
	s.ask("pop", wire.ReqPopMessage, f, nil, onlyCode)
	s.ask("peek", wire.ReqPeekMessage, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "maxMsgNums": 1}, nil, onlyCode)
	s.ask("notification", wire.ReqNotification, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "pollTime": 0, "bornTime": now}, nil, onlyCode)
	s.ask("polling information", wire.ReqPollingInfo, fields{"consumerGroup": group, "topic": topic, "queueId": 0}, nil, onlyCode)
}
