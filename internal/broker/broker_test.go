package broker_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestSendPull_roundTrip(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	a := c.send("T", 2, "hello", "UNIQ_KEY\x01ABC\x02TAGS\x01red\x02", nil)
	if a.Code != 0 || a.Ext.Get("queueId") != "2" || a.Ext.Get("queueOffset") != "0" || a.Ext.Get("transactionId") != "ABC" {
		t.Fatalf("send: %+v", a)
	}
	p := c.pull("G", "T", 2, 0)
	if p.Code != 0 || p.Remark != "FOUND" || p.Ext.Get("nextBeginOffset") != "1" || p.Ext.Get("maxOffset") != "1" {
		t.Fatalf("pull: %+v", p)
	}
	m := decodeAll(t, p.Body)
	if len(m) != 1 || string(m[0].Body) != "hello" || string(m[0].Topic) != "T" || m[0].QueueID != 2 {
		t.Fatalf("messages: %+v", m)
	}
	if m[0].OffsetID() != a.Ext.Get("msgId") {
		t.Errorf("offset id %s, the send said %s", m[0].OffsetID(), a.Ext.Get("msgId"))
	}
	want := map[string]string{
		"UNIQ_KEY": "ABC", "TAGS": "red", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "CLUSTER": "DefaultCluster",
	}
	got := wire.PropertyMap(m[0].Properties)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("property %s is %q, want %q", k, got[k], v)
		}
	}
}

func TestRoute_knowsTopicsAndQuotesForNewClients(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	b.CreateTopic("T", 4)
	c := dialTCP(t, b, "c1")
	a := c.ok(wire.ReqGetRoute, ext{"topic": "T"}, nil)
	var route struct {
		BrokerDatas []struct {
			BrokerAddrs map[string]string
			BrokerName  string
		}
		QueueDatas []struct{ Perm, ReadQueueNums int }
	}
	if err := json.Unmarshal(a.Body, &route); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if route.BrokerDatas[0].BrokerAddrs["0"] != b.Address() || route.QueueDatas[0].ReadQueueNums != 4 || route.QueueDatas[0].Perm != 6 {
		t.Errorf("route %s", a.Body)
	}
	if a.Ext != nil {
		t.Error("the answer to 105 has no header class, so no extFields")
	}
	missing := c.call(wire.ReqGetRoute, ext{"topic": "nope"}, nil)
	if missing.ResponseCode() != wire.RespTopicNotExist {
		t.Errorf("missing topic: %d", missing.Code)
	}
	unknown := c.call(9999, nil, nil)
	if unknown.Code != 3 || unknown.Remark != " request type 9999 not supported" {
		t.Errorf("unknown code: %d %q", unknown.Code, unknown.Remark)
	}
}

func TestMembership_notifiesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c1, c2 := dialTCP(t, b, "c1"), dialTCP(t, b, "c2")
	if a := c1.call(wire.ReqGetConsumerList, ext{"consumerGroup": "G"}, nil); a.Code != 1 || a.Remark != "no consumer for this group, G" {
		t.Fatalf("empty group: %d %q", a.Code, a.Remark)
	}
	a := c1.heartbeat("G", map[string]string{"T": "*", "%RETRY%G": "*"})
	if a.Ext.Get("IS_SUPPORT_HEART_BEAT_V2") != "true" || a.Ext.Get("IS_SUB_CHANGE") != "true" {
		t.Errorf("heartbeat answer %+v", a.Ext)
	}
	select {
	case p := <-c1.pushed: // The reader delivered it before the answer, so it is here without waiting.
		if p.RequestCode() != wire.ReqNotifyConsumerIDsChanged || p.Ext.Get("consumerGroup") != "G" || !p.IsOneway() {
			t.Errorf("pushed %+v", p)
		}
	default:
		t.Error("40 must reach the joiner before its answer")
	}
	c2.heartbeat("G", map[string]string{"T": "*", "%RETRY%G": "*"})
	c1.waitPush(wire.ReqNotifyConsumerIDsChanged)
	var list struct{ ConsumerIDList []string }
	body := c2.ok(wire.ReqGetConsumerList, ext{"consumerGroup": "G"}, nil).Body
	if err := json.Unmarshal(body, &list); err != nil || len(list.ConsumerIDList) != 2 {
		t.Errorf("list %s: %v", body, err)
	}
	if _, ok := b.Topic("%RETRY%G"); !ok {
		t.Error("the heartbeat must make the retry topic")
	}
	c2.ok(wire.ReqUnregisterClient, ext{"clientID": "c2", "consumerGroup": "G"}, nil)
	c1.waitPush(wire.ReqNotifyConsumerIDsChanged)
	c2.heartbeat("G", map[string]string{"T": "*", "%RETRY%G": "*"})
	c1.waitPush(wire.ReqNotifyConsumerIDsChanged)
	c2.close()
	c1.waitPush(wire.ReqNotifyConsumerIDsChanged)
	if m := b.Members("G"); len(m) != 1 || m[0] != "c1" {
		t.Errorf("members %v", m)
	}
}

func TestOffsets_queryCommitReset(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	b.CreateTopic("T", 1)
	q := func(more ext) ext {
		e := ext{"consumerGroup": "G", "topic": "T", "queueId": 0}
		maps.Copy(e, more)
		return e
	}
	if a := c.call(wire.ReqUpdateConsumerOffset, q(ext{"commitOffset": 5}), nil); a.ResponseCode() != wire.RespGroupNotExist || a.Remark != "Group G not exist!" {
		t.Errorf("unknown group: %d %q", a.Code, a.Remark)
	}
	c.heartbeat("G", map[string]string{"T": "*"})
	if a := c.call(wire.ReqQueryConsumerOffset, q(nil), nil); a.ResponseCode() != wire.RespQueryNotFound || a.Ext == nil {
		t.Errorf("empty queue: %+v", a)
	}
	if err := b.Put(broker.Message{Topic: "T", Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if a := c.ok(wire.ReqQueryConsumerOffset, q(nil), nil); a.Ext.Get("offset") != "0" {
		t.Errorf("young topic: %+v", a.Ext)
	}
	if a := c.call(wire.ReqQueryConsumerOffset, q(ext{"setZeroIfNotFound": false}), nil); a.ResponseCode() != wire.RespQueryNotFound {
		t.Errorf("young topic, not to zero: %d", a.Code)
	}
	c.ok(wire.ReqUpdateConsumerOffset, q(ext{"commitOffset": 1}), nil)
	if a := c.ok(wire.ReqQueryConsumerOffset, q(nil), nil); a.Ext.Get("offset") != "1" {
		t.Errorf("committed: %+v", a.Ext)
	}
	b.Reset("G", "T", 0, 0)
	if a := c.ok(wire.ReqUpdateConsumerOffset, q(ext{"commitOffset": 1}), nil); a.Remark != "Offset has been previously reset" {
		t.Errorf("commit during a reset: %q", a.Remark)
	}
	p := c.pull("G", "T", 0, 1)
	if p.ResponseCode() != wire.RespPullOffsetMoved || p.Remark != "OFFSET_RESET" || p.Ext.Get("nextBeginOffset") != "0" {
		t.Errorf("pull after a reset: %+v", p)
	}
	if a := c.ok(wire.ReqUpdateConsumerOffset, q(ext{"commitOffset": 1}), nil); a.Remark != "" {
		t.Errorf("commit after the reset: %q", a.Remark)
	}
}

func TestLongPoll_wakesAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		b.CreateTopic("T", 1)
		c, producer := dial(t, net.DialContext, b.Address(), "c1"), dial(t, net.DialContext, b.Address(), "p1")
		for i := range 50 {
			answer := c.start(wire.ReqPullMessage, pullFields("G", "T", 0, int64(i), 15*time.Second), nil)
			// The pull travels over another connection than the send.
			if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.HeldPulls() == 1 }); err != nil {
				t.Fatal(err)
			}
			sent := time.Now()
			producer.send("T", 0, "x", "", nil)
			a := c.await(answer, time.Minute)
			if a.Code != 0 || len(decodeAll(t, a.Body)) != 1 || time.Since(sent) != 0 {
				t.Fatalf("woken after %v: %+v", time.Since(sent), a)
			}
		}
	})
}

func TestSendBack_storesRetryCopy(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{DelayLevels: []time.Duration{time.Millisecond, time.Millisecond}})
	c := dialTCP(t, b, "c1")
	sent := c.send("T", 0, "x", "UNIQ_KEY\x01U1\x02TAGS\x01red\x02u\x011\x02WAIT\x01true\x02", nil)
	m := b.Messages("T")[0]
	a := c.ok(wire.ReqSendBack, ext{"group": "G", "offset": m.LogOffset, "delayLevel": 1, "maxReconsumeTimes": 2, "originTopic": "T"}, nil)
	if a.Ext != nil {
		t.Error("the answer to 36 has no extFields")
	}
	answer := c.await(c.start(wire.ReqPullMessage, pullFields("G", "%RETRY%G", 0, 0, 5*time.Minute), nil), 5*time.Minute)
	got := decodeAll(t, answer.Body)[0]
	if got.ReconsumeTimes != 1 {
		t.Errorf("reconsumeTimes %d", got.ReconsumeTimes)
	}
	want := map[string]string{
		"UNIQ_KEY": "U1", "TAGS": "red", "u": "1", "WAIT": "false", "DELAY": "1", "RETRY_TOPIC": "T", "REAL_TOPIC": "%RETRY%G",
		"REAL_QID": "0", "ORIGIN_MESSAGE_ID": sent.Ext.Get("msgId"), "MSG_REGION": "DefaultRegion", "CLUSTER": "DefaultCluster",
		"TRACE_ON": "true",
	}
	props := wire.PropertyMap(got.Properties)
	for k, v := range want {
		if props[k] != v {
			t.Errorf("property %s is %q, want %q", k, props[k], v)
		}
	}
	if len(props) != len(want) {
		t.Errorf("properties %v", props)
	}
	gone := c.call(wire.ReqSendBack, ext{"group": "G", "offset": 123456789, "delayLevel": 0}, nil)
	if gone.Code != 1 || gone.Remark != "look message by offset failed, 123456789" {
		t.Errorf("unknown offset: %d %q", gone.Code, gone.Remark)
	}
}

func TestOneway_isCarriedOutAndNeverAnswered(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	b.CreateTopic("T", 1)
	c := dialTCP(t, b, "c1")
	c.heartbeat("G", map[string]string{"T": "*"})
	stray := make(chan *wire.Command, 1)
	c.mu.Lock()
	c.wait[-1] = stray // The opaque of oneway requests here.
	c.mu.Unlock()
	c.oneway(wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 9}, nil)
	c.oneway(9999, nil, nil)
	c.ok(wire.ReqGetMaxOffset, ext{"topic": "T", "queueId": 0}, nil) // Answers keep their order.
	select {
	case a := <-stray:
		t.Errorf("a oneway request was answered: %+v", a)
	default:
	}
	if offset, ok := b.Committed("G", "T", 0); !ok || offset != 9 {
		t.Errorf("committed %d %t", offset, ok)
	}
}

func TestHeartbeat_version2(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	beat := func(hash int32, topics []string, without bool) string {
		t.Helper()
		h := wire.HeartbeatData{ClientID: "c1", HeartbeatFingerprint: hash, WithoutSub: without}
		g := wire.ConsumerData{GroupName: "G", MessageModel: wire.Clustering}
		for _, topic := range topics {
			g.SubscriptionDataSet = append(g.SubscriptionDataSet, wire.SubscriptionData{Topic: topic, SubString: "*", SubVersion: 1})
		}
		h.ConsumerDataSet = []wire.ConsumerData{g}
		body, err := wire.EncodeBody(h, wire.Standard)
		if err != nil {
			t.Fatal(err)
		}
		return c.ok(wire.ReqHeartbeat, nil, body).Ext.Get("IS_SUB_CHANGE")
	}
	if got := beat(7, []string{"T"}, false); got != "false" {
		t.Errorf("first: %s", got)
	}
	if got := beat(7, nil, true); got != "false" || b.Subscriptions("G")["T"] != "*" {
		t.Errorf("shortened: %s, %v", got, b.Subscriptions("G"))
	}
	if got := beat(8, []string{"U"}, false); got != "true" {
		t.Errorf("changed: %s", got)
	}
	if subs := b.Subscriptions("G"); len(subs) != 1 || subs["U"] != "*" {
		t.Errorf("subscriptions %v", subs)
	}
	b.ForgetMembers("G")
	if got := beat(8, nil, true); got != "true" {
		t.Errorf("shortened from an unknown member: %s; it must send all again", got)
	}
}
