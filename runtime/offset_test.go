package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// OF-P04: "last" means last; the position is committed before the first pull, for whoever starts later.
func TestStartPositions(t *testing.T) {
	for name, want := range map[string]int{"last": 5, "first": 105, "timestamp": 55} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 2, ack)
				q := clustertest.Queue(topicName, 0)
				r.cluster.Fill(q, 50)
				nap(time.Second)
				at := time.Now()
				r.cluster.Fill(q, 50)
				from := map[string]runtime.StartFrom{"last": {}, "first": {First: true}, "timestamp": {At: at}}[name]
				e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.StartFrom = from }))
				wait(2 * time.Second)
				r.cluster.Fill(q, 5)
				wait(2 * time.Second)
				if got := len(r.handler.Handled()); got != want {
					t.Errorf("%d delivered, want %d", got, want)
				}
				r.committedAll(2)
				r.stop(e)
			})
		})
	}
}

// What a crash repeats is what was settled since the last commit: with few queues that is a twentieth of a second's work,
// and many queues together do not flood their broker with commits: one a second each is the least.
func TestCommitsKeepUpWithTheWork(t *testing.T) {
	for queues, want := range map[int]struct{ behind, commits int }{2: {12, 60}, 200: {150, 400}} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, queues, ack)
			var commits atomic.Int32
			r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
				if op == "Commit" && q.Topic == topicName {
					commits.Add(1)
				}
				return nil
			}
			e := r.start(r.config("c1"))
			wait(5 * time.Second)
			commits.Store(0)
			worst := int64(0)
			q := clustertest.Queue(topicName, 0)
			for range 100 { // one message each 10 ms in every queue
				for i := range queues {
					r.cluster.Fill(clustertest.Queue(topicName, i), 1)
				}
				wait(10 * time.Millisecond)
				worst = max(worst, r.cluster.End(q)-r.cluster.Committed(group, q))
			}
			if n := int(commits.Load()); n > want.commits || n == 0 {
				t.Errorf("%d queues: %d commits in a second, want at most %d", queues, n, want.commits)
			}
			if worst > int64(want.behind) {
				t.Errorf("%d queues: up to %d messages were settled and not committed, want at most %d", queues, worst, want.behind)
			}
			r.stop(e)
			r.committedAll(queues)
		})
	}
}

// A crash between the look-up and the first commit must not start the group somewhere else.
func TestStartPositionIsConfirmedBeforeTheFirstPull(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var refusing atomic.Bool
		refusing.Store(true)
		var pulls atomic.Int32
		r := newRig(t, 1, ack)
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op == "Commit" && refusing.Load() && q.Topic == topicName {
				return errors.New("no answer")
			}
			if op == "Pull" && q.Topic == topicName {
				pulls.Add(1)
			}
			return nil
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 10)
		e := r.start(r.config("c1"))
		wait(time.Minute)
		if pulls.Load() != 0 || !holds(e.Status(), runtime.HoldCommit) {
			t.Errorf("%d pulls before the position was confirmed; %+v", pulls.Load(), e.Status().Streams[0].Queues)
		}
		refusing.Store(false)
		wait(15 * time.Second)
		r.committedAll(1)
		r.stop(e)
	})
}

// Design.md 7: a queue without offset, while the group has some for the topic's other queues.
func TestNewQueueOrLostOffsets(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 3, ack)
		for i := range 3 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 20)
		}
		lost := clustertest.Queue(topicName, 2)
		r.cluster.SetCommitted(group, clustertest.Queue(topicName, 0), 20)
		r.cluster.Expire(lost, 5)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }))
		wait(3 * time.Second)
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 1)); got != 20 || len(r.handler.Handled()) != 20 {
			t.Errorf("the new queue committed %d after %d deliveries, want all 20 from its first", got, len(r.handler.Handled()))
		}
		if !holds(e.Status(), runtime.HoldOffsetsLost) || r.cluster.Committed(group, lost) != -1 {
			t.Errorf("the queue whose offset was lost is not held: %+v", e.Status().Streams[0].Queues)
		}
		if err := e.ResetOffset("orders", lost, 8); err != nil {
			t.Fatal(err)
		}
		wait(3 * time.Second)
		if got := len(r.handler.Handled()); got != 32 {
			t.Errorf("%d deliveries, want 12 more from offset 8", got)
		}
		r.committedAll(3)
		r.stop(e)
	})
}

// A failed question is not an answer: the queue waits.
func TestFailedOffsetQueryIsAskedAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var failing atomic.Bool
		failing.Store(true)
		r := newRig(t, 1, ack)
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op == "Committed" && failing.Load() && q.Topic == topicName {
				return errors.New("timeout")
			}
			return nil
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 20)
		r.cluster.SetCommitted(group, clustertest.Queue(topicName, 0), 15)
		e := r.start(r.config("c1"))
		wait(time.Minute)
		if len(r.handler.Handled()) != 0 || !holds(e.Status(), runtime.HoldStartUnknown) {
			t.Errorf("%d delivered from an unknown position", len(r.handler.Handled()))
		}
		failing.Store(false)
		wait(12 * time.Second)
		if len(r.handler.Handled()) != 5 {
			t.Errorf("%d delivered, want 5", len(r.handler.Handled()))
		}
		r.stop(e)
	})
}

// What the broker expires before it is read is counted exactly; what is at handlers is not forgotten.
func TestExpiredMessagesAreCounted(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		q := clustertest.Queue(topicName, 0)
		r.handler.Do = func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Offset == 0 && rec.Attempt == 1 {
				nap(5 * time.Second)
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		}
		r.cluster.Fill(q, 10)
		var blocked atomic.Bool
		r.cluster.Fault = func(op, _ string, of sdk.Queue) error {
			if op == "Pull" && blocked.Load() && of == q {
				return errors.New("slow")
			}
			return nil
		}
		e := r.start(r.config("c1"))
		nap(500 * time.Millisecond)
		blocked.Store(true)
		r.cluster.Fill(q, 1) // ends the pull that is held
		nap(100 * time.Millisecond)
		r.cluster.Fill(q, 100)
		r.cluster.Expire(q, 61)
		blocked.Store(false)
		wait(30 * time.Second)
		if got := e.Status().Streams[0].Counters.Queues.Expired; got != 50 {
			t.Errorf("%d counted as expired, want 50", got)
		}
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 1 {
			t.Errorf("%d retries: the message at the handler, whose original is gone, has to be sent anew", n)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// PO-P03, OF-P06: above the end it goes by store time, or holds; never to the end.
func TestLostTailIsReadAgainByTime(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 1000)
		nap(time.Hour)
		r.cluster.Fill(q, 100)
		e := r.start(r.config("c1"))
		wait(3 * time.Second)
		r.cluster.Truncate(q, 1050)
		nap(20 * time.Second)
		r.cluster.Fill(q, 30) // offsets 1050 to 1079, below what was committed
		wait(30 * time.Second)
		if got := len(r.handler.Handled()); got != 1100+50+30 {
			t.Errorf("%d deliveries, want the 50 of the margin again and 30 new ones", got)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

func TestAboveTheEndWithoutATimeHolds(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		r.cluster.Fill(clustertest.Queue(topicName, 1), 10)
		r.cluster.SetCommitted(group, q, 5000)
		e := r.start(r.config("c1"))
		wait(time.Minute)
		if got := r.cluster.Committed(group, q); got != 5000 || !holds(e.Status(), runtime.HoldOutOfRange) {
			t.Errorf("committed %d, %+v", got, e.Status().Streams[0].Queues)
		}
		if got := len(r.handler.Handled()); got != 10 {
			t.Errorf("the other queue delivered %d", got)
		}
		if err := e.ResetOffset("orders", q, 0); err != nil {
			t.Fatal(err)
		}
		wait(3 * time.Second)
		r.committedAll(2)
		r.stop(e)
	})
}

// OF-P01: a reset takes effect within seconds, also backwards; what is answered after it changes nothing.
func TestServerSideReset(t *testing.T) {
	for _, to := range []int64{100, 4900} {
		bubbletest.Run(t, func(t *testing.T) {
			reset := make(chan struct{})
			r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
				if rec.Offset >= 1000 { // far enough for both, and far from the end: a pull that waits there would see it late
					<-reset
				}
				nap(20 * time.Millisecond)
				return clustertest.Answer{}
			})
			q := clustertest.Queue(topicName, 0)
			r.cluster.Fill(q, 5000)
			e := r.start(r.config("c1"))
			wait(5 * time.Second)
			r.cluster.Reset(group, q, to)
			close(reset)
			wait(20 * time.Second)
			r.committedAll(1)
			seen := map[uint64]int{}
			for _, rec := range r.handler.Handled() {
				seen[rec.Offset]++
			}
			want := map[int64][3]int{100: {1, 2, 1}, 4900: {1, 1, 0}}[to] // deliveries of 50, 500, 4500
			if got := [3]int{seen[50], seen[500], seen[4500]}; got != want {
				t.Errorf("reset to %d: deliveries of 50, 500, 4500 are %v, want %v", to, got, want)
			}
			if n := r.cluster.MostPulls(q); n != 1 {
				t.Errorf("%d pulls at once", n)
			}
			c := e.Status().Streams[0].Counters
			if c.Queues.Resets != 1 || c.Dispatch.Late == 0 {
				t.Errorf("counters %+v", c)
			}
			r.stop(e)
		})
	}
}

// PO-P02: what is filtered away moves the offset, on both sides of the filter.
func TestFilteredMessagesMoveTheOffset(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		for i := range 300 {
			tag := "b"
			if i%100 == 7 {
				tag = "a"
			}
			r.cluster.Put(q, rocketmq.OutgoingMessage{Body: []byte("x"), Tag: tag})
		}
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Subscriptions[0].Tags = "a || c" }))
		wait(3 * time.Second)
		r.committedAll(1)
		if got := len(r.handler.Handled()); got != 3 {
			t.Errorf("%d delivered, want 3", got)
		}
		r.stop(e)
	})
}

// Garbage from a broker: fetched again, never skipped; when it lasts, the queue holds and says so, and others go on.
func TestGarbageIsNeverSkipped(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 2, ack)
			bad := clustertest.Queue(topicName, 0)
			tries := 0
			r.cluster.Garble = func(q sdk.Queue, body []byte) []byte {
				if q != bad || tries > 2 && !lasting {
					return body
				}
				var m wire.Message
				for at := 0; at < len(body); {
					n, err := m.Decode(body[at:])
					if err != nil {
						panic(err)
					}
					if m.QueueOffset == 5 {
						tries++
						switch tries % 3 {
						case 0:
							return body[:at+n/2] // truncated
						case 1:
							body[at+n-1] ^= 0xFF // its parts do not add up, or its property is another
							body[at+48+8+8+8+4+8+4] ^= 0xFF
						default:
							body[at+3] = 0xFF // absurd length
							body[at] = 0x7F
						}
						return body
					}
					at += n
				}
				return body
			}
			for i := range 2 {
				r.cluster.Fill(clustertest.Queue(topicName, i), 50)
			}
			e := r.start(r.config("c1"))
			wait(5 * time.Minute)
			want := int64(50)
			if lasting {
				want = 5
			}
			if got := r.cluster.Committed(group, bad); got != want {
				t.Errorf("lasting %t: committed %d, want %d", lasting, got, want)
			}
			if holds(e.Status(), runtime.HoldGarbage) != lasting {
				t.Errorf("lasting %t: %+v", lasting, e.Status().Streams[0].Queues)
			}
			if got := r.cluster.Committed(group, clustertest.Queue(topicName, 1)); got != 50 {
				t.Errorf("the other queue committed %d", got)
			}
			r.stop(e)
		})
	}
}

// A broker that accepts and is silent, or refuses: retried with growing pauses; commits are confirmed at the end.
func TestBrokerAwayUnderLoad(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var away atomic.Bool
		var calls atomic.Int32
		r := newRig(t, 4, ack)
		r.cluster.Fault = func(string, string, sdk.Queue) error {
			if away.Load() {
				calls.Add(1)
				return errors.New("connection refused")
			}
			return nil
		}
		e := r.start(r.config("c1"))
		go r.produce(4, 30*time.Second)
		wait(5 * time.Second)
		away.Store(true)
		wait(10 * time.Minute)
		if n := calls.Load(); n > 4000 {
			t.Errorf("%d calls in ten minutes of outage", n)
		}
		if st := e.Status(); !holds(st, runtime.HoldBroker) && !holds(st, runtime.HoldCommit) {
			t.Errorf("status does not tell: %+v", st.Streams[0].Queues)
		}
		away.Store(false)
		wait(30 * time.Second)
		r.committedAll(4)
		r.once(r.total(4))
		r.stop(e)
	})
}

func TestOneMessageLargerThanTheWindowPasses(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		for i := range 2 {
			for range 5 {
				r.cluster.Put(clustertest.Queue(topicName, i), rocketmq.OutgoingMessage{Body: make([]byte, 300<<10)})
			}
		}
		cfg := r.config("c1", func(s *runtime.StreamConfig) {
			s.Window = runtime.Window{Bytes: 1000, StreamBytes: 10_000}
			s.Pull.Messages = 1
			s.Batch.Bytes = 1000
		})
		cfg.Memory = 20_000
		e := r.start(cfg)
		wait(5 * time.Second)
		r.committedAll(2)
		if st := e.Status(); st.MemoryUsed > 20_000 {
			t.Errorf("%d bytes used when all is settled", st.MemoryUsed)
		}
		r.stop(e)
		if st := e.Status(); st.MemoryUsed != 0 {
			t.Errorf("%d bytes used after the stop", st.MemoryUsed)
		}
	})
}

// PQ-P01: the stream's budget holds over all queues, and no queue starves.
func TestManyQueuesShareTheStreamsMemory(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 64, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(50 * time.Millisecond)
			return clustertest.Answer{}
		})
		for i := range 64 {
			for range 20 {
				r.cluster.Put(clustertest.Queue(topicName, i), rocketmq.OutgoingMessage{Body: make([]byte, 20<<10)})
			}
		}
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Window.StreamBytes = 4 << 20; s.Pull.Messages = 4 }))
		most := int64(0)
		for range 100 {
			nap(50 * time.Millisecond)
			most = max(most, e.Status().Streams[0].BytesUsed)
		}
		if most > 10<<20 {
			t.Errorf("%d bytes used, limit %d", most, 4<<20)
		}
		wait(30 * time.Second)
		r.committedAll(64)
		r.stop(e)
	})
}

// SH-P01, SH-P02: a stop waits for what runs and commits it; what it cannot wait for is neither committed nor sent back.
func TestStopWaitsForHandlersAndConfirms(t *testing.T) {
	for _, grace := range []time.Duration{10 * time.Second, 2 * time.Second} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 1, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
				select {
				case <-ctx.Done():
					return clustertest.Answer{Never: true}
				case <-time.After(5 * time.Second):
				}
				return clustertest.Answer{}
			})
			r.cluster.Fill(clustertest.Queue(topicName, 0), 10)
			e := r.start(r.config("c1"))
			nap(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), grace)
			defer cancel()
			err := e.Stop(ctx)
			want := int64(10)
			if grace < 5*time.Second {
				want = 0
			}
			if got := r.cluster.Committed(group, clustertest.Queue(topicName, 0)); got != want || (err == nil) != (want == 10) {
				t.Errorf("grace %s: committed %d, error %v", grace, got, err)
			}
			if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
				t.Errorf("%d sent back by a stop", n)
			}
			if m := r.cluster.Members(group); len(m) != 0 {
				t.Errorf("still a member: %v", m)
			}
		})
	}
}

// RL-P01: nothing is left of two hundred starts and stops.
func TestStartAndStopLeakNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		for i := range 200 {
			r.cluster.Fill(clustertest.Queue(topicName, i%4), 3)
			e := r.start(r.config(fmt.Sprintf("c%d", i)))
			nap(time.Duration(i%7) * 100 * time.Millisecond)
			r.stop(e)
		}
		e := r.start(r.config("last"))
		wait(3 * time.Second)
		r.committedAll(4)
		r.once(600)
		r.stop(e)
	})
}

func TestBodiesAreUnpackedAndOrderedByOffset(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 100)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Concurrency = 1 }))
		wait(3 * time.Second)
		var bodies []int
		for _, rec := range r.handler.Handled() {
			n, err := strconv.Atoi(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, n)
		}
		slices.Sort(bodies)
		for i, n := range bodies {
			if i != n {
				t.Fatalf("body %d at place %d", n, i)
			}
		}
		r.stop(e)
	})
}

// The queues of a new group ask for each other's offsets once, not each for all.
func TestANewGroupAsksOnceForItsOffsets(t *testing.T) {
	for name, old := range map[string]bool{"new": false, "old": true} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				const queues = 64
				r := newRig(t, queues, ack)
				if old {
					r.cluster.SetCommitted(group, clustertest.Queue(topicName, queues-1), 0)
				}
				var asked atomic.Int32
				r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
					if op == "Committed" && q.Topic == topicName {
						asked.Add(1)
						nap(10 * time.Millisecond)
					}
					return nil
				}
				e := r.start(r.config("c1"))
				wait(20 * time.Second)
				if got := asked.Load(); got > 4*queues {
					t.Errorf("%d queues asked for %d offsets", queues, got)
				}
				r.stop(e)
			})
		})
	}
}
