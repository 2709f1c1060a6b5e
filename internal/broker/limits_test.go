package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// patient keeps connections and members for as long as a slow machine takes for much work.
func patient() broker.Config { return broker.Config{IdleTimeout: time.Hour, MemberTTL: time.Hour} }

// TestRegistrations_areBounded has one client register all that a frame holds, again and again under new names. Others, and
// the client itself with what it registered before, go on.
func TestRegistrations_areBounded(t *testing.T) {
	b := startBroker(t, patient())
	c, good := dialTCP(t, b, "greedy"), dialTCP(t, b, "good")
	good.heartbeat("Good", map[string]string{"T": "*"})
	before := heap()
	long := strings.Repeat("x", 8<<20)
	refused := 0
	for i := range 10 {
		body := fmt.Sprintf(`{"clientID":"greedy","consumerDataSet":[{"groupName":"G%d","subscriptionDataSet":[{"topic":"T","subString":"%s"}]}]}`, i, long)
		if a := c.await(c.start(wire.ReqHeartbeat, nil, []byte(body)), 5*time.Minute); a.ResponseCode() == wire.RespSystemBusy && strings.Contains(a.Remark, "no room") {
			refused++
		} else if a.Code != 0 {
			t.Fatalf("heartbeat %d: %d %q", i+1, a.Code, a.Remark)
		}
	}
	if refused == 0 {
		t.Error("80 MiB were registered")
	}
	if grown := int64(heap()) - int64(before); grown > 80<<20 {
		t.Errorf("the broker grew by %d MiB", grown>>20)
	}
	if a := good.pull("Good", "TBW102", 0, 0); a.ResponseCode() != wire.RespPullNotFound {
		t.Errorf("another's pull: %d %q", a.Code, a.Remark)
	}
	c.close()
	if err := b.Await(t.Context(), func(b *broker.Broker) bool { return len(b.Members("G0")) == 0 }); err != nil {
		t.Fatal(err)
	}
	good.heartbeat("Good", map[string]string{"T": "*"}) // There is room again.
	good.heartbeat("Better", map[string]string{"T": strings.Repeat("y", 8<<20)})
}

// TestLocks_areBounded takes locks of made-up queues.
func TestLocks_areBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		lock := func(group, topic string, n int) int {
			t.Helper()
			var body strings.Builder
			fmt.Fprintf(&body, `{"clientId":"c1","consumerGroup":"%s","mqSet":[`, group)
			for id := range n {
				if id > 0 {
					body.WriteByte(',')
				}
				fmt.Fprintf(&body, `{"brokerName":"b","queueId":%d,"topic":"%s"}`, id, topic)
			}
			body.WriteString("]}")
			return strings.Count(string(c.ok(wire.ReqLockQueues, nil, []byte(body.String())).Body), `"queueId"`)
		}
		const each = 1 << 15
		for i := range 4 {
			if n := lock("G", fmt.Sprintf("T%d", i), each); n != each {
				t.Fatalf("round %d: %d locks", i+1, n)
			}
		}
		if n := lock("G", "T9", 10); n != 0 {
			t.Errorf("%d locks beyond the limit", n)
		}
		if n := lock("G", "T1", 10); n != 10 {
			t.Errorf("%d locks are renewed at the limit", n)
		}
		pause(t, 2*time.Minute)
		if n := lock("G", "T9", 10); n != 10 {
			t.Errorf("%d locks after the others expired", n)
		}
		if n := lock("G", strings.Repeat("T", 300), 1) + lock(strings.Repeat("G", 2000), "T", 1); n != 0 {
			t.Errorf("%d locks of names that are too long", n)
		}
	})
}

// TestHeldPulls_areBoundedPerConnection has one connection wait for as much as it may. Another one's pull is still held.
func TestHeldPulls_areBoundedPerConnection(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		const most = 20_000
		b.CreateTopic("T", 1)
		greedy, good := dial(t, net.DialContext, b.Address(), "greedy"), dial(t, net.DialContext, b.Address(), "good")
		for range most {
			greedy.oneway(wire.ReqPullMessage, pullFields("G", "T", 0, 0, time.Minute), nil)
		}
		start := time.Now()
		if a := greedy.call(wire.ReqPullMessage, pullFields("G", "T", 0, 0, time.Minute), nil); a.ResponseCode() != wire.RespPullNotFound || time.Since(start) > 0 {
			t.Errorf("one more: %d after %v", a.Code, time.Since(start))
		}
		if n := b.HeldPulls(); n != most {
			t.Errorf("%d are held", n)
		}
		pending := good.start(wire.ReqPullMessage, pullFields("H", "T", 0, 0, time.Minute), nil)
		if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.HeldPulls() == most+1 }); err != nil {
			t.Fatal(err)
		}
		greedy.close()
		good.send("T", 0, "x", "", nil)
		if a := good.await(pending, time.Minute); bodies(t, a) != "x" || time.Since(start) > 0 {
			t.Errorf("another's: %d after %v", a.Code, time.Since(start))
		}
		synctest.Wait() // The broker notices the end of the connection by itself.
		if n := b.HeldPulls(); n != 0 {
			t.Errorf("%d are held of a connection that ended", n)
		}
	})
}

// TestGroups_areBounded makes groups by using them, and by request.
func TestGroups_areBounded(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	const most = 50_000
	var list strings.Builder
	for i := range most / 10 {
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, `{"groupName":"%%d%04d"}`, i)
	}
	for i := range 10 {
		body := strings.ReplaceAll(list.String(), "%d", fmt.Sprintf("G%d_", i))
		c.ok(wire.ReqUpdateSubscriptionGroupList, nil, []byte(`{"groupConfigList":[`+body+`]}`))
	}
	pull := func(group string) ext { return pullFields(group, "TBW102", 0, 0, 0) }
	runSteps(t, c, []step{
		{"one too many by use", wire.ReqPullMessage, pull("New"), "", wire.RespGroupNotExist, "", nil, nil, nil},
		{"one too many by request", wire.ReqUpdateSubscriptionGroup, nil, `{"groupName":"New"}`, 1, "50000 groups", nil, nil, nil},
		{"a known one", wire.ReqPullMessage, pull("G0_0000"), "", wire.RespPullNotFound, "", nil, nil, nil},
		{"make room", wire.ReqDeleteSubscriptionGroup, ext{"groupName": "G9_0001"}, "", 0, "", nil, nil, nil},
		{"by use", wire.ReqPullMessage, pull("New"), "", wire.RespPullNotFound, "", nil, nil, nil},
		{"a long name by use", wire.ReqPullMessage, pull(strings.Repeat("g", 300)), "", wire.RespGroupNotExist, "", nil, nil, nil},
		{"a long name by request", wire.ReqUpdateSubscriptionGroup, nil, `{"groupName":"` + strings.Repeat("g", 300) + `"}`, wire.RespInvalidParameter, "longer than 255", nil, nil, nil},
	})
}

// TestNameServer_isBounded fills it with configs and with brokers.
func TestNameServer_isBounded(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	put := func(key, value string) *wire.Command {
		t.Helper()
		// Behind ten thousand others, which a slow machine takes its time for.
		return c.await(c.start(wire.ReqPutKVConfig, ext{"namespace": "N", "key": key, "value": value}, nil), 5*time.Minute)
	}
	if a := put("long", strings.Repeat("x", 20_000)); a.Code != 1 {
		t.Errorf("a long config: %d", a.Code)
	}
	for i := range 10_000 {
		c.oneway(wire.ReqPutKVConfig, ext{"namespace": "N", "key": i, "value": "v"}, nil)
	}
	if a := put("more", "v"); a.Code != 1 || !strings.Contains(a.Remark, "10000 configs") {
		t.Errorf("one more config: %d %q", a.Code, a.Remark)
	}
	if a := put("7", "w"); a.Code != 0 {
		t.Errorf("a known config: %d %q", a.Code, a.Remark)
	}
	refused := 0
	long := strings.Repeat("t", 8<<20)
	for i := range 8 {
		body := fmt.Sprintf(`{"topicConfigSerializeWrapper":{"topicConfigTable":{"%s":{"topicName":"T","perm":6}}}}`, long)
		a := c.call(wire.ReqRegisterBroker, ext{"brokerName": fmt.Sprintf("b%d", i), "brokerAddr": "10.0.0.1:1", "clusterName": "C", "brokerId": 0}, []byte(body))
		if a.Code == 1 && strings.Contains(a.Remark, "no room") {
			refused++
		} else if a.Code != 0 {
			t.Fatalf("registration %d: %d %q", i+1, a.Code, a.Remark)
		}
	}
	if refused == 0 || refused == 8 {
		t.Errorf("%d of 8 registrations were refused", refused)
	}
	if a := c.call(wire.ReqGetRoute, ext{"topic": "TBW102"}, nil); a.Code != 0 {
		t.Errorf("route: %d %q", a.Code, a.Remark)
	}
}

// TestLongHeaders_areNotKept: what is kept of a request, here the name of a new group, does not keep the rest of its header.
func TestLongHeaders_areNotKept(t *testing.T) {
	const requests, size, limit = 20, 4 << 20, 24 << 20
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	before, junk := heap(), strings.Repeat("x", size)
	for i := range requests {
		e := pullFields(fmt.Sprintf("G%d", i), "TBW102", 0, 0, 0)
		e["junk"] = junk
		if a := c.call(wire.ReqPullMessage, e, nil); a.ResponseCode() != wire.RespPullNotFound {
			t.Fatalf("pull: %d %q", a.Code, a.Remark)
		}
	}
	if grown := int64(heap()) - int64(before); grown > limit {
		t.Errorf("%d requests with headers of %d MiB keep %d MiB", requests, size>>20, grown>>20)
	}
}

// TestHeldPulls_areBoundedInBytes has one client wait with long lists of tags. Another's pull is held all the same.
func TestHeldPulls_areBoundedInBytes(t *testing.T) {
	const pulls, limit = 60, 140 << 20
	b := startBroker(t, patient())
	greedy, good := dialTCP(t, b, "greedy"), dialTCP(t, b, "good")
	before := heap()
	e := pullFields("G", "TBW102", 0, 0, 10*time.Minute) // A slow machine takes its time for the long lists.
	e["subscription"] = strings.Repeat("a||", 700_000)
	for range pulls {
		greedy.oneway(wire.ReqPullMessage, e, nil)
	}
	greedy.await(greedy.start(wire.ReqGetMaxOffset, ext{"topic": "TBW102", "queueId": 0}, nil), 5*time.Minute)
	held := b.HeldPulls()
	if grown := int64(heap()) - int64(before); held == 0 || held == pulls || grown > limit {
		t.Errorf("%d of %d pulls are held and take %d MiB", held, pulls, grown>>20)
	}
	waiting := good.start(wire.ReqPullMessage, pullFields("G", "TBW102", 1, 0, 5*time.Minute), nil)
	if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.HeldPulls() == held+1 }); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(broker.Message{Topic: "TBW102", Queue: 1, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if a := good.await(waiting, 5*time.Minute); bodies(t, a) != "x" {
		t.Errorf("another's pull: %d %q", a.Code, a.Remark)
	}
	greedy.close()
	if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.HeldPulls() == 0 }); err != nil {
		t.Fatal(err)
	}
}

// TestScan_isBoundedWhateverIsAsked: a pull that wants very many messages looks at no more of them than others do.
func TestScan_isBoundedWhateverIsAsked(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	if err := b.Fill("T", 1, 2000, 10); err != nil {
		t.Fatal(err)
	}
	e := pullFields("G", "T", 0, 0, 0)
	e["maxMsgNums"], e["subscription"] = 1<<20, "other"
	a := dialTCP(t, b, "c1").call(wire.ReqPullMessage, e, nil)
	if a.ResponseCode() != wire.RespPullRetryImmediately || a.Ext.Get("nextBeginOffset") != "800" {
		t.Errorf("%d %q %v", a.Code, a.Remark, a.Ext)
	}
}
