package runtime_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// T23, SH-P01 (consumer-semantics.md 1.8 D1.2): a stop pulls no more, lets what is in flight finish, has its offsets
// confirmed, gives back its locks, and only then leaves the group.
func TestStopGoesInOrder(t *testing.T) {
	for _, order := range []runtime.Order{runtime.OrderNone, runtime.OrderQueue} {
		t.Run(string(order), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				var mu sync.Mutex
				var events []string
				stopping := false
				note := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					if stopping {
						events = append(events, what)
					}
				}
				r := newRig(t, 2, func(context.Context, clustertest.Record) clustertest.Answer {
					nap(3 * time.Second)
					note("handled")
					return clustertest.Answer{}
				})
				r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
					if q.Topic == topicName || op == "Leave" || op == "UnlockQueues" {
						note(op)
					}
					return nil
				}
				e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Order = order }))
				wait(2 * time.Second)
				for i := range 2 {
					r.cluster.Fill(clustertest.Queue(topicName, i), 1)
				}
				wait(time.Second)
				mu.Lock()
				stopping = true
				mu.Unlock()
				r.stop(e)
				r.committedAll(2)
				mu.Lock()
				defer mu.Unlock()
				last := func(what string) int {
					for i, e := range slices.Backward(events) {
						if e == what {
							return i
						}
					}
					return -1
				}
				first := slices.Index(events, "Leave")
				if slices.Contains(events, "Pull") {
					t.Errorf("it pulled while it stopped: %v", events)
				}
				if last("handled") < 0 || last("Commit") < last("handled") || first < last("Commit") || first != len(events)-1 {
					t.Errorf("the order of the stop is %v", events)
				}
				if unlock := slices.Index(events, "UnlockQueues"); order != runtime.OrderNone && (unlock < 0 || last("UnlockQueues") > first || last("UnlockQueues") < last("Commit")) {
					t.Errorf("locks are given back at another time: %v", events)
				}
				if st := e.State(); st != runtime.StateStopped {
					t.Errorf("the engine is %s", st)
				}
			})
		})
	}
}

// SH-P05: what a stop could not wait for is named: group, queue, handler, message.
func TestStopNamesWhatItLeaves(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			<-ctx.Done()
			return clustertest.Answer{Never: true}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 3)
		e := r.start(r.config("c1"))
		wait(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := e.Stop(ctx)
		if err == nil {
			t.Fatal("a stop that left three messages is clean")
		}
		for _, want := range []string{"stream orders", "group G", q.String(), "3 messages", "handler h", "offset 0", r.cluster.Messages(topicName)[0].OffsetID()} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %q", err, want)
			}
		}
	})
}
