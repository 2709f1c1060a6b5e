package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// Messages wait behind one that is at a handler which is replaced: those of a strand reach the next handler in their order,
// though its lane has been open and idle for a while.
func TestWhatWaitsForAnOrderedHandlerKeepsItsOrder(t *testing.T) {
	for _, order := range []runtime.Order{runtime.OrderQueue, runtime.OrderKey} {
		t.Run(string(order), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				w := newWatch(t, byQueue)
				r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
					return w.around(rec, 1, func() clustertest.Answer {
						nap(100 * time.Millisecond)
						if rec.Offset == 0 {
							nap(3 * time.Second)
						}
						return clustertest.Answer{}
					})
				})
				config := func(version string) runtime.Config {
					return r.config("c1", ordered(order), func(s *runtime.StreamConfig) { s.HandlerVersion, s.Batch.Max = version, 1 })
				}
				e := r.start(config("v1"))
				wait(time.Second)
				r.putKeyed(clustertest.Queue(topicName, 0), 20, 1)
				wait(time.Second)
				apply(t, e, config("v2"))
				wait(10 * time.Second)
				r.committedAll(1)
				r.once(20)
				r.stop(e)
			})
		})
	}
}
