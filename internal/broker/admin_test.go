package broker_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestRelay_runningInfoAndDirectConsumption(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		member, tool := dial(t, net.DialContext, b.Address(), "m1"), dial(t, net.DialContext, b.Address(), "tool")
		member.serve = func(r *wire.Command) *wire.Command {
			if r.RequestCode() != wire.ReqGetConsumerRunningInfo && r.RequestCode() != wire.ReqConsumeDirectly {
				return nil
			}
			a := wire.NewResponse(r, wire.RespSuccess, "not set any response code")
			a.Ext, a.Body = nil, []byte(r.Ext.Get("clientId")+"/"+r.Ext.Get("brokerName")+"/"+strconv.Itoa(len(r.Body)))
			return a
		}
		member.heartbeat("G", map[string]string{"T": "*"})
		id := tool.send("T", 0, "x", "", nil).Ext.Get("msgId")
		a := tool.ok(wire.ReqGetConsumerRunningInfo, ext{"consumerGroup": "G", "clientId": "m1", "jstackEnable": false}, nil)
		if string(a.Body) != "m1//0" || a.Ext != nil || a.Remark != "not set any response code" {
			t.Errorf("307: %+v %s", a, a.Body)
		}
		a = tool.ok(wire.ReqConsumeDirectly, ext{"consumerGroup": "G", "clientId": "m1", "msgId": id}, nil)
		if want := "m1/broker-a/" + strconv.Itoa(len(b.Messages("T")[0].Raw)); string(a.Body) != want {
			t.Errorf("309: %s, want %s", a.Body, want)
		}
		a = tool.call(wire.ReqGetConsumerRunningInfo, ext{"consumerGroup": "G", "clientId": "nobody"}, nil)
		if a.Code != 1 || a.Remark != "The Consumer <G> <nobody> not online" {
			t.Errorf("nobody: %d %q", a.Code, a.Remark)
		}
		silent := dial(t, net.DialContext, b.Address(), "m2")
		silent.heartbeat("G", map[string]string{"T": "*"})
		start := time.Now()
		a = tool.call(wire.ReqGetConsumerRunningInfo, ext{"consumerGroup": "G", "clientId": "m2"}, nil)
		if a.ResponseCode() != wire.RespConsumeTimeout || time.Since(start) != 10*time.Second {
			t.Errorf("silent member: %d after %v", a.Code, time.Since(start))
		}
		pending := tool.start(wire.ReqGetConsumerRunningInfo, ext{"consumerGroup": "G", "clientId": "m2"}, nil)
		silent.waitPush(wire.ReqGetConsumerRunningInfo)
		silent.waitPush(wire.ReqGetConsumerRunningInfo)
		silent.close()
		if a = tool.await(pending, time.Minute); a.Code != 1 || !strings.Contains(a.Remark, "connection was closed") {
			t.Errorf("member that left: %d %q", a.Code, a.Remark)
		}
	})
}

func TestConsumerStatus_asksMembers(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		tool := dial(t, net.DialContext, b.Address(), "tool")
		for i, id := range []string{"m1", "m2"} {
			m := dial(t, net.DialContext, b.Address(), id)
			m.serve = func(r *wire.Command) *wire.Command {
				if r.RequestCode() != wire.ReqGetConsumerStatusOfClient {
					return nil
				}
				body, err := wire.EncodeBody(wire.ConsumerStatusBody{
					Queues: wire.QueueTable[int64]{{BrokerName: "broker-a", QueueID: int32(i), Topic: "T"}: 7},
				}, wire.Fastjson)
				if err != nil {
					t.Error(err)
				}
				a := wire.NewResponse(r, wire.RespSuccess, "")
				a.Body = body
				return a
			}
			m.heartbeat("G", map[string]string{"T": "*"})
		}
		dial(t, net.DialContext, b.Address(), "silent").heartbeat("G", map[string]string{"T": "*"})
		var got wire.ConsumerStatusBody
		a := tool.ok(wire.ReqGetConsumerStatus, ext{"topic": "T", "group": "G", "clientAddr": ""}, nil)
		if err := wire.DecodeBody(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Consumers) != 2 || got.Consumers["m2"][wire.MessageQueue{BrokerName: "broker-a", QueueID: 1, Topic: "T"}] != 7 {
			t.Errorf("status %s", a.Body)
		}
	})
}

func TestReset_serverSideAndPushed(t *testing.T) {
	t.Parallel()
	for _, pushed := range []bool{false, true} {
		t.Run("pushed="+strconv.FormatBool(pushed), func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, broker.Config{PushResets: pushed})
			c := dialTCP(t, b, "c1")
			if err := b.Put(broker.Message{Topic: "T", Body: []byte("1")}, broker.Message{Topic: "T", Body: []byte("2")}); err != nil {
				t.Fatal(err)
			}
			c.heartbeat("G", map[string]string{"T": "*"})
			b.Commit("G", "T", 0, 2)
			a := c.ok(wire.ReqResetOffset, ext{"topic": "T", "group": "G", "timestamp": 0, "isForce": true, "queueId": -1, "offset": -1}, nil)
			if want := `{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:0}}`; string(a.Body) != want {
				t.Errorf("body %s, want %s", a.Body, want)
			}
			p := c.pull("G", "T", 0, 2)
			if pushed {
				push := c.waitPush(wire.ReqResetConsumerClientOffset)
				if string(push.Body) != string(a.Body) || push.Ext.Get("isForce") != "false" || !push.IsOneway() {
					t.Errorf("220: %+v %s", push, push.Body)
				}
				if p.ResponseCode() != wire.RespPullNotFound {
					t.Errorf("pull: %d", p.Code)
				}
			} else if p.ResponseCode() != wire.RespPullOffsetMoved || p.Remark != "OFFSET_RESET" {
				t.Errorf("pull: %d %q", p.Code, p.Remark)
			}
			missing := c.call(wire.ReqResetOffset, ext{"topic": "T", "group": "G_offline", "timestamp": 0, "isForce": true}, nil)
			if want := map[bool]wire.ResponseCode{false: wire.RespGroupNotExist, true: wire.RespSystemError}[pushed]; missing.ResponseCode() != want {
				t.Errorf("unknown group: %d, want %d", missing.Code, want)
			}
		})
	}
}

func TestStats_ofTopicAndGroup(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	if err := b.Put(broker.Message{Topic: "T", Body: []byte("1")}, broker.Message{Topic: "T", Body: []byte("2")}, broker.Message{Topic: "T", Body: []byte("3")}); err != nil {
		t.Fatal(err)
	}
	b.Expire("T", 0, 1)
	b.Commit("G", "T", 0, 2)
	queue := wire.MessageQueue{BrokerName: "broker-a", Topic: "T"}
	var topic wire.TopicStats
	if err := wire.DecodeBody(c.ok(wire.ReqGetTopicStats, ext{"topic": "T"}, nil).Body, &topic); err != nil {
		t.Fatal(err)
	}
	if o := topic.Offsets[queue]; o.MinOffset != 1 || o.MaxOffset != 3 || o.LastUpdateMillis == 0 {
		t.Errorf("202: %+v", o)
	}
	var group wire.ConsumeStats
	if err := wire.DecodeBody(c.ok(wire.ReqGetConsumeStats, ext{"consumerGroup": "G"}, nil).Body, &group); err != nil {
		t.Fatal(err)
	}
	if o := group.Offsets[queue]; o.BrokerOffset != 3 || o.ConsumerOffset != 2 || o.LastMillis == 0 {
		t.Errorf("208: %+v", o)
	}
	if a := c.call(wire.ReqGetConsumerConnections, ext{"consumerGroup": "G"}, nil); a.ResponseCode() != wire.RespConsumerNotOnline {
		t.Errorf("203 with nobody: %d", a.Code)
	}
	c.heartbeat("G", map[string]string{"T": "red"})
	var conns wire.ConsumerConnections
	if err := wire.DecodeBody(c.ok(wire.ReqGetConsumerConnections, ext{"consumerGroup": "G"}, nil).Body, &conns); err != nil {
		t.Fatal(err)
	}
	if len(conns.Connections) != 1 || conns.Connections[0].ClientID != "c1" || conns.Subscriptions["T"].SubString != "red" {
		t.Errorf("203: %+v", conns)
	}
	below := c.pull("G", "T", 0, 0)
	if below.ResponseCode() != wire.RespPullOffsetMoved || below.Ext.Get("nextBeginOffset") != "1" || below.Remark != "OFFSET_TOO_SMALL" {
		t.Errorf("pull below min: %+v", below)
	}
}

func TestTopicsAndGroups_areMadeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	c.ok(wire.ReqUpdateAndCreateTopic, ext{"topic": "T", "defaultTopic": "TBW102", "readQueueNums": 8, "writeQueueNums": 4, "perm": 6, "topicFilterType": "SINGLE_TAG", "attributes": "+message.type=FIFO"}, nil)
	if topic, _ := b.Topic("T"); topic.ReadQueues != 8 || topic.WriteQueues != 4 || topic.Attributes["message.type"] != "FIFO" {
		t.Errorf("topic %+v", topic)
	}
	c.ok(wire.ReqUpdateSubscriptionGroup, nil, []byte(`{"groupName":"G","retryMaxTimes":2}`))
	if g, _ := b.Group("G"); g.RetryMaxTimes != 2 || !g.ConsumeEnable || g.RetryQueues != 1 {
		t.Errorf("group %+v", g)
	}
	c.send("T", 0, "x", "", nil)
	b.Commit("G", "T", 0, 1)
	c.ok(wire.ReqDeleteTopicInBroker, ext{"topic": "T"}, nil)
	if _, ok := b.Topic("T"); ok || len(b.Messages("T")) > 0 {
		t.Error("the topic is still there")
	}
	if _, ok := b.Committed("G", "T", 0); ok {
		t.Error("its offsets are still there")
	}
	if a := c.call(wire.ReqGetRoute, ext{"topic": "T"}, nil); a.ResponseCode() != wire.RespTopicNotExist {
		t.Errorf("route: %d", a.Code)
	}
	c.ok(wire.ReqDeleteSubscriptionGroup, ext{"groupName": "G", "cleanOffset": true}, nil)
	if _, ok := b.Group("G"); ok {
		t.Error("the group is still there")
	}
}

func TestTools_seeGroupsAndTopics(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	if err := b.Put(broker.Message{Topic: "T", Body: []byte("1")}, broker.Message{Topic: "T", Body: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	b.Commit("Old", "T", 0, 1)
	c.heartbeat("G", map[string]string{"T": "red"})
	ask := func(code wire.RequestCode, e ext, into any) {
		t.Helper()
		if err := wire.DecodeBody(c.ok(code, e, nil).Body, into); err != nil {
			t.Fatal(err)
		}
	}
	var groups wire.GroupList
	if ask(wire.ReqQueryTopicConsumers, ext{"topic": "T"}, &groups); !slices.Equal(groups.Groups, []string{"G", "Old"}) {
		t.Errorf("300: %v", groups.Groups)
	}
	var topics wire.TopicList
	if ask(wire.ReqQueryTopicsByConsumer, ext{"group": "Old"}, &topics); !slices.Equal(topics.Topics, []string{"T"}) || topics.BrokerAddr != b.Address() {
		t.Errorf("343: %+v", topics)
	}
	var subscription wire.QuerySubscriptionBody
	if ask(wire.ReqQuerySubscription, ext{"group": "G", "topic": "T"}, &subscription); subscription.SubscriptionData == nil || subscription.SubscriptionData.SubString != "red" {
		t.Errorf("345: %+v", subscription)
	}
	var spans wire.TimeSpans
	ask(wire.ReqQueryConsumeTimeSpan, ext{"group": "Old", "topic": "T"}, &spans)
	if len(spans.Spans) != 1 || spans.Spans[0].MinMillis <= 0 || spans.Spans[0].MaxMillis < spans.Spans[0].MinMillis {
		t.Errorf("303: %+v", spans)
	}
	c.ok(wire.ReqCloneGroupOffset, ext{"srcGroup": "Old", "destGroup": "New", "topic": "", "offline": true}, nil)
	if offset, ok := b.Committed("New", "T", 0); !ok || offset != 1 {
		t.Errorf("314: %d %t", offset, ok)
	}
	var info wire.KVTable
	if ask(wire.ReqGetBrokerRuntimeInfo, nil, &info); info.Table["brokerVersionDesc"] != "V5_3_3" {
		t.Errorf("28: %v", info.Table)
	}
	if a := c.ok(wire.ReqGetBrokerConfig, nil, nil); !strings.Contains(string(a.Body), "brokerName=broker-a\n") {
		t.Errorf("26: %s", a.Body)
	}
	byKey := c.ok(wire.ReqQueryMessage, ext{"topic": "T", "key": b.Messages("T")[1].ID, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": int64(1) << 62}, nil)
	if m := decodeAll(t, byKey.Body); len(m) != 1 || string(m[0].Body) != "2" {
		t.Errorf("12: %+v", m)
	}
	byOffset := c.ok(wire.ReqViewMessageByID, ext{"topic": "T", "offset": b.Messages("T")[0].LogOffset}, nil)
	if m := decodeAll(t, byOffset.Body); len(m) != 1 || string(m[0].Body) != "1" {
		t.Errorf("33: %+v", m)
	}
}
