package rocketmq

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// several are brokers a, b, c ... of topic T.
func several(t *testing.T, names ...string) (n *network, brokers map[string]*server) {
	t.Helper()
	n = newNetwork(t)
	ns := n.add("ns:1")
	brokers = map[string]*server{}
	route := &wire.TopicRoute{}
	for _, name := range names {
		brokers[name] = n.add(name + ":1")
		one := routeTo(name)
		route.Brokers, route.Queues = append(route.Brokers, one.Brokers...), append(route.Queues, one.Queues...)
	}
	ns.serveRoutes(map[string]*wire.TopicRoute{"T": route})
	return n, brokers
}

// A broker that is silent with a heartbeat keeps nobody from learning that a group is left, and no other broker's heartbeat from
// being sent.
func TestSilentBrokerDoesNotHoldALeave(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, brokers := several(t, "a", "b")
		c := n.start(t, nil)
		join(t, c, spec("G"))
		join(t, c, spec("H"))
		brokers["b"].set(silent)
		beating := make(chan struct{})
		go func() {
			defer close(beating)
			_ = c.Heartbeat(t.Context()) // b does not answer it
		}()
		wait(100 * time.Millisecond)
		left := make(chan error, 1)
		go func() { left <- c.Leave(t.Context(), "G") }()
		wait(100 * time.Millisecond)
		if got := len(brokers["a"].requests(wire.ReqUnregisterClient)); got != 1 {
			t.Errorf("100 ms later the broker that answers was told of the leave %d times, want once", got)
		}
		before := len(heartbeats(t, brokers["a"]))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = c.Heartbeat(ctx)
		if got := len(heartbeats(t, brokers["a"])) - before; got != 1 {
			t.Errorf("%d heartbeats reach the broker that answers while the other one is silent, want 1", got)
		}
		<-beating
		if err := <-left; err == nil {
			t.Error("the leave does not tell that a broker was not told")
		}
		for _, data := range heartbeats(t, brokers["a"])[before:] {
			if len(data.ConsumerDataSet) != 1 {
				t.Errorf("a heartbeat after the leave names %d groups, want 1", len(data.ConsumerDataSet))
			}
		}
		brokers["b"].set(up)
	})
}

// Of many brokers that are silent with a heartbeat none keeps another from its own.
func TestManySilentBrokersHoldNoHeartbeat(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprintf("b%02d", i))
		}
		n, brokers := several(t, append(names, "last")...)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		for _, name := range names {
			brokers[name].set(silent)
		}
		before := len(heartbeats(t, brokers["last"]))
		beating := make(chan struct{})
		go func() {
			defer close(beating)
			_ = c.Heartbeat(t.Context())
		}()
		wait(100 * time.Millisecond)
		if got := len(heartbeats(t, brokers["last"])) - before; got != 1 {
			t.Errorf("%d heartbeats at once to the broker that answers, want 1", got)
		}
		<-beating
		for _, name := range names {
			brokers[name].set(up)
		}
	})
}

// Brokers are asked side by side for what a group subscribes to: silent ones do not use up the time of the one that knows it.
func TestRegisteredIsToldInSpiteOfSilentBrokers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, brokers := several(t, "a", "b", "z")
		brokers["z"].on(wire.ReqGetConsumerConnections, func(req *wire.Command) *wire.Command {
			resp := wire.NewResponse(req, wire.RespSuccess, "")
			resp.Body = []byte(`{"connectionSet":[],"subscriptionTable":{"T":{"topic":"T","subString":"paid","subVersion":7,"expressionType":"TAG"}}}`)
			return resp
		})
		c := n.start(t, nil)
		join(t, c, spec("Other"))
		brokers["a"].set(silent)
		brokers["b"].set(silent)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		subs, err := c.Registered(ctx, "G", []string{"T"})
		if err != nil || len(subs) != 1 || subs[0].Expression != "paid" {
			t.Errorf("registered: %+v, %v", subs, err)
		}
		brokers["a"].set(up)
		brokers["b"].set(up)
	})
}
