package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// T15: a commit that was under way when a reset came, and arrives after it, does not undo it: the reset's own commit follows.
func TestLateCommitDoesNotUndoAReset(t *testing.T) {
	for name, reset := range map[string]func(r *rig, q sdk.Queue){
		"by 21": func(r *rig, q sdk.Queue) { r.cluster.Reset(group, q, 3) },
		"by 220": func(r *rig, q sdk.Queue) {
			r.cluster.Spec(group, "c1").OnReset(topicName, map[sdk.Queue]int64{q: 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				var slow atomic.Bool
				r := newRig(t, 1, ack)
				r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
					if op == "Commit" && q.Topic == topicName && slow.CompareAndSwap(true, false) {
						nap(4 * time.Second) // it reaches the broker long after the reset
					}
					return nil
				}
				q := clustertest.Queue(topicName, 0)
				r.cluster.Fill(q, 20)
				e := r.start(r.config("c1"))
				wait(3 * time.Second)
				slow.Store(true)
				r.cluster.Fill(q, 5)
				wait(200 * time.Millisecond)
				reset(r, q)
				wait(20 * time.Second)
				r.committedAll(1)
				if n := len(r.handler.Handled()); n != 25+22 {
					t.Errorf("%d deliveries, want 25 and the 22 from offset 3 again", n)
				}
				if c := e.Status().Streams[0].Counters.Queues; c.Resets != 1 {
					t.Errorf("%d resets", c.Resets)
				}
				r.stop(e)
			})
		})
	}
}

// A member that is killed between the delivery of a reset and its first commit: whoever takes the queue begins at the reset.
func TestResetSurvivesTheMember(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var dead atomic.Bool
		r := newRig(t, 1, ack)
		r.cluster.Fault = func(op, client string, _ sdk.Queue) error {
			if client == "c1" && dead.Load() && op != "Pull" {
				return errors.New("the member is gone")
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 20)
		one := r.start(r.config("c1"))
		wait(3 * time.Second)
		dead.Store(true) // it still meets the reset, and can commit nothing more
		r.cluster.Reset(group, q, 3)
		r.cluster.Fill(q, 5)
		wait(5 * time.Second)
		r.cluster.Kill("c1")
		stopNow(t, one)
		two := r.start(r.config("c2"))
		wait(5 * time.Second)
		r.committedAll(1)
		counts := map[uint64]int{}
		for _, d := range r.handler.Handled() {
			counts[d.Offset]++
		}
		if counts[2] != 1 || counts[3] < 2 || counts[24] < 1 {
			t.Errorf("offset 2 was delivered %d times, 3 %d times, 24 %d times", counts[2], counts[3], counts[24])
		}
		r.stop(two)
	})
}

// A reset that the broker carries while the queue changes its owner is where the new one begins; the old one's last commit,
// which the broker takes with SUCCESS and ignores, is not waited for.
func TestResetAtAHandOver(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(2 * time.Second)
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		one := r.start(r.config("c1"))
		wait(5 * time.Second)
		r.cluster.Fill(q, 10)
		wait(time.Second) // they are at the handler
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			r.stop(one)
		}()
		wait(100 * time.Millisecond)
		r.cluster.Reset(group, q, 15)
		<-stopped
		two := r.start(r.config("c2"))
		wait(10 * time.Second)
		r.committedAll(1)
		if n := len(r.handler.Handled()); n != 20+5 {
			t.Errorf("%d deliveries, want 20 and the 5 from offset 15 again", n)
		}
		r.stop(two)
	})
}

// The same over the real protocol, on a broker that carries resets and on one that pushes them.
func TestResetOverTheRealProtocol(t *testing.T) {
	for _, to := range []int64{5, 35} {
		bubbletest.Run(t, func(t *testing.T) {
			f := newFleet(t, broker.Config{}, func(context.Context, clustertest.Record) clustertest.Answer {
				nap(50 * time.Millisecond)
				return clustertest.Answer{}
			})
			defer f.close()
			f.b.DeleteTopic(topicName)
			f.put(f.a, 1, 40)
			e, stop := f.member("10.0.0.3@1#1", func(s *runtime.StreamConfig) {
				s.Concurrency, s.Batch.Max, s.Window.Messages = 1, 1, 2
				s.Pull.Messages = 1
			})
			wait(500 * time.Millisecond)
			f.a.Reset(group, topicName, 0, to)
			wait(30 * time.Second)
			f.committed(f.a, topicName, 1)
			first, last := 0, 0
			for _, r := range f.handler.Handled() {
				switch r.Offset {
				case 6:
					first++
				case 39:
					last++
				}
			}
			want := map[int64][2]int{5: {2, 1}, 35: {1, 1}}[to]
			if got := [2]int{first, last}; got != want || e.Status().Streams[0].Counters.Queues.Resets != 1 {
				t.Errorf("reset to %d: offsets 6 and 39 came %v times, want %v; %d resets", to, got, want, e.Status().Streams[0].Counters.Queues.Resets)
			}
			stop()
		})
	}
}
