package brokersuite

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func callbackScenarios() []Scenario {
	return []Scenario{
		{"callback-running-info", runningInfo},
		{"callback-consume-directly", consumeDirectly},
		{"callback-status", consumerStatus},
		{"request-reply", requestReply},
	}
}

// asked writes down what the broker asked a member.
func (s *session) asked(step string, p *peer, code wire.RequestCode) {
	s.tb.Helper()
	all, err := p.waitPushed(code, 1)
	if err != nil {
		s.note(step, "nothing")
		return
	}
	n := s.normal()
	lines := append([]string{fmt.Sprintf("%d oneway=%t", code, all[0].IsOneway())}, n.fields(all[0].Ext)...)
	if code == wire.ReqConsumeDirectly || code == wire.ReqPushReplyMessage {
		lines = append(lines, n.bodyOf(code, all[0].Body)...)
	}
	s.note(step, lines...)
}

func (n *normal) bodyOf(code wire.RequestCode, body []byte) []string {
	if code == wire.ReqPushReplyMessage {
		return []string{fmt.Sprintf("body %q", body)}
	}
	return n.messages(body)
}

func runningInfo(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	p := s.peer()
	s.join(p, "c1", group, 1, s.subscription(topic, "*"))
	p.answer(wire.ReqGetConsumerRunningInfo, func(*wire.Command) *wire.Command {
		return &wire.Command{Code: 0, Remark: "mine", Body: []byte(`{"properties":{"a":"1"}}`)}
	})
	f := fields{"consumerGroup": group, "clientId": s.name("c1"), "jstackEnable": false}
	s.ask("relayed", wire.ReqGetConsumerRunningInfo, f, nil)
	s.asked("what the member was asked", p, wire.ReqGetConsumerRunningInfo)
	s.ask("member that is not there", wire.ReqGetConsumerRunningInfo, f.with(fields{"clientId": s.name("absent")}), nil)
	s.ask("group that is not there", wire.ReqGetConsumerRunningInfo, f.with(fields{"consumerGroup": s.name("absent")}), nil)
	s.ask("no client", wire.ReqGetConsumerRunningInfo, f.with(fields{"clientId": nil}), nil)
	p.answer(wire.ReqGetConsumerRunningInfo, func(*wire.Command) *wire.Command {
		return &wire.Command{Code: 1, Remark: "refused by the member"}
	})
	s.ask("member that refuses", wire.ReqGetConsumerRunningInfo, f, nil)
	silent := s.peer()
	s.join(silent, "c2", group, 1, s.subscription(topic, "*"))
	s.ask("member that is silent", wire.ReqGetConsumerRunningInfo, f.with(fields{"clientId": s.name("c2")}), nil)
}

func consumeDirectly(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	id := s.fill(topic, 0, 1, "TAGS", "red")[0]
	p := s.peer()
	s.join(p, "c1", group, 1, s.subscription(topic, "*"))
	p.answer(wire.ReqConsumeDirectly, func(*wire.Command) *wire.Command {
		return &wire.Command{Code: 0, Body: []byte(`{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":1}`)}
	})
	f := fields{"consumerGroup": group, "clientId": s.name("c1"), "msgId": id, "brokerName": "broker-a"}
	s.ask("relayed", wire.ReqConsumeDirectly, f, nil)
	s.asked("what the member was asked", p, wire.ReqConsumeDirectly)
	s.ask("member that is not there", wire.ReqConsumeDirectly, f.with(fields{"clientId": s.name("absent")}), nil)
	s.ask("id that is none", wire.ReqConsumeDirectly, f.with(fields{"msgId": "nonsense"}), nil)
	s.ask("id that holds nothing", wire.ReqConsumeDirectly, f.with(fields{"msgId": id[:16] + "0000FFFFFFFFFFFF"}), nil)
	s.ask("no id", wire.ReqConsumeDirectly, f.with(fields{"msgId": nil}), nil)
}

func consumerStatus(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	f := fields{"topic": topic, "group": group, "clientAddr": ""}
	s.ask("nobody there", wire.ReqGetConsumerStatus, f, nil)
	for _, client := range []string{"c1", "c2"} {
		p := s.peer()
		s.join(p, client, group, 1, s.subscription(topic, "*"))
		p.answer(wire.ReqGetConsumerStatusOfClient, func(*wire.Command) *wire.Command {
			table := wire.QueueTable[int64]{}
			if client == "c1" {
				table[wire.MessageQueue{Topic: topic, BrokerName: "broker-a", QueueID: 0}] = 7
			}
			return &wire.Command{Code: 0, Body: s.bytes(wire.ConsumerStatusBody{Queues: table})}
		})
	}
	s.ask("of all", wire.ReqGetConsumerStatus, f, nil)
	s.ask("of one", wire.ReqGetConsumerStatus, f.with(fields{"clientAddr": s.name("c2")}), nil)
	s.ask("of one that is not there", wire.ReqGetConsumerStatus, f.with(fields{"clientAddr": s.name("absent")}), nil)
}

// requestReply: the answer to a request is sent to the broker, which pushes it to the requester.
func requestReply(s *session) {
	topic := s.topic("T", 1)
	requester, replier := s.peer(), s.peer()
	s.do(requester, wire.ReqHeartbeat, nil, s.bytes(&wire.HeartbeatData{
		ClientID: s.name("requester"), ProducerDataSet: []wire.ProducerData{{GroupName: s.name("PG")}},
	}))
	requester.answer(wire.ReqPushReplyMessage, func(*wire.Command) *wire.Command { return &wire.Command{Code: 0} })
	request := []string{"UNIQ_KEY", "u1", "CORRELATION_ID", "corr-1", "REPLY_TO_CLIENT", s.name("requester"), "MSG_TYPE", "request", "TTL", "3000", "WAIT", "true"}
	s.ask("request", wire.ReqSendMessageV2, sendFields(topic, 0, properties(request...)), []byte("question"))
	s.stored("request as stored", topic, 0, 1)
	reply := func(step string, code wire.RequestCode, f fields, more ...string) {
		pairs := append([]string{"UNIQ_KEY", "u-" + step, "CORRELATION_ID", "corr-1", "REPLY_TO_CLIENT", s.name("requester"), "MSG_TYPE", "reply", "TTL", "3000"}, more...)
		f = f.with(fields{"b": "DefaultCluster_REPLY_TOPIC", "i": properties(pairs...)})
		if code == wire.ReqSendReplyMessage {
			f = sendFieldsV1("DefaultCluster_REPLY_TOPIC", 0, properties(pairs...))
		}
		s.askAs(replier, step, code, f, []byte("answer"), func(v *view) { v.noFields = []string{"queueOffset"} })
	}
	base := sendFields("", 0, "")
	reply("reply", wire.ReqSendReplyMessageV2, base)
	s.asked("what the requester was sent", requester, wire.ReqPushReplyMessage)
	reply("reply by the old code", wire.ReqSendReplyMessage, base)
	reply("requester that is not there", wire.ReqSendReplyMessageV2, base, "REPLY_TO_CLIENT", s.name("absent"))
	noClient := strings.ReplaceAll(properties("UNIQ_KEY", "u9", "CORRELATION_ID", "c", "MSG_TYPE", "reply"), "REPLY_TO_CLIENT", "")
	s.askAs(replier, "reply to nobody", wire.ReqSendReplyMessageV2, base.with(fields{"b": "DefaultCluster_REPLY_TOPIC", "i": noClient}), []byte("x"),
		func(v *view) { v.noFields = []string{"queueOffset"} })
	s.ask("sent as a plain message", wire.ReqSendMessageV2,
		sendFields("DefaultCluster_REPLY_TOPIC", 0, properties("UNIQ_KEY", "u10", "REPLY_TO_CLIENT", s.name("requester"))), []byte("x"),
		func(v *view) { v.noFields = []string{"queueOffset"} })
	requester.answer(wire.ReqPushReplyMessage, func(*wire.Command) *wire.Command { return &wire.Command{Code: 1, Remark: "unwanted"} })
	reply("requester that refuses", wire.ReqSendReplyMessageV2, base)
}
