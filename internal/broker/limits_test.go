package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestRegistrations_areBounded has one client register all that a frame holds, again and again under new names. Others, and
// the client itself with what it registered before, go on.
func TestRegistrations_areBounded(t *testing.T) {
	b := startBroker(t, broker.Config{})
	c, good := dialTCP(t, b, "greedy"), dialTCP(t, b, "good")
	good.heartbeat("Good", map[string]string{"T": "*"})
	before := heap()
	long := strings.Repeat("x", 8<<20)
	refused := 0
	for i := range 10 {
		body := fmt.Sprintf(`{"clientID":"greedy","consumerDataSet":[{"groupName":"G%d","subscriptionDataSet":[{"topic":"T","subString":"%s"}]}]}`, i, long)
		if a := c.call(wire.ReqHeartbeat, nil, []byte(body)); a.ResponseCode() == wire.RespSystemBusy && strings.Contains(a.Remark, "no room") {
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
			var queues []wire.MessageQueue
			for id := range n {
				queues = append(queues, wire.MessageQueue{BrokerName: "b", QueueID: int32(id), Topic: topic})
			}
			body, err := wire.EncodeBody(wire.LockBody{ClientID: "c1", Group: group, Queues: queues}, wire.Standard)
			if err != nil {
				t.Fatal(err)
			}
			var got wire.LockResult
			if err := wire.DecodeBody(c.ok(wire.ReqLockQueues, nil, body).Body, &got); err != nil {
				t.Fatal(err)
			}
			return len(got.Queues)
		}
		const each = 1 << 16
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
