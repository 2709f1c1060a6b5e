package rocketmq

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

func queue(broker string, id int32) sdk.Queue { return sdk.Queue{Topic: "T", Broker: broker, ID: id} }

func TestNewRoute(t *testing.T) {
	data := &wire.TopicRoute{
		Brokers: []wire.BrokerData{
			{Name: "b", Addrs: wire.IDTable[string]{0: "b:1", 1: "b:2"}},
			{Name: "a", Addrs: wire.IDTable[string]{1: "a:2"}}, // its master is gone
			{Name: "empty"},
		},
		Queues: []wire.QueueData{
			{BrokerName: "b", Perm: 6, ReadQueues: 2, WriteQueues: 1},
			{BrokerName: "a", Perm: 6, ReadQueues: 1, WriteQueues: 1},
			{BrokerName: "c", Perm: 2, ReadQueues: 1, WriteQueues: 1},
			{BrokerName: "d", Perm: 0, ReadQueues: -5, WriteQueues: -5},
		},
	}
	r := newRoute("T", data)
	if want := []sdk.Queue{queue("a", 0), queue("b", 0), queue("b", 1)}; !slices.Equal(r.readable, want) {
		t.Errorf("readable %v, want %v", r.readable, want)
	}
	if want := []sdk.Queue{queue("b", 0)}; !slices.Equal(r.writable, want) {
		t.Errorf("writable %v, want %v", r.writable, want)
	}
	data.OrderTopicConf = "b:2;a:1;broken;x:y"
	r = newRoute("T", data)
	if want := []sdk.Queue{queue("a", 0), queue("b", 0), queue("b", 1)}; !slices.Equal(r.readable, want) {
		t.Errorf("readable of an order topic %v, want %v", r.readable, want)
	}
	if want := []sdk.Queue{queue("b", 0), queue("b", 1)}; !slices.Equal(r.writable, want) {
		t.Errorf("writable of an order topic %v, want %v", r.writable, want)
	}
}

func TestRouteOfAHostileNameServerIsBounded(t *testing.T) {
	r := newRoute("T", &wire.TopicRoute{Queues: []wire.QueueData{{BrokerName: "a", Perm: 4, ReadQueues: 1<<31 - 1}}})
	if len(r.readable) > maxQueues {
		t.Errorf("%d queues", len(r.readable))
	}
}

func TestUnknownTopicIsNotUnknownRoute(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "Nope"); !errors.Is(err, ErrTopicNotFound) {
			t.Errorf("a topic that the name server denies: %v", err)
		}
		ns.kill()
		if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrNoNameServer) || errors.Is(err, ErrTopicNotFound) {
			t.Errorf("a topic that nobody can be asked about: %v", err)
		}
	})
}

func TestNameServersStandInForEachOther(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		other := n.add("ns:2")
		other.serveRoutes(nil) // was just started: knows nothing yet
		n.add("ns:3").set(lost)
		c := n.start(t, func(cfg *Config) { cfg.NameServers = []string{"ns:3", "ns:2", "ns:1"} })
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 {
			t.Fatalf("got %v, %v", qs, err)
		}
		if _, err := c.Queues(t.Context(), "Nope"); !errors.Is(err, ErrTopicNotFound) {
			t.Errorf("denied by all who answer: %v", err)
		}
		if got := c.ns.current.Load(); got != 2 {
			t.Errorf("the last good name server is number %d, want 2 (ns:1)", got)
		}
		before := len(ns.requests(wire.ReqGetRoute))
		wait(31 * time.Second)
		if after := len(ns.requests(wire.ReqGetRoute)); after <= before {
			t.Error("the last good name server was not asked first")
		}
		if asked := len(other.requests(wire.ReqGetRoute)); asked != 2 {
			t.Errorf("the one that knows nothing was asked %d times, want 2", asked)
		}
	})
}

func TestRouteChangesAreNoticed(t *testing.T) { // RB-P03
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		changes := make(chan time.Time, 10)
		stop := c.RouteChanged("T", func() { changes <- time.Now() })
		wait(61 * time.Second)
		if len(changes) != 0 {
			t.Error("a change was reported though nothing changed")
		}
		grown := routeTo("a", "b")
		grown.Queues[0].ReadQueues = 8
		start := time.Now()
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": grown})
		if took := (<-changes).Sub(start); took > 30*time.Second {
			t.Errorf("noticed after %s", took)
		}
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 12 {
			t.Errorf("queues %v, %v", qs, err)
		}
		stop()
		stop()
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
		wait(31 * time.Second)
		if len(changes) != 0 {
			t.Error("a change was reported after stop")
		}
	})
}

func TestTopicThatAppearsIsAChange(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		ns.serveRoutes(nil)
		c := n.start(t, nil)
		changed := make(chan struct{}, 1)
		defer c.RouteChanged("T", func() { changed <- struct{}{} })()
		if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrTopicNotFound) {
			t.Fatal(err)
		}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
		<-changed
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 {
			t.Errorf("%v, %v", qs, err)
		}
	})
}

func TestLastKnownRouteStays(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		ns.kill()
		wait(10 * time.Minute)
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 {
			t.Errorf("without name servers: %v, %v", qs, err)
		}
		if _, err := c.MaxOffset(t.Context(), queue("a", 0)); errors.Is(err, ErrNoBroker) || len(broker.requests(wire.ReqGetMaxOffset)) != 1 {
			t.Errorf("the broker was not asked: %v", err)
		}
		ns.serveRoutes(nil) // back, and knows nothing until the brokers register
		ns.set(up)
		wait(100 * time.Second)
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 {
			t.Errorf("just after name servers came back: %v, %v", qs, err)
		}
		wait(2 * time.Minute)
		if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrTopicNotFound) {
			t.Errorf("a topic denied for minutes: %v", err)
		}
	})
}

func TestStaleRouteIsRenewedAtOnce(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		broker.on(wire.ReqPullMessage, refuse(wire.RespInvalidParameter, "queueId[3] is illegal"))
		before := len(ns.requests(wire.ReqGetRoute))
		for range 100 { // a storm of errors is not a storm of queries
			if _, err := c.Pull(t.Context(), pullOf(3, 0)); !IsRouteStale(err) {
				t.Fatal(err)
			}
		}
		wait(2 * time.Second)
		if n := len(ns.requests(wire.ReqGetRoute)) - before; n < 1 || n > 3 {
			t.Errorf("%d route queries after stale errors, want 1 to 3", n)
		}
	})
}

func TestIPv6AddressesOfBrokersCanBeDialed(t *testing.T) {
	for in, want := range map[string]string{
		"2001:db8::5:12911": "[2001:db8::5]:12911", "[::1]:1": "[::1]:1", "10.0.0.1:10911": "10.0.0.1:10911", "broker:1": "broker:1", "": "",
	} {
		if got := dialable(in); got != want {
			t.Errorf("dialable(%q) = %q, want %q", in, got, want)
		}
	}
	r := newRoute("T", &wire.TopicRoute{Brokers: []wire.BrokerData{{Name: "a", Addrs: wire.IDTable[string]{0: "2001:db8::5:12911"}}}})
	if r.brokers["a"][0] != "[2001:db8::5]:12911" {
		t.Errorf("address %q", r.brokers["a"][0])
	}
}
