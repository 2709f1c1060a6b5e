package rocketmq

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Name servers do not know each other, and one may lag. A client stays with the one that answers, so that its view changes
// when that one's does, and not with each question.
func TestNameServersThatDisagree(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, first, _ := one(t)
		grown := routeTo("a")
		grown.Queues[0].ReadQueues = 8
		first.serveRoutes(map[string]*wire.TopicRoute{"T": grown})
		lagging := n.add("ns:2")
		lagging.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
		c := n.start(t, func(cfg *Config) { cfg.NameServers = []string{"ns:1", "ns:2"} })
		var changes atomic.Int32
		queues := func(when string, want int, changed int32) {
			t.Helper()
			if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != want || changes.Load() != changed {
				t.Errorf("%s: %d queues, %v, %d changes; want %d and %d", when, len(qs), err, changes.Load(), want, changed)
			}
		}
		queues("at first", 8, 0)
		defer c.RouteChanged("T", func() { changes.Add(1) })()
		wait(5 * time.Minute)
		queues("minutes later", 8, 0)
		first.kill()
		wait(time.Minute)
		queues("without the first", 4, 1)
		first.set(up)
		wait(5 * time.Minute)
		queues("with the first again", 4, 1)
		lagging.serveRoutes(map[string]*wire.TopicRoute{"T": grown})
		wait(time.Minute)
		queues("when the other knows it, too", 8, 2)
	})
}
