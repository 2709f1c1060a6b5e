package rocketmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A broker that moves while its old address swallows connections: who waited for that address is told that it left, not
// that somebody gave up. A send goes on at another broker, and everything else may be asked again.
func TestBrokerThatMovesWhileItIsConnectedToIsNoWishOfTheCaller(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, gone := one(t)
		n.add("b:1").on(wire.ReqSendMessageV2, stores)
		n.add("a:2")
		routes := routeTo("a", "b")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routes})
		gone.set(lost)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		const many = 50
		commits, sends := make(chan error, many), make(chan error, many)
		for range many {
			go func() {
				_, err := c.Commit(t.Context(), "G", queue("a", 0), 5)
				commits <- err
			}()
			go func() {
				_, err := c.Send(t.Context(), &OutgoingMessage{Topic: "T", Body: []byte("x")})
				sends <- err
			}()
		}
		wait(time.Second) // all wait for the old address
		moved := routeTo("a", "b")
		moved.Brokers[0].Addrs[0] = "a:2"
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": moved})
		c.routes.renew(t.Context(), "T")
		for range many {
			if err := <-commits; !IsRetriable(err) || errors.Is(err, context.Canceled) {
				t.Fatalf("a commit: %v", err)
			}
			if err := <-sends; err != nil {
				t.Fatalf("a send with another broker to go to: %v", err)
			}
		}
	})
}
