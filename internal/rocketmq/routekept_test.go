package rocketmq

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A route that is only kept, because name servers deny its topic, is asked for every two seconds. Its old word on a broker's
// address does not count against a newer one of another topic.
func TestKeptRouteDoesNotOutdateANewerOne(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		moved := n.add("a:2")
		moved.on(wire.ReqGetMaxOffset, answerWith(&wire.OffsetResponse{Offset: 7}))
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a"), "Deleted": routeTo("a")})
		c := n.start(t, nil)
		for _, topic := range []string{"T", "Deleted"} {
			if _, err := c.Queues(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
		}
		at2 := func() *wire.TopicRoute {
			data := routeTo("a")
			data.Brokers[0].Addrs[0] = "a:2"
			return data
		}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": at2(), "New": at2()})
		wait(37 * time.Second) // T is asked for every 30 s, Deleted since then every 2 s
		if _, err := c.Queues(t.Context(), "New"); err != nil {
			t.Fatal(err)
		}
		wait(5 * time.Second)
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": at2(), "New": at2(), "Newer": routeTo("b")})
		if _, err := c.Queues(t.Context(), "Newer"); err != nil { // one more sum of all routes
			t.Fatal(err)
		}
		if got := c.routes.broker("a"); len(got) != 1 || got[0].Addr != "a:2" {
			t.Errorf("broker a is looked for at %+v, want a:2", got)
		}
		if got, err := c.MaxOffset(t.Context(), queue("a", 0)); err != nil || got != 7 {
			t.Errorf("the moved broker says %d, %v", got, err)
		}
	})
}

// An error that is seen while a route is being fetched has it fetched once more: what comes may be older than the error.
func TestRouteThatGetsStaleWhileItIsFetchedIsFetchedAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var fetches atomic.Int32
		r := newRoutes(30*time.Second, slog.New(slog.DiscardHandler), &wg)
		r.ctx, r.onBrokers, r.onBack = ctx, func(map[string]bool) {}, func(*route) {}
		r.fetch = func(context.Context, string) (*route, error) {
			fetches.Add(1)
			wait(3 * time.Second)
			return newRoute("T", routeTo("a")), nil
		}
		wg.Go(r.refreshLoop)
		wg.Go(func() { r.renew(ctx, "T") })
		wait(time.Second)
		r.expedite("T")
		wait(9 * time.Second)
		if n := fetches.Load(); n != 2 {
			t.Errorf("%d fetches, want a second one for the error during the first", n)
		}
		cancel()
		wg.Wait()
	})
}

// Name servers that go and come between denials have not denied a topic for minutes: each may just have been started.
func TestDenialsWithABreakBetweenThemDoNotAddUp(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		c := n.start(t, nil)
		known := func(when string) {
			t.Helper()
			if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 {
				t.Errorf("%s: %v, %v", when, qs, err)
			}
		}
		known("at first")
		ns.serveRoutes(nil) // restarted, and gone again before the brokers registered
		wait(40 * time.Second)
		known("denied")
		ns.kill()
		wait(5 * time.Minute)
		known("without name servers")
		ns.set(up)
		wait(time.Minute)
		known("denied anew")
		wait(2 * time.Minute)
		if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrTopicNotFound) {
			t.Errorf("denied for three minutes: %v", err)
		}
	})
}
