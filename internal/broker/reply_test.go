package broker_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// replyFields is the header of 325 as the Java client sends it (vectors reply [1671]).
func replyFields(properties string) ext {
	return ext{
		"a": "PG_responder", "b": replyTopic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1795962226272, "h": 0, "i": properties,
		"j": 0, "k": false, "m": false, "n": "broker-a",
	}
}

func producerBeat(t *testing.T, c *rawClient, group string) {
	t.Helper()
	c.ok(wire.ReqHeartbeat, nil, []byte(`{"clientID":"`+c.id+`","consumerDataSet":[],"producerDataSet":[{"groupName":"`+group+`"}]}`))
}

func TestReply_isPushedToTheOneWhoAsked(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		asker, answerer := dial(t, net.DialContext, b.Address(), "p1"), dial(t, net.DialContext, b.Address(), "r1")
		asker.serve = func(r *wire.Command) *wire.Command {
			if r.RequestCode() != wire.ReqPushReplyMessage {
				return nil
			}
			return wire.NewResponse(r, wire.RespSuccess, "")
		}
		producerBeat(t, asker, "PG")
		const own = "MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01p1\x02CORRELATION_ID\x01c7\x02"
		a := answerer.ok(wire.ReqSendReplyMessageV2, replyFields(own), []byte("pong"))
		if a.Ext.Get("queueId") != "0" || a.Ext.Get("queueOffset") != "0" || a.Ext.Get("msgId") == "" {
			t.Errorf("answer %+v", a)
		}
		push := asker.waitPush(wire.ReqPushReplyMessage)
		for key, want := range map[string]string{
			"producerGroup": "PG_responder", "topic": replyTopic, "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
			"sysFlag": "0", "bornTimestamp": "1795962226272", "flag": "0", "reconsumeTimes": "0", "unitMode": "false", "storeHost": b.Address(),
		} {
			if got := push.Ext.Get(key); got != want {
				t.Errorf("326: %s is %q, want %q", key, got, want)
			}
		}
		p := wire.PropertyMap([]byte(push.Ext.Get("properties")))
		if string(push.Body) != "pong" || p["CORRELATION_ID"] != "c7" || p["PUSH_REPLY_TIME"] == "" || push.IsOneway() {
			t.Errorf("326: %+v %v", push, p)
		}
		if m := b.Messages(replyTopic); len(m) != 1 || string(m[0].Body) != "pong" {
			t.Errorf("stored %+v", m)
		}
	})
}

func TestReply_failuresAreToldAndStored(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		silent, c := dial(t, net.DialContext, b.Address(), "silent"), dial(t, net.DialContext, b.Address(), "r1")
		producerBeat(t, silent, "PG")
		for _, step := range []struct{ properties, remark string }{
			{"MSG_TYPE\x01reply\x02", "reply message properties[REPLY_TO_CLIENT] is null"},
			{"REPLY_TO_CLIENT\x01nobody\x02", "push reply message fail, channel of <nobody> not found."},
			{"REPLY_TO_CLIENT\x01silent\x02", "did not answer in time"},
		} {
			start := time.Now()
			a := c.call(wire.ReqSendReplyMessageV2, replyFields(step.properties), []byte("pong"))
			if a.Code != 1 || !strings.Contains(a.Remark, step.remark) || a.Ext.Get("queueOffset") == "" || time.Since(start) > 5*time.Second {
				t.Errorf("%q: %+v after %v", step.properties, a, time.Since(start))
			}
		}
		if m := b.Messages(replyTopic); len(m) != 3 {
			t.Errorf("%d replies are stored", len(m))
		}
		long := ext{
			"producerGroup": "PG", "topic": replyTopic, "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": -1, "sysFlag": 0,
			"bornTimestamp": 1, "flag": 0, "properties": "REPLY_TO_CLIENT\x01nobody\x02", "reconsumeTimes": 0,
		}
		if a := c.call(wire.ReqSendReplyMessage, long, []byte("pong")); a.Code != 1 || !strings.Contains(a.Remark, "<nobody>") {
			t.Errorf("324: %+v", a)
		}
		if a := c.call(wire.ReqSendReplyMessage, long, nil); a.Code != 1 || !strings.Contains(a.Remark, "no body") {
			t.Errorf("324 without body: %+v", a)
		}
	})
}

func TestRecall_takesTimerMessagesBack(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		timer := func(id, delay string) string {
			t.Helper()
			return c.send("T", 0, id, "UNIQ_KEY\x01"+id+"\x02TIMER_DELAY_MS\x01"+delay+"\x02", nil).Ext.Get("recallHandle")
		}
		// Two are due in the same second; the one between is taken back.
		handles := map[string]string{"A1": timer("A1", "60100"), "A2": timer("A2", "60200"), "A3": timer("A3", "60300")}
		if plain := c.send("T", 0, "x", "", nil); plain.Ext.Get("recallHandle") != "" {
			t.Errorf("an ordinary message has a recall handle: %+v", plain)
		}
		a := c.ok(wire.ReqRecallMessage, ext{"producerGroup": "PG", "topic": "T", "recallHandle": handles["A2"]}, nil)
		if a.Ext.Get("msgId") != "A2" || a.Ext.Get("MSG_REGION") != "DefaultRegion" {
			t.Errorf("370: %+v", a)
		}
		c.ok(wire.ReqRecallMessage, ext{"topic": "T", "recallHandle": handles["A2"]}, nil) // Again: success says nothing.
		for _, step := range []struct {
			topic, handle string
			code          wire.ResponseCode
			remark        string
		}{
			{"T", "", wire.RespIllegalOperation, "recall handle is invalid"},
			{"T", "bm90IGEgaGFuZGxl", wire.RespIllegalOperation, "recall handle is invalid"},
			{"T", "djEgVCBicm9rZXItYSBub3cgQTE=", wire.RespIllegalOperation, "recall handle is invalid"},
			{"TBW102", handles["A1"], wire.RespIllegalOperation, "recall failed, topic not match"},
			{"Nowhere", handles["A1"], wire.RespTopicNotExist, "recall failed, the topic[Nowhere] not exist"},
			{"T", "djEgVCBicm9rZXIteCAxNzk1OTYyMzE0MDAxIEEx", wire.RespIllegalOperation, "recall failed, broker service not available"},
			{"T", "djEgVCBicm9rZXItYSAxIEEx", wire.RespIllegalOperation, "recall failed, timestamp invalid"},
			{"T", "djEgVCBicm9rZXItYSA5OTk5OTk5OTk5OTk5IEEx", wire.RespIllegalOperation, "recall failed, timestamp invalid"},
		} {
			a := c.call(wire.ReqRecallMessage, ext{"topic": step.topic, "recallHandle": step.handle}, nil)
			if a.ResponseCode() != step.code || a.Remark != step.remark {
				t.Errorf("%s %s: %d %q, want %d %q", step.topic, step.handle, a.Code, a.Remark, step.code, step.remark)
			}
		}
		pause(t, 90*time.Second)
		var left []string
		for _, m := range b.Messages("T") {
			left = append(left, string(m.Body))
		}
		if got := strings.Join(left, " "); got != "x A1 A3" {
			t.Errorf("delivered %s", got)
		}
		if a := c.call(wire.ReqRecallMessage, ext{"topic": "T", "recallHandle": handles["A1"]}, nil); a.Remark != "recall failed, timestamp invalid" {
			t.Errorf("too late: %d %q", a.Code, a.Remark)
		}
	})
}

// TestRecallHandle_isJavas compares with the one that RocketMQ gave (vectors delay [2487]).
func TestRecallHandle_isJavas(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		due := time.Now().Add(time.Hour).Truncate(time.Second).UnixMilli()
		a := c.send("TopicDelay", 0, "x", "UNIQ_KEY\x017F00000121FC4E0E2F2A9349C2FD0003\x02TIMER_DELIVER_MS\x01"+strconv.FormatInt(due+500, 10)+"\x02", nil)
		want := base64.URLEncoding.EncodeToString([]byte("v1 TopicDelay broker-a " + strconv.FormatInt(due+1, 10) + " 7F00000121FC4E0E2F2A9349C2FD0003"))
		if got := a.Ext.Get("recallHandle"); got != want {
			t.Errorf("handle %s, want %s", got, want)
		}
	})
}
