package rocketmq

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestBackoff(t *testing.T) {
	low, high := 100*time.Millisecond, 30*time.Second
	for _, tt := range []struct {
		failures int
		full     time.Duration
	}{{0, 0}, {1, low}, {2, 2 * low}, {5, 16 * low}, {9, 256 * low}, {10, high}, {40, high}, {1 << 30, high}} {
		least := backoff(tt.failures, low, high, func() float64 { return 0.9999999 })
		most := backoff(tt.failures, low, high, func() float64 { return 0 })
		if most != tt.full || least < tt.full/2 || least > tt.full/2+time.Millisecond*10 {
			t.Errorf("after %d failures %s to %s, want %s to %s", tt.failures, least, most, tt.full/2, tt.full)
		}
	}
}

func TestBrokerAbsentThenBack(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.set(absent)
		broker.on(wire.ReqGetMaxOffset, answerWith(&wire.OffsetResponse{Offset: 5}))
		c := n.start(t, nil)
		_, err := c.MaxOffset(t.Context(), queue("a", 0))
		if !errors.Is(err, ErrNoBroker) && !errors.Is(err, errRefused) || !IsRetriable(err) || IsUnknownOutcome(err) {
			t.Errorf("without the broker: %v", err)
		}
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		got := make(chan error, 1)
		go func() {
			r := pullOf(0, 5*time.Minute) // waits for the connection as long as it may
			p, err := c.Pull(ctx, r)
			if err == nil {
				p.Release()
			}
			got <- err
		}()
		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		wait(2 * time.Minute)
		if dials := n.dialed("a:1"); dials < 5 || dials > 70 {
			t.Errorf("%d attempts in two minutes: no backoff, or none at all", dials)
		}
		broker.set(up)
		if err := <-got; err != nil {
			t.Fatalf("after the broker came: %v", err)
		}
		if took := time.Since(start); took > 2*time.Minute+3*time.Second {
			t.Errorf("connected %s after the start", took)
		}
	})
}

// Who gives up before the client does learns what has kept it from asking, not only that the time is up.
func TestShortPatienceTellsTheReason(t *testing.T) {
	for state, want := range map[mode]error{absent: errRefused, silent: context.DeadlineExceeded} {
		bubbletest.Run(t, func(t *testing.T) {
			n, ns, _ := one(t)
			ns.set(state)
			c := n.start(t, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Queues(ctx, "T")
			if !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("mode %d: %v", state, err)
			}
			if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrNoNameServer) {
				t.Errorf("mode %d, with time: %v", state, err)
			}
		})
	}
}

func TestKilledMidRequestHasAnUnknownOutcome(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqUpdateConsumerOffset, func(*wire.Command) *wire.Command {
			broker.kill()
			return nil
		})
		_, err := c.Commit(t.Context(), "G", queue("a", 0), 5)
		if !errors.Is(err, remoting.ErrPeerClose) || !IsUnknownOutcome(err) || !IsRetriable(err) || !IsRouteStale(err) {
			t.Errorf("got %v", err)
		}
		broker.set(up)
		broker.on(wire.ReqUpdateConsumerOffset, nil)
		if _, err := c.Commit(t.Context(), "G", queue("a", 0), 5); err != nil {
			t.Errorf("after the restart: %v", err)
		}
	})
}

func TestBrokerThatAcceptsAndClosesIsNotHammered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqGetMaxOffset, func(*wire.Command) *wire.Command {
			for _, nc := range broker.connections() {
				_ = nc.Close()
			}
			return nil
		})
		end := time.Now().Add(time.Minute)
		for time.Now().Before(end) {
			if _, err := c.MaxOffset(t.Context(), queue("a", 0)); !IsRetriable(err) {
				t.Fatal(err)
			}
		}
		if dials := n.dialed("a:1"); dials > 40 {
			t.Errorf("%d connections in a minute", dials)
		}
	})
}

func TestBrokerThatTakesConnectionsButSaysNothingIsNotConnected(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.set(silent)
		c := n.start(t, nil)
		_, err := c.MaxOffset(t.Context(), queue("a", 0))
		var unreachable *UnreachableError
		if !errors.As(err, &unreachable) || unreachable.Addr != "a:1" || len(broker.requests(wire.ReqGetMaxOffset)) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestBrokerReturnsWithAnotherAddress(t *testing.T) { // PO-P05
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, old := one(t)
		c := n.start(t, nil)
		old.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		r, err := c.Pull(t.Context(), pullOf(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		old.kill()
		old.set(lost) // black-holed, not refused
		moved := n.add("a:2")
		moved.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		start := time.Now()
		results := make(chan error, 50)
		for range 50 {
			go func() {
				for {
					r, err := c.Pull(t.Context(), pullOf(0, 15*time.Second))
					if err == nil {
						r.Release()
						results <- nil
						return
					}
					if !IsRetriable(err) {
						results <- err
						return
					}
					wait(100 * time.Millisecond)
				}
			}()
		}
		wait(5 * time.Second)
		data := routeTo("a")
		data.Brokers[0].Addrs[0] = "a:2"
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		for range 50 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > 45*time.Second {
			t.Errorf("reading resumed after %s", took)
		}
		if c.brokers.known("a:1") != nil {
			t.Error("the dead address is still kept")
		}
	})
}

func TestGoAwayReconnectsAndAsksAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		times := 0
		broker.on(wire.ReqGetMaxOffset, func(req *wire.Command) *wire.Command {
			if times++; times == 1 {
				return wire.NewResponse(req, wire.RespGoAway, "shutting down")
			}
			return answerWith(&wire.OffsetResponse{Offset: 5})(req)
		})
		if got, err := c.MaxOffset(t.Context(), queue("a", 0)); err != nil || got != 5 {
			t.Errorf("got %d, %v", got, err)
		}
		if dials := n.dialed("a:1"); dials != 2 {
			t.Errorf("%d connections, want a second one", dials)
		}
		broker.on(wire.ReqGetMaxOffset, refuse(wire.RespGoAway, "still"))
		var resp *ResponseError
		if _, err := c.MaxOffset(t.Context(), queue("a", 0)); !errors.As(err, &resp) || resp.Code != wire.RespGoAway || !IsRetriable(err) {
			t.Errorf("a broker that goes away for ever: %v", err)
		}
	})
}

func TestConnectionsAreShared(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqGetMinOffset, answerWith(&wire.OffsetResponse{Offset: 5}))
		c := n.start(t, nil)
		done := make(chan error, 100)
		for range 100 {
			go func() {
				_, err := c.MinOffset(t.Context(), queue("a", 0))
				done <- err
			}()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if a, ns := n.dialed("a:1"), n.dialed("ns:1"); a != 1 || ns != 1 {
			t.Errorf("%d connections to the broker, %d to the name server", a, ns)
		}
	})
}

func TestTwoClustersInOneProcess(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		for _, offset := range []int64{3, 4} { // both alive until the test's end
			n, _, broker := one(t)
			broker.on(wire.ReqGetMinOffset, answerWith(&wire.OffsetResponse{Offset: offset}))
			c := n.start(t, nil)
			join(t, c, spec("G"))
			if got, err := c.MinOffset(t.Context(), queue("a", 0)); err != nil || got != offset {
				t.Errorf("got %d, %v, want %d", got, err, offset)
			}
		}
	})
}

func TestNewDoesNoIO(t *testing.T) {
	n := newNetwork(t)
	c, err := New(Config{NameServers: []string{"ns:1"}, Dial: n.dial, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before the start: %v", err)
	}
	if len(n.dials) != 0 {
		t.Errorf("dialed %v", n.dials)
	}
	if c.ClientID() == "" {
		t.Error("no client id")
	}
	shut(t, c)
	for _, bad := range []Config{{}, {Logger: slog.New(slog.DiscardHandler)}, {NameServers: []string{"a:1"}}, {NameServers: []string{"a"}, Logger: slog.New(slog.DiscardHandler)}} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestClientIDsDiffer(t *testing.T) {
	a, errA := NewClientID()
	b, errB := NewClientID()
	if errA != nil || errB != nil || a == b {
		t.Errorf("%q, %q, %v, %v", a, b, errA, errB)
	}
}

func TestBrokerThatRegistersAgainIsTriedAtOnce(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.kill()
		ns.serveRoutes(nil) // a name server drops a broker whose connection ends
		wait(100 * time.Second)
		before := n.dialed("a:1")
		broker.set(up)
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
		wait(3 * time.Second)
		if n.dialed("a:1") != before+1 || len(broker.connections()) != 1 {
			t.Errorf("%d attempts since the broker registered again, %d connections", n.dialed("a:1")-before, len(broker.connections()))
		}
	})
}

func TestRefusedConnectionsAreTriedMoreOften(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.kill()
		broker.set(refusing)
		wait(2 * time.Minute)
		broker.set(up)
		start := time.Now()
		before := len(heartbeats(t, broker))
		for len(heartbeats(t, broker)) == before {
			wait(10 * time.Millisecond)
		}
		if took := time.Since(start); took > refusedLimit+100*time.Millisecond {
			t.Errorf("a restarted broker was found after %s", took)
		}
		if dials := n.dialed("a:1"); dials > 130 {
			t.Errorf("%d attempts in two minutes", dials)
		}
	})
}
