package broker_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// inBubble runs f in virtual time with a broker on a network in memory.
func inBubble(t *testing.T, c broker.Config, f func(t *testing.T, b *broker.Broker, net *memnet.Network)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		var net memnet.Network
		c.Listen, c.Address = net.Listen, "10.0.0.1:10911"
		f(t, startBroker(t, c), &net)
	})
}

func TestDelayLevels_deliverWhenDue(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: 24 * time.Hour, MemberTTL: 24 * time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		sent := time.Now()
		for level := range 18 {
			c.send("T", 0, strconv.Itoa(level+1), "DELAY\x01"+strconv.Itoa(level+1)+"\x02", nil)
		}
		c.send("T", 0, "99", "DELAY\x0199\x02", nil) // clamped to the last level
		if n := b.Delayed(); n != 19 {
			t.Errorf("%d messages wait, want 19", n)
		}
		for offset, want := range append(broker.DefaultDelayLevels(), 2*time.Hour) {
			a := c.await(c.start(wire.ReqPullMessage, pullFields("G", "T", 0, int64(offset), 3*time.Hour), nil), 4*time.Hour)
			m := decodeAll(t, a.Body)
			if took := time.Since(sent); took < want || took > want+10*time.Millisecond {
				t.Errorf("message %s came after %v, its delay is %v", m[0].Body, took, want)
			}
		}
		if n := b.Delayed(); n != 0 {
			t.Errorf("%d messages still wait", n)
		}
	})
}

func TestDelayed_survivesRestart(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, _ *memnet.Network) {
		t.Helper()
		if err := b.Put(broker.Message{Topic: "T", Body: []byte("x"), Properties: map[string]string{"DELAY": "4"}}); err != nil {
			t.Fatal(err)
		}
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
		pause(t, time.Hour)
		if n := len(b.Messages("T")); n != 0 {
			t.Fatalf("%d messages were delivered while the broker was down", n)
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		pause(t, time.Millisecond)
		if n := len(b.Messages("T")); n != 1 {
			t.Fatalf("%d messages after the restart, want 1", n)
		}
	})
}

// pause lets virtual time go on.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

func TestSendBack_chainEndsInDeadLetters(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: 24 * time.Hour, MemberTTL: 24 * time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		c.heartbeat("G", map[string]string{"T": "*", "%RETRY%G": "*"})
		first := c.send("T", 0, "x", "UNIQ_KEY\x01U1\x02", nil).Ext.Get("msgId")
		m := b.Messages("T")[0]
		failed := time.Now()
		// Waiting after attempt n is level n + 2: 10 s, 30 s, …, 2 h.
		for attempt, wait := range broker.DefaultDelayLevels()[2:] {
			c.ok(wire.ReqSendBack, ext{"group": "G", "offset": m.LogOffset, "delayLevel": 0, "originTopic": "T"}, nil)
			a := c.await(c.start(wire.ReqPullMessage, pullFields("G", "%RETRY%G", 0, int64(attempt), 3*time.Hour), nil), 4*time.Hour)
			got := decodeAll(t, a.Body)
			if len(got) != 1 || got[0].ReconsumeTimes != int32(attempt+1) {
				t.Fatalf("attempt %d: %+v", attempt+2, got)
			}
			if took := time.Since(failed); took < wait || took > wait+10*time.Millisecond {
				t.Errorf("attempt %d came after %v, want %v", attempt+2, took, wait)
			}
			if origin, _ := got[0].Property(wire.PropOriginMessageID); string(origin) != first {
				t.Errorf("attempt %d: origin %s, want %s", attempt+2, origin, first)
			}
			retries := b.Messages("%RETRY%G")
			m, failed = retries[len(retries)-1], time.Now()
		}
		c.ok(wire.ReqSendBack, ext{"group": "G", "offset": m.LogOffset, "delayLevel": 0, "originTopic": "T"}, nil)
		dead := b.DeadLetters("G")
		if len(dead) != 1 || dead[0].ReconsumeTimes != 17 || dead[0].Properties["DELAY"] != "0" || dead[0].ID != "U1" {
			t.Fatalf("dead letters %+v", dead)
		}
	})
}

func TestMember_expiresAfter120Seconds(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		stays, silent := dial(t, net.DialContext, b.Address(), "stays"), dial(t, net.DialContext, b.Address(), "silent")
		silent.heartbeat("G", map[string]string{"T": "*"})
		stays.heartbeat("G", map[string]string{"T": "*"})
		for range 3 {
			pause(t, 30*time.Second)
			stays.heartbeat("G", map[string]string{"T": "*"})
		}
		pause(t, 29*time.Second)
		if m := b.Members("G"); !slices.Equal(m, []string{"silent", "stays"}) {
			t.Fatalf("members after 119 s: %v", m)
		}
		drain(stays.pushed)
		pause(t, time.Second)
		if m := b.Members("G"); !slices.Equal(m, []string{"stays"}) {
			t.Fatalf("members after 120 s: %v", m)
		}
		stays.waitPush(wire.ReqNotifyConsumerIDsChanged)
		<-silent.gone // its connection is closed
	})
}

func drain(ch <-chan *wire.Command) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

func TestIdleConnection_isClosed(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		start := time.Now()
		pause(t, 100*time.Second)
		c.ok(wire.ReqGetMaxOffset, ext{"topic": "T", "queueId": 0}, nil)
		<-c.gone
		if took := time.Since(start); took != 220*time.Second {
			t.Errorf("closed after %v, want 120 s after the last request", took)
		}
	})
}

func TestLocks_expireAfter60Seconds(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		lock := func(client string) int {
			t.Helper()
			body, err := wire.EncodeBody(wire.LockBody{ClientID: client, Group: "G", Queues: []wire.MessageQueue{
				{BrokerName: "broker-a", QueueID: 0, Topic: "T"}, {BrokerName: "broker-a", QueueID: 1, Topic: "T"},
			}}, wire.Standard)
			if err != nil {
				t.Fatal(err)
			}
			var got wire.LockResult
			if err := wire.DecodeBody(c.ok(wire.ReqLockQueues, nil, body).Body, &got); err != nil {
				t.Fatal(err)
			}
			return len(got.Queues)
		}
		if a, b := lock("a"), lock("b"); a != 2 || b != 0 {
			t.Errorf("a got %d, b got %d", a, b)
		}
		pause(t, 59*time.Second)
		if n := lock("b"); n != 0 {
			t.Errorf("b got %d after 59 s", n)
		}
		if owner := b.LockOwner("G", "T", 0); owner != "a" {
			t.Errorf("owner %q", owner)
		}
		pause(t, 2*time.Second)
		if n := lock("b"); n != 2 {
			t.Errorf("b got %d after 61 s", n)
		}
	})
}

func TestHeldPull_timesOutExactly(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		b.CreateTopic("T", 1)
		c := dial(t, net.DialContext, b.Address(), "c1")
		start := time.Now()
		a := c.await(c.start(wire.ReqPullMessage, pullFields("G", "T", 0, 0, 15*time.Second), nil), time.Minute)
		if a.ResponseCode() != wire.RespPullNotFound || a.Remark != "NO_MESSAGE_IN_QUEUE" || time.Since(start) != 15*time.Second {
			t.Errorf("code %d %q after %v", a.Code, a.Remark, time.Since(start))
		}
		// A message that the tags do not let pass wakes nobody; at the end the offset moves past it.
		e := pullFields("G", "T", 0, 0, 15*time.Second)
		e["subscription"] = "red || blue"
		held := c.start(wire.ReqPullMessage, e, nil)
		synctest.Wait()
		if err := b.Put(broker.Message{Topic: "T", Body: []byte("x"), Tag: "green"}); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		a = c.await(held, time.Minute)
		if a.ResponseCode() != wire.RespPullRetryImmediately || a.Ext.Get("nextBeginOffset") != "1" || time.Since(start) != 15*time.Second {
			t.Errorf("filtered: code %d next %s after %v", a.Code, a.Ext.Get("nextBeginOffset"), time.Since(start))
		}
		c.close()
		synctest.Wait()
		if n := b.HeldPulls(); n != 0 {
			t.Errorf("%d pulls are held for nobody", n)
		}
	})
}

// TestDelayed_thatNoQueueTakes does not hold up the others.
func TestDelayed_thatNoQueueTakes(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		if a := c.call(wire.ReqUpdateSubscriptionGroup, nil, []byte(`{"groupName":"G","retryQueueNums":65537}`)); a.ResponseCode() != wire.RespInvalidParameter {
			t.Errorf("a group with too many retry queues: %d %q", a.Code, a.Remark)
		}
		for _, queue := range []int32{1 << 17, 0} {
			if err := b.Put(broker.Message{Topic: "T", Queue: queue, Body: []byte("x"), Properties: map[string]string{"DELAY": "1"}}); err != nil {
				t.Fatal(err)
			}
		}
		pause(t, 2*time.Second)
		if _, next := b.Bounds("T", 0); next != 1 || b.Delayed() != 0 {
			t.Errorf("%d messages are delivered, %d wait", next, b.Delayed())
		}
	})
}
