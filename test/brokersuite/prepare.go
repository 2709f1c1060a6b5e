package brokersuite

import (
	"fmt"
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// topic makes a topic of the scenario and waits until its route is known.
func (s *session) topic(local string, queues int, more ...fields) string {
	s.tb.Helper()
	name := s.name(local)
	f := fields{
		"topic": name, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6,
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": false,
	}
	for _, m := range more {
		f = f.with(m)
	}
	s.do(s.main, wire.ReqUpdateAndCreateTopic, f, nil)
	s.routed(name)
	return name
}

// routed waits until the name server knows a topic.
func (s *session) routed(topic string) {
	s.tb.Helper()
	s.poll("the route of "+topic, func() bool {
		a := s.ns.await(s.ns.start(&wire.Command{Code: int32(wire.ReqGetRoute), Ext: fields{"topic": topic}.list()}))
		return a != nil && a.Code == 0
	})
}

// group makes a group of the scenario.
func (s *session) group(local string, more ...fields) string {
	s.tb.Helper()
	name := s.name(local)
	s.do(s.main, wire.ReqUpdateSubscriptionGroup, nil, toJSON(s.tb, groupBody(name, more...)))
	return name
}

// groupBody is the body of 200 with RocketMQ's defaults.
func groupBody(name string, more ...fields) fields {
	f := fields{
		"brokerId": 0, "consumeBroadcastEnable": true, "consumeEnable": true, "consumeFromMinEnable": true, "consumeMessageOrderly": false,
		"groupName": name, "groupRetryPolicy": fields{"type": "CUSTOMIZED"}, "groupSysFlag": 0, "notifyConsumerIdsChangedEnable": true,
		"retryMaxTimes": 16, "retryQueueNums": 1, "whichBrokerWhenConsumeSlowly": 1, "attributes": fields{}, "consumeTimeoutMinute": 15,
	}
	for _, m := range more {
		f = f.with(m)
	}
	return f
}

// sendFields is the header of 310 and 320; props is text made by properties.
func sendFields(topic string, queue int, props string) fields {
	return fields{
		"a": "bs-producer", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": time.Now().UnixMilli(), "h": 0, "i": props,
		"j": 0, "k": false, "m": false, "n": "broker-a",
	}
}

// sendFieldsV1 is the header of 10.
func sendFieldsV1(topic string, queue int, props string) fields {
	return fields{
		"producerGroup": "bs-producer", "topic": topic, "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": queue, "sysFlag": 0,
		"bornTimestamp": time.Now().UnixMilli(), "flag": 0, "properties": props, "reconsumeTimes": 0, "unitMode": false, "batch": false,
	}
}

// send stores a message that a step needs and returns its offset id.
func (s *session) send(topic string, queue int, body string, pairs ...string) (offsetID string) {
	s.tb.Helper()
	a := s.do(s.main, wire.ReqSendMessageV2, sendFields(topic, queue, properties(pairs...)), []byte(body))
	return a.Ext.Get("msgId")
}

// fill stores n messages "m0", "m1", … and waits until they can be read.
func (s *session) fill(topic string, queue, n int, pairs ...string) (offsetIDs []string) {
	s.tb.Helper()
	for i := range n {
		offsetIDs = append(offsetIDs, s.send(topic, queue, fmt.Sprint("m", i), append([]string{"UNIQ_KEY", fmt.Sprintf("%s-%d-%d", topic, queue, i)}, pairs...)...))
	}
	s.readable(topic, queue, int64(n))
	return offsetIDs
}

// readable waits until a queue ends at an offset: a real broker shows messages a moment after it stored them.
func (s *session) readable(topic string, queue int, end int64) {
	s.tb.Helper()
	s.poll(fmt.Sprintf("queue %s/%d to end at %d", topic, queue, end), func() bool { return s.end(topic, queue) >= end })
}

// shown gives a queue the time of a busy machine to end at an offset, where some brokers show less than others.
func (s *session) shown(topic string, queue int, end int64) {
	s.tb.Helper()
	for range 100 {
		if s.end(topic, queue) >= end {
			return
		}
		s.pause(100 * time.Millisecond)
	}
}

func (s *session) end(topic string, queue int) int64 {
	s.tb.Helper()
	a := s.do(s.main, wire.ReqGetMaxOffset, fields{"topic": topic, "queueId": queue}, nil)
	n, err := strconv.ParseInt(a.Ext.Get("offset"), 10, 64)
	if err != nil {
		s.tb.Fatal(err)
	}
	return n
}

// logOffset is where the log holds the message of an offset id.
func (s *session) logOffset(offsetID string) int64 {
	s.tb.Helper()
	_, offset, err := wire.ParseOffsetID(offsetID)
	if err != nil {
		s.tb.Fatal(err)
	}
	return offset
}

// pullFields is the header of 11 with an expression of its own.
func pullFields(group, topic string, queue int, offset int64) fields {
	return fields{
		"consumerGroup": group, "topic": topic, "queueId": queue, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0,
		"suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0, "expressionType": "TAG", "maxMsgBytes": 2147483647,
	}
}

// stored waits until a queue ends at an offset and writes down all that it holds.
func (s *session) stored(step, topic string, queue int, end int64) []wire.Message {
	s.tb.Helper()
	s.readable(topic, queue, end)
	group := s.name("reader")
	n := s.normal()
	var lines []string
	var all []wire.Message
	for offset := int64(0); offset < end; {
		a := s.do(s.main, wire.ReqPullMessage, pullFields(group, topic, queue, offset), nil)
		lines = append(lines, n.messages(a.Body)...)
		for body := a.Body; len(body) > 0; {
			var m wire.Message
			size, err := m.Decode(body)
			if err != nil {
				s.tb.Fatal(err)
			}
			all, body = append(all, m), body[size:]
		}
		next, err := strconv.ParseInt(a.Ext.Get("nextBeginOffset"), 10, 64)
		if err != nil || next <= offset {
			s.tb.Fatalf("reading %s/%d at %d: next is %d, %v", topic, queue, offset, next, err)
		}
		offset = next
	}
	s.note(step, lines...)
	return all
}

// beat is a heartbeat of a push consumer.
func (s *session) beat(client, group string, version int64, subscriptions ...wire.SubscriptionData) *wire.HeartbeatData {
	for i := range subscriptions {
		subscriptions[i].SubVersion = version
	}
	return &wire.HeartbeatData{
		ClientID:        s.name(client),
		ProducerDataSet: []wire.ProducerData{{GroupName: wire.InnerProducerGroup}},
		ConsumerDataSet: []wire.ConsumerData{{
			ConsumeFromWhere: wire.ConsumeFromLastOffset, ConsumeType: wire.ConsumePassively, GroupName: group, MessageModel: wire.Clustering,
			SubscriptionDataSet: subscriptions,
		}},
	}
}

func (s *session) subscription(topic, expression string) wire.SubscriptionData {
	s.tb.Helper()
	d, err := wire.NewSubscriptionData(topic, "TAG", expression, 1)
	if err != nil {
		s.tb.Fatal(err)
	}
	return d
}

// join makes a connection a member, without writing it down.
func (s *session) join(p *peer, client, group string, version int64, subscriptions ...wire.SubscriptionData) {
	s.tb.Helper()
	s.do(p, wire.ReqHeartbeat, nil, s.bytes(s.beat(client, group, version, subscriptions...)))
}

func (s *session) bytes(body any) []byte {
	s.tb.Helper()
	text, err := wire.EncodeBody(body, wire.Standard)
	if err != nil {
		s.tb.Fatal(err)
	}
	return text
}
