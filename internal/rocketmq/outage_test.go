package rocketmq

import (
	"net"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// However an outage looks, a broker that listens again is found within two seconds, and is not hammered meanwhile.
func TestOutagesEndSoonAndAreNotHammered(t *testing.T) {
	for name, fault := range map[string]struct {
		on    func(*server)
		limit time.Duration // to be found again
		most  int           // attempts in two minutes
	}{
		"refuses":             {func(s *server) { s.kill(); s.set(refusing) }, time.Second, 130},
		"is gone":             {func(s *server) { s.kill() }, 2 * time.Second, 70},
		"takes and drops":     {func(s *server) { s.kill(); s.set(up); s.on(wire.ReqHeartbeat, dropping(s)) }, 2 * time.Second, 70},
		"takes and is mute":   {func(s *server) { s.kill(); s.set(silent) }, 5 * time.Second, 40}, // the heartbeat's time, too
		"swallows what comes": {func(s *server) { s.kill(); s.set(lost) }, 5 * time.Second, 40},   // the time to connect, too
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				n, ns, broker := one(t)
				back := make(chan string, 100)
				s := spec("G")
				s.OnBrokerBack = func(name string) { back <- name }
				c := n.start(t, nil)
				join(t, c, s)
				fault.on(broker)
				before, asked := n.dialed("a:1"), len(ns.requests(wire.ReqGetRoute))
				wait(2 * time.Minute)
				if dials := n.dialed("a:1") - before; dials > fault.most || dials < 20 {
					t.Errorf("%d attempts in two minutes, want 20 to %d", dials, fault.most)
				}
				if routes := len(ns.requests(wire.ReqGetRoute)) - asked; routes > 130 { // two topics, each every 2 s and every 30 s
					t.Errorf("%d route queries in two minutes", routes)
				}
				for len(back) > 0 {
					<-back
				}
				broker.on(wire.ReqHeartbeat, nil)
				broker.set(up)
				start := time.Now()
				if got := <-back; got != "a" {
					t.Errorf("%q is back", got)
				}
				if took := time.Since(start); took > fault.limit+100*time.Millisecond {
					t.Errorf("found %s after it listens again", took)
				}
				if len(heartbeats(t, broker)) == 0 {
					t.Error("back without a heartbeat")
				}
			})
		})
	}
}

// dropping closes the connections of a server instead of answering.
func dropping(s *server) func(*wire.Command) *wire.Command {
	return func(*wire.Command) *wire.Command {
		for _, nc := range s.connections() {
			_ = nc.Close()
		}
		return nil
	}
}

// Clients that lost the same broker do not come back in step.
func TestReconnectsAreJittered(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errRefused}
	for _, tt := range []struct{ random, want float64 }{{0, 1}, {0.5, 0.75}, {1, 0.5}} {
		got := backoff(30, 100*time.Millisecond, backoffLimit(2*time.Second, refused), func() float64 { return tt.random })
		if want := time.Duration(tt.want * float64(2*time.Second)); got != want {
			t.Errorf("with %.1f: %s, want %s", tt.random, got, want)
		}
	}
}

// The first connection is no return: nobody waited for it.
func TestTheFirstConnectionIsNoReturn(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		back := make(chan string, 10)
		s := spec("G")
		s.OnBrokerBack = func(name string) { back <- name }
		c := n.start(t, nil)
		join(t, c, s)
		wait(time.Second)
		if len(back) != 0 {
			t.Errorf("%s came back though nobody had gone", <-back)
		}
		for _, nc := range broker.connections() {
			_ = nc.Close()
		}
		wait(time.Second)
		if len(back) != 1 || <-back != "a" {
			t.Errorf("after a lost connection %d brokers came back", len(back))
		}
	})
}

// A broker that left the routes for a while and returns, returns like any other.
func TestReturnIntoTheRoutesIsAReturn(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		back := make(chan string, 10)
		s := spec("G")
		s.OnBrokerBack = func(name string) { back <- name }
		c := n.start(t, nil)
		join(t, c, s)
		n.servers["b:1"].kill()
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
		wait(35 * time.Second)
		if c.brokers.known("b:1") != nil {
			t.Fatal("the broker that left is still kept")
		}
		n.servers["b:1"].set(up)
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		wait(35 * time.Second)
		if len(back) != 1 || <-back != "b" {
			t.Errorf("%d brokers came back, want b", len(back))
		}
	})
}

// A master that is replaced by its replica: reads go on at the replica meanwhile, and commits as soon as a route names the
// new master.
func TestMasterSwitch(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, master := one(t)
		replica := n.add("a:2")
		data := routeTo("a")
		data.Brokers[0].Addrs[1] = "a:2"
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		for _, s := range []*server{master, replica} {
			s.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		}
		c := n.start(t, nil)
		join(t, c, spec("G"))
		master.kill()
		data = routeTo("a")
		data.Brokers[0].Addrs = wire.IDTable[string]{1: "a:2"}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		wait(3 * time.Second)
		r, err := c.Pull(t.Context(), pullOf(0, 0))
		if err != nil || r.Broker.ID != 1 {
			t.Fatalf("reading without a master: %+v, %v", r, err)
		}
		r.Release()
		if _, err := c.Commit(t.Context(), "G", queue("a", 0), 5); !IsRetriable(err) {
			t.Errorf("committing without a master: %v", err)
		}
		data = routeTo("a")
		data.Brokers[0].Addrs = wire.IDTable[string]{0: "a:2"}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		wait(3 * time.Second)
		if _, err := c.Commit(t.Context(), "G", queue("a", 0), 5); err != nil || len(replica.requests(wire.ReqUpdateConsumerOffset)) != 1 {
			t.Errorf("committing at the new master: %v", err)
		}
		if c.brokers.known("a:1") != nil {
			t.Error("the old master is still kept")
		}
	})
}
