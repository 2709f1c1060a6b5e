package rocketmq

import (
	"context"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// An address that no route has, and that was asked once because it stored a message, is not dialed for ever.
func TestAddressOutsideTheRoutesIsNotKeptUp(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, _ := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.SendBack(ctx, &SendBackRequest{Group: "G", Queue: queue("gone", 0), StoreHost: "gone:1", OriginTopic: "T", MessageID: "x"})
		if !IsRetriable(err) {
			t.Errorf("sending back to a broker that is gone: %v", err)
		}
		before := n.dialed("gone:1")
		if before == 0 {
			t.Error("it was not tried at all")
		}
		wait(10 * time.Minute)
		if dials := n.dialed("gone:1") - before; dials > 2 {
			t.Errorf("%d more attempts in ten minutes, though nobody asks for it", dials)
		}
		n.add("gone:1")
		data := routeTo("a", "gone")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		wait(31 * time.Second)
		if len(n.servers["gone:1"].connections()) != 1 {
			t.Error("not connected although it is in the routes now")
		}
	})
}
