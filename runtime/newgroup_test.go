package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// Two members that join a new group at once both start at its start position: the first commits of one must not make the
// queues of the other look like queues whose offsets were lost.
func TestTwoMembersStartANewGroupAtOnce(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		for i := range 4 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 20)
			r.cluster.Expire(clustertest.Queue(topicName, i), int64(i%2)*5)
		}
		r.cluster.Fault = func(op, client string, q sdk.Queue) error {
			switch {
			case op == "Members" && client == "c1":
				nap(time.Second) // until both are there
			case op == "Committed" && client == "c2" && q.Topic == topicName:
				nap(2 * time.Second) // c1 has committed meanwhile
			}
			return nil
		}
		last := func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }
		one, two := r.start(r.config("c1", last)), r.start(r.config("c2", last))
		wait(15 * time.Second)
		for _, e := range []*runtime.Runtime{one, two} {
			if holds(e.Status(), runtime.HoldOffsetsLost) {
				t.Errorf("held: %+v", e.Status().Streams[0].Queues)
			}
		}
		if n := len(r.handler.Handled()); n != 0 {
			t.Errorf("%d delivered of what was there before the group", n)
		}
		r.committedAll(4)
		r.stop(one)
		r.stop(two)
	})
}

// A group counts as new for its first minutes only: an offset that is lost later is lost.
func TestOffsetLostLongAfterTheStartIsHeld(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		for i := range 2 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 20)
		}
		lost := clustertest.Queue(topicName, 1)
		r.cluster.Fault = func(op, client string, _ sdk.Queue) error {
			if op == "Leave" && client == "c2" { // after its last commit, before anybody takes its queue
				r.cluster.Forget(group, lost)
				r.cluster.Expire(lost, 5)
			}
			return nil
		}
		last := func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }
		one := r.start(r.config("c1", last))
		wait(time.Hour)
		two := r.start(r.config("c2", last)) // takes it
		wait(3 * time.Second)
		r.stop(two)
		wait(10 * time.Second)
		if !holds(one.Status(), runtime.HoldOffsetsLost) {
			t.Errorf("not held: %+v", one.Status().Streams[0].Queues)
		}
		r.stop(one)
	})
}

// An overlap of two owners is named and counted, also when nobody waited for it.
func TestTwoOwnersAreCounted(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
			defer cancel()
			<-ctx.Done()
			return clustertest.Answer{}
		})
		for i := range 2 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 1)
		}
		var silent atomic.Bool
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "PeerInfo" && silent.Load() {
				return errors.New("no answer")
			}
			return nil
		}
		one := r.start(r.config("c1"))
		wait(2 * time.Second)
		silent.Store(true)
		two := r.start(r.config("c2")) // takes a queue whose message is still at work at c1
		wait(3 * time.Second)
		silent.Store(false)
		wait(25 * time.Second)
		if n := one.Status().Streams[0].Counters.Group.Overlaps + two.Status().Streams[0].Counters.Group.Overlaps; n == 0 {
			t.Error("two members had one queue, and nobody counted it")
		}
		wait(2 * time.Minute)
		r.committedAll(2)
		r.stop(one)
		r.stop(two)
	})
}
