package rocketmq

import (
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Java's SelectMessageQueueByHash over the queues of three brokers, which Java's clients list by name and then by id: the
// absolute remainder of String.hashCode, of UTF-16 units.
func TestShardingKeysChooseAsJavaOverSeveralBrokers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		servers := []*server{a, n.add("b:1"), n.add("c:1")}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("c", "a", "b")}) // four queues each, in the order of no one
		for _, s := range servers {
			s.on(wire.ReqSendMessageV2, stores)
			s.on(wire.ReqSendBatchMessage, stores)
		}
		c := n.start(t, nil)
		for key, index := range map[string]int32{
			"customer-7": 8, "polygenelubricants": 8 /* its hash is the smallest integer */, "Zürich 東京": 3, "A-1042": 9, "order-99": 3,
		} {
			want := queue([]string{"a", "b", "c"}[index/4], index%4)
			m := out("x")
			m.ShardingKey = key
			if r, err := c.Send(t.Context(), m); err != nil || r.Queue != want {
				t.Errorf("%q goes to %s, Java's to %s (%v)", key, r.Queue, want, err)
			}
			rs, err := c.SendBatch(t.Context(), "T", []*OutgoingMessage{m, m})
			if err != nil || rs[0].Queue != want || rs[1].Queue != want {
				t.Errorf("a batch of %q goes to %v, Java's to %s (%v)", key, rs, want, err)
			}
		}
	})
}
