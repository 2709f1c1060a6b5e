package groupview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/brokertest"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// member joins a group and answers 307 with info; nil = it tells nothing.
func member(t *testing.T, b *broker.Broker, id string, info *wire.ConsumerRunningInfo) {
	t.Helper()
	spec := rocketmq.GroupSpec{
		Name: "billing", FromWhere: rocketmq.FromLast,
		Subscriptions: func() []rocketmq.Subscription {
			return []rocketmq.Subscription{{Topic: "Orders", Expression: "a || b", Type: rocketmq.FilterTag, Version: 1}}
		},
	}
	if info != nil {
		spec.RunningInfo = func(bool) *wire.ConsumerRunningInfo { return info }
	}
	brokertest.Join(t, b, id, spec)
}

func owns(properties map[string]string, queues map[int32]wire.ProcessQueueInfo) *wire.ConsumerRunningInfo {
	info := &wire.ConsumerRunningInfo{Properties: properties, Queues: wire.QueueTable[wire.ProcessQueueInfo]{}}
	for id, p := range queues {
		info.Queues[wire.MessageQueue{Topic: "Orders", BrokerName: "broker-a", QueueID: id}] = p
	}
	return info
}

func TestRead(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 4)
	for q := range int32(4) {
		for n := range 10 {
			if err := b.Put(broker.Message{Topic: "Orders", Queue: q, Body: fmt.Appendf(nil, "%d/%d", q, n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	member(t, b, "10.0.0.1@1#1", owns(map[string]string{
		allocate.PropertyStreamd: "v1", wire.RunningStartMillis: "1700000000000",
		groupview.PropertyPlugins: `[{"name":"acme","pid":42,"state":"ready","version":"1.2.3"},{"name":"late","state":"failed"}]`,
		runtime.PeerInfoProperty: `{"version":"v1","stream":"orders","state":"running","strategy":"averagely","order":"key","locks":3,
			"heads":[{"queue":{"topic":"Orders","broker":"broker-a","id":0},"offset":7,"msg_id":"m7","key":"A-1","attempt":4,"since":"2023-11-14T22:13:20Z","blocked":true,"text":"db timeout"}],"queues":{
			"Orders/broker-a/0":{"state":"owned","in_flight":3},
			"Orders/broker-a/1":{"state":"owned","hold":{"kind":"plugin_down","text":"plugin acme is down, next try in 3s"}},
			"Orders/broker-a/2":{"state":"owned","in_flight":0},
			"Orders/broker-a/3":{"state":"waiting","hold":{"kind":"waiting_hand_over","text":"asks the other members"}}}}`,
	}, map[int32]wire.ProcessQueueInfo{0: {CachedCount: 3}, 1: {}, 2: {}}))
	member(t, b, "10.0.0.2@2#2", owns(map[string]string{"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1"}, map[int32]wire.ProcessQueueInfo{2: {CachedCount: 1}}))
	b.Commit("billing", "Orders", 0, 7)
	b.Commit("billing", "Orders", 1, 10)
	b.Commit("billing", "Orders", 2, 0)
	b.Commit("billing", "Orders", 3, 4)

	g, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Members) != 2 || g.Members[0].Streamd != "v1" || g.Members[0].Stream != "orders" || g.Members[0].Plugins[0].PID != 42 || g.Members[1].Streamd != "" || g.Members[1].Strategy != "averagely" {
		t.Errorf("members = %+v", g.Members)
	}
	if m := g.Members[0]; m.Order != "key" || m.Locks != 3 || len(m.Heads) != 1 || m.Heads[0].Key != "A-1" {
		t.Errorf("order %q, %d locks, heads %+v", m.Order, m.Locks, m.Heads)
	}
	var text strings.Builder
	if err := g.Text(&text); err != nil {
		t.Fatal(err)
	}
	if want := "Orders/broker-a/0@7"; !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "blocked: its retries are used up") {
		t.Errorf("no %q in\n%s", want, text.String())
	}
	var orders []groupview.Queue
	for _, q := range g.Queues {
		if q.Topic == "Orders" {
			orders = append(orders, q)
		}
	}
	if len(orders) != 4 {
		t.Fatalf("queues = %+v", g.Queues)
	}
	for i, want := range []struct {
		committed, lag int64
		inFlight       int
		state, why     string
	}{
		{7, 3, 3, groupview.StateActive, ""},
		{10, 0, 0, groupview.StateHeld, "plugin acme is down"},
		{0, 10, 1, groupview.StateOverlap, "10.0.0.1@1#1 and 10.0.0.2@2#2"},
		{4, 6, 0, groupview.StateUnowned, "asks the other members"},
	} {
		q := orders[i]
		if q.Committed != want.committed || q.Max != 10 || q.Lag != want.lag || q.InFlight != want.inFlight || q.State != want.state || !strings.Contains(q.Why, want.why) {
			t.Errorf("queue %d = %+v, want %+v", i, q, want)
		}
		if hold := map[int]string{1: "plugin_down"}[i]; q.Hold != hold {
			t.Errorf("queue %d is held for %q, want %q", i, q.Hold, hold)
		}
		if (q.Lag > 0) != (q.OldestAge > 0) || q.OldestAge > time.Minute {
			t.Errorf("queue %d: lag %d with oldest age %v", i, q.Lag, q.OldestAge)
		}
	}
	if g.Lag != 19 {
		t.Errorf("lag = %d, want 19", g.Lag)
	}
	checkText(t, g)
}

func checkText(t *testing.T, g *groupview.Group) {
	t.Helper()
	var out bytes.Buffer
	if err := g.Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"acme ready (pid 42), late failed\n", "a || b", "streamd v1", "both say they own it", "clustering"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, out.String())
		}
	}
	js, err := json.Marshal(g)
	if err != nil || !bytes.Contains(js, []byte(`"pid":42`)) {
		t.Errorf("JSON = %s, %v", js, err)
	}
}

func TestSilentMemberMakesOwnersUnknown(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 1)
	member(t, b, "quiet@1#1", nil)
	g, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Members) != 1 || g.Members[0].Silent == "" {
		t.Errorf("members = %+v", g.Members)
	}
	for _, q := range g.Queues {
		if q.State != groupview.StateUnknown {
			t.Errorf("queue %+v: don't know was taken for nobody", q)
		}
	}
	if len(g.Notes) == 0 {
		t.Error("no note says that a member is silent")
	}
}

func TestOfflineGroup(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 1)
	b.PutGroup(b.NewGroup("billing"))
	b.Commit("billing", "Orders", 0, 0)
	g, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", []string{"Orders"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Members) != 0 || len(g.Queues) == 0 || g.Queues[len(g.Queues)-1].State != groupview.StateUnowned {
		t.Errorf("group = %+v", g)
	}
}

// Without the right on the group no broker tells anything: that is the error, and no group without members.
func TestRead_refused(t *testing.T) {
	b := brokertest.StartGuarded(t, func(_ netip.Addr, cmd *wire.Command) (string, bool) {
		return "User:app has no permission to access Group:billing from 127.0.0.1, no matched policies.",
			cmd.RequestCode() != wire.ReqGetConsumerConnections && cmd.RequestCode() != wire.ReqGetConsumeStats
	})
	b.CreateTopic("Orders", 2)
	_, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", []string{"Orders"})
	if r, refused := rocketmq.AccessRefused(err); !refused || r.Resource != "Group:billing" {
		t.Errorf("Read = %v", err)
	}
}

// Without the right to read messages only their ages are unknown: one note says what grants it, not one for each queue.
func TestRead_agesRefused(t *testing.T) {
	b := brokertest.StartGuarded(t, func(_ netip.Addr, cmd *wire.Command) (string, bool) {
		return "User:app has no permission to access Group:TOOLS_CONSUMER from 127.0.0.1, no matched policies.", cmd.RequestCode() != wire.ReqPullMessage
	})
	b.CreateTopic("Orders", 2)
	b.PutGroup(b.NewGroup("billing"))
	for q := range int32(2) {
		b.Commit("billing", "Orders", q, 0)
		if err := b.Put(broker.Message{Topic: "Orders", Queue: q, Body: []byte("1")}, broker.Message{Topic: "Orders", Queue: q, Body: []byte("2")}); err != nil {
			t.Fatal(err)
		}
	}
	g, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", []string{"Orders"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Notes) != 1 || !strings.Contains(g.Notes[0], "-r Group:TOOLS_CONSUMER -a Sub -d Allow") || g.Lag != 4 {
		t.Errorf("lag %d, notes %q", g.Lag, g.Notes)
	}
	for _, q := range g.Queues {
		if q.Topic == "Orders" && q.OldestAge != groupview.Unknown {
			t.Errorf("queue %+v has an age", q)
		}
	}
}

func TestUnknownGroup(t *testing.T) {
	b := brokertest.Start(t)
	_, err := groupview.Read(t.Context(), brokertest.Client(t, b, "tool"), "nobody", nil)
	if !errors.Is(err, groupview.ErrUnknownGroup) {
		t.Errorf("Read = %v, want ErrUnknownGroup", err)
	}
}

func TestNoServer(t *testing.T) {
	b := brokertest.Start(t)
	c := brokertest.Client(t, b, "tool")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := groupview.Read(ctx, c, "billing", nil); err == nil || errors.Is(err, groupview.ErrUnknownGroup) {
		t.Errorf("Read = %v: an unreachable name server is no unknown group", err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
}
