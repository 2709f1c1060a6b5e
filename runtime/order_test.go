package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

func ordered(o runtime.Order) func(*runtime.StreamConfig) {
	return func(s *runtime.StreamConfig) { s.Order = o }
}

// putKeyed stores n messages with sharding keys k0, k1, ... in turn.
func (r *rig) putKeyed(q sdk.Queue, n, keys int) {
	for range n {
		at := r.cluster.End(q)
		r.cluster.Put(q, rocketmq.OutgoingMessage{Body: fmt.Appendf(nil, "%d", at), Properties: map[string]string{"__SHARDINGKEY": fmt.Sprintf("k%d", at%int64(keys))}})
	}
}

// watch holds every start of a message against the promise of an order: earlier ones of its strand have been acked, and none
// is running.
type watch struct {
	t      *testing.T
	strand func(clustertest.Record) string

	mu      sync.Mutex
	running map[string]int
	acked   map[string]uint64 // by strand: the offset after the last that was acked
	starts  map[string]int    // by message
}

func newWatch(t *testing.T, strand func(clustertest.Record) string) *watch {
	t.Helper()
	return &watch{t: t, strand: strand, running: map[string]int{}, acked: map[string]uint64{}, starts: map[string]int{}}
}

func byQueue(r clustertest.Record) string { return fmt.Sprint(r.Topic, r.QueueID) }

func byKey(keys uint64) func(clustertest.Record) string {
	return func(r clustertest.Record) string { return fmt.Sprint(r.QueueID, "/", r.Offset%keys) }
}

// around runs one record; stride is the distance of the offsets of a strand.
func (w *watch) around(r clustertest.Record, stride uint64, do func() clustertest.Answer) clustertest.Answer {
	s := w.strand(r)
	w.mu.Lock()
	w.starts[r.ID]++
	if w.running[s]++; w.running[s] > 1 {
		w.t.Errorf("offset %d of %s starts while another of it runs", r.Offset, s)
	}
	if next, ok := w.acked[s]; ok && r.Offset > next || !ok && r.Offset >= stride {
		w.t.Errorf("offset %d of %s starts before %d was acked", r.Offset, s, next)
	}
	w.mu.Unlock()
	a := do()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[s]--
	if a.Verdict.Kind == 0 && !a.Crash {
		w.acked[s] = max(w.acked[s], r.Offset+stride)
	}
	return a
}

// The head of a queue fails: it is tried again in place, with pauses, and what follows waits (OR-P01 of the fault list).
func TestOrderByQueueWaitsForItsHead(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWatch(t, byQueue)
		var tries atomic.Int32
		r := newRig(t, 2, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			return w.around(rec, 1, func() clustertest.Answer {
				nap(10 * time.Millisecond)
				if rec.QueueID == 0 && rec.Offset == 7 && tries.Add(1) <= 5 {
					return clustertest.Answer{Verdict: retryOnce}
				}
				return clustertest.Answer{}
			})
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 20)
		r.cluster.Fill(clustertest.Queue(topicName, 1), 20)
		e := r.start(r.config("c1", ordered(runtime.OrderQueue)))
		wait(2 * time.Second)
		st := e.Status().Streams[0]
		if len(st.Heads) != 1 || st.Heads[0].Offset != 7 || st.Heads[0].Queue.ID != 0 || st.LocksHeld != 3 || !holds(e.Status(), runtime.HoldInPlace) {
			t.Errorf("status %+v, %d locks", st.Heads, st.LocksHeld)
		}
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 0)); got != 7 {
			t.Errorf("committed %d over the head", got)
		}
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 1)); got != 20 {
			t.Errorf("the other queue is at %d", got)
		}
		wait(32 * time.Second) // 1 + 2 + 4 + 8 + 16
		r.committedAll(2)
		if n := tries.Load(); n != 6 {
			t.Errorf("%d tries of the head", n)
		}
		if st := e.Status().Streams[0]; len(st.Heads) != 0 || st.Counters.Settle.SentBack != 0 || st.Counters.Settle.InPlace != 5 {
			t.Errorf("%d heads left, counters %+v", len(st.Heads), st.Counters.Settle)
		}
		for i := range 2 {
			if owner := r.cluster.LockOwner(group, clustertest.Queue(topicName, i)); owner != "c1" {
				t.Errorf("the lock of queue %d is %q's", i, owner)
			}
		}
		if info := r.cluster.Spec(group, "c1").RunningInfo(false); info.Properties[wire.RunningOrderly] != "true" {
			t.Errorf("307 tells orderly %q", info.Properties[wire.RunningOrderly])
		}
		r.stop(e)
		for i := range 2 {
			if owner := r.cluster.LockOwner(group, clustertest.Queue(topicName, i)); owner != "" {
				t.Errorf("after the stop the lock of queue %d is %q's", i, owner)
			}
		}
	})
}

// A key whose head is blocked holds up that key alone; exhausted heads go to the dead letters by 310, and their key goes on.
func TestOrderByKeyBlocksOneKey(t *testing.T) {
	for name, on := range map[string]runtime.OnExhausted{"block": runtime.Block, "dead_letter": runtime.DeadLetter} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				q := clustertest.Queue(topicName, 0)
				r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
					if rec.Offset == 4 {
						return clustertest.Answer{Verdict: retryOnce}
					}
					return clustertest.Answer{}
				})
				r.putKeyed(q, 40, 4)
				e := r.start(r.config("c1", ordered(runtime.OrderKey), func(s *runtime.StreamConfig) { s.OnExhausted, s.Retry.MaxRetries = on, 2 }))
				wait(2 * time.Second)
				if h := e.Status().Streams[0].Heads; len(h) != 1 || h[0].Key != "k0" || h[0].Offset != 4 || h[0].Blocked {
					t.Errorf("heads %+v", h)
				}
				if got := len(r.offsetsOf(0)); got != 1+30+2 {
					t.Errorf("%d deliveries: key k0 stands at offset 4, the other three are done", got)
				}
				wait(5 * time.Second)
				dead := len(r.cluster.Messages(wire.DLQTopic(group)))
				h := e.Status().Streams[0].Heads
				if on == runtime.Block {
					if len(h) != 1 || !h[0].Blocked || h[0].Attempt != 3 || dead != 0 || r.cluster.Committed(group, q) != 4 || !holds(e.Status(), runtime.HoldExhausted) {
						t.Errorf("blocked: heads %+v, %d dead, committed %d", h, dead, r.cluster.Committed(group, q))
					}
					before := heldFor(e.Status(), runtime.HoldExhausted)
					wait(3 * time.Second)
					if grown := heldFor(e.Status(), runtime.HoldExhausted) - before; before == 0 || grown != 3*time.Second {
						t.Errorf("the hold has lasted for %s, and for %s more 3 s later", before, grown)
					}
				} else if len(h) != 0 || dead != 1 || r.cluster.Committed(group, q) != 40 {
					t.Errorf("dead-lettered: heads %+v, %d dead, committed %d", h, dead, r.cluster.Committed(group, q))
				}
				stopping := time.Now()
				r.stop(e)
				if took := time.Since(stopping); took > time.Second {
					t.Errorf("the stop waited %s for a head", took)
				}
			})
		})
	}
}

// heldFor is how long the first stream is said to have been held for a reason.
func heldFor(st runtime.Status, kind runtime.HoldKind) time.Duration {
	for _, h := range st.Streams[0].Holds {
		if h.Kind == kind {
			return h.For
		}
	}
	return 0
}

func (r *rig) offsetsOf(queue uint32) (offsets []uint64) {
	for _, d := range r.handler.Handled() {
		if d.QueueID == queue && d.Topic == topicName {
			offsets = append(offsets, d.Offset)
		}
	}
	return offsets
}

// Order within a key holds over retries, crashes of the plugin, its replacement, and hand-overs between members under load.
func TestOrderByKeyHoldsOverFaultsAndHandOvers(t *testing.T) {
	const keys, queues = 5, 4
	bubbletest.Run(t, func(t *testing.T) {
		w := newWatch(t, byKey(keys))
		var n, crashes atomic.Int32
		r := newRig(t, queues, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			return w.around(rec, keys, func() clustertest.Answer {
				nap(7 * time.Millisecond)
				switch i := n.Add(1); {
				case i%29 == 0:
					return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictRetry, Delay: 50 * time.Millisecond}}
				case i%301 == 0 && crashes.Add(1) <= 3:
					return clustertest.Answer{Crash: true}
				}
				return clustertest.Answer{}
			})
		})
		load := make(chan struct{})
		go func() {
			defer close(load)
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); nap(100 * time.Millisecond) {
				for i := range queues {
					r.putKeyed(clustertest.Queue(topicName, i), 5, keys)
				}
			}
		}()
		a := r.start(r.config("c1", ordered(runtime.OrderKey)))
		wait(5 * time.Second)
		b := r.start(r.config("c2", ordered(runtime.OrderKey)))
		wait(5 * time.Second)
		for _, version := range []string{"v2", "v3"} { // the second comes before the first is complete
			if err := a.Apply(t.Context(), r.config("c1", ordered(runtime.OrderKey), func(s *runtime.StreamConfig) { s.HandlerVersion = version })); err != nil {
				t.Error(err)
			}
		}
		wait(3 * time.Second)
		r.stop(a)
		<-load
		wait(30 * time.Second)
		r.committedAll(queues)
		if got, want := len(w.starts), r.total(queues); got != want {
			t.Errorf("%d of %d messages delivered", got, want)
		}
		if crashes.Load() < 3 {
			t.Errorf("%d crashes", crashes.Load())
		}
		r.stop(b)
	})
}

// T11 of consumer-semantics.md 12 and OR-P02: whoever loses sight of the brokers, for whatever time, has its handlers canceled
// within 30 s of the last renewal, and never has a queue together with another member.
func TestNoTwoHandlersOfAQueueOverPauses(t *testing.T) {
	for _, seconds := range []int{0, 19, 31, 59, 61, 120} {
		pause := time.Duration(seconds) * time.Second
		t.Run(pause.String(), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				var longest atomic.Int64
				var cutAt atomic.Pointer[time.Time]
				w := newWatch(t, byQueue)
				r := newRig(t, 2, nil)
				r.handler.Do = func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
					return w.around(rec, 1, func() clustertest.Answer {
						end := time.NewTimer(40 * time.Second)
						defer end.Stop()
						select {
						case <-end.C:
							return clustertest.Answer{}
						case <-ctx.Done():
							if at := cutAt.Load(); at != nil {
								longest.Store(max(longest.Load(), int64(time.Since(*at))))
							}
							return clustertest.Answer{Verdict: retryOnce}
						}
					})
				}
				var away atomic.Bool
				var lastLock atomic.Pointer[time.Time]
				r.cluster.Fault = func(op, client string, _ sdk.Queue) error {
					if client != "c1" {
						return nil
					}
					if away.Load() {
						return errors.New("no route to host")
					}
					if op == "LockQueues" {
						now := time.Now()
						lastLock.Store(&now)
					}
					return nil
				}
				for i := range 2 {
					r.cluster.Fill(clustertest.Queue(topicName, i), 12)
				}
				a := r.start(r.config("c1", ordered(runtime.OrderQueue)))
				wait(12 * time.Second)
				away.Store(true)
				cutAt.Store(lastLock.Load())
				if pause > 0 {
					r.cluster.Kill("c1") // brokers see it go, so that another takes over as soon as the locks run out
				}
				b := r.start(r.config("c2", ordered(runtime.OrderQueue)))
				wait(pause)
				away.Store(false)
				cutAt.Store(nil)
				if d := time.Duration(longest.Load()); d > 30*time.Second {
					t.Errorf("a handler went on for %s after the last renewal", d)
				}
				if pause > 32*time.Second && longest.Load() == 0 {
					t.Error("no handler was canceled")
				}
				wait(20 * time.Minute)
				r.committedAll(2)
				r.stop(a)
				r.stop(b)
			})
		})
	}
}

// A lock that somebody else holds: the queue waits, the status says whose it is, and it goes on soon after it is free.
func TestLockOfAnotherIsWaitedFor(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 3)
		java := r.cluster.Client("java@1")
		if err := java.Join(t.Context(), rocketmq.GroupSpec{Name: group, RunningInfo: func(bool) *wire.ConsumerRunningInfo {
			return &wire.ConsumerRunningInfo{Queues: wire.QueueTable[wire.ProcessQueueInfo]{{Topic: q.Topic, BrokerName: q.Broker, QueueID: q.ID}: {Locked: true}}}
		}}); err != nil {
			t.Fatal(err)
		}
		r.cluster.Lock(group, "java@1", q)
		e := r.start(r.config("c1", ordered(runtime.OrderQueue)))
		wait(3 * time.Second)
		var hold runtime.Hold
		for _, s := range e.Status().Streams[0].Queues {
			if s.Queue == q {
				hold = s.Hold
			}
		}
		if hold.Kind != runtime.HoldLock || hold.Member != "java@1" || hold.For < 2*time.Second || len(r.handler.Handled()) != 0 {
			t.Errorf("hold %+v, %d handled", hold, len(r.handler.Handled()))
		}
		r.cluster.Unlock(group, "java@1", q)
		wait(700 * time.Millisecond)
		if got := len(r.handler.Handled()); got != 3 {
			t.Errorf("%d handled after the lock was free", got)
		}
		r.cluster.Unlock(group, "c1", q) // as a broker that restarts forgets it, and another is first
		r.cluster.Lock(group, "java@1", q)
		wait(20 * time.Second)
		if st := e.Status().Streams[0]; st.Counters.Queues.LocksLost != 1 || !holds(e.Status(), runtime.HoldLock) {
			t.Errorf("%d locks lost", st.Counters.Queues.LocksLost)
		}
		r.stop(e)
		if owner := r.cluster.LockOwner(group, q); owner != "java@1" {
			t.Errorf("the lock is %q's", owner)
		}
	})
}

// A queue whose lock was lost and got again goes before its position was read anew: what was settled under the earlier lock is
// not committed over what the member that had the queue meanwhile stored.
func TestStaleOffsetIsNotCommittedUnderANewLock(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		var refused atomic.Value
		refused.Store("Commit")
		r.cluster.Fault = func(op, _ string, of sdk.Queue) error {
			if of == q && op == refused.Load() {
				return errors.New("refused")
			}
			return nil
		}
		r.cluster.SetCommitted(group, q, 0)
		r.cluster.Fill(q, 3)
		e := r.start(r.config("c1", ordered(runtime.OrderQueue)))
		wait(5 * time.Second)
		if got := len(r.handler.Handled()); got != 3 {
			t.Fatalf("%d handled", got)
		}
		r.cluster.Unlock(group, "c1", q)
		r.cluster.Lock(group, "java@1", q)
		wait(40 * time.Second)
		refused.Store("Committed")
		r.cluster.Fill(q, 6)
		r.cluster.SetCommitted(group, q, 9)
		r.cluster.Unlock(group, "java@1", q)
		wait(5 * time.Second)
		if owner := r.cluster.LockOwner(group, q); owner != "c1" {
			t.Fatalf("the lock is %q's", owner)
		}
		r.stop(e)
		if got := r.cluster.Committed(group, q); got != 9 {
			t.Errorf("committed is %d, want the other member's 9", got)
		}
	})
}

// A queue drains, and another client gets its lock meanwhile: what was settled is not committed over what that one stored.
func TestDrainDoesNotCommitOverTheNextHolder(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Offset > 2 {
				<-ctx.Done()
			}
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		var mute atomic.Bool
		r.cluster.Fault = func(op, _ string, of sdk.Queue) error {
			if of == q && op == "Commit" && mute.Load() {
				return errors.New("refused")
			}
			return nil
		}
		r.cluster.SetCommitted(group, q, 0)
		mute.Store(true)
		r.cluster.Fill(q, 6)
		e := r.start(r.config("c1", ordered(runtime.OrderQueue), func(s *runtime.StreamConfig) { s.DrainLimit = time.Minute }))
		wait(5 * time.Second)
		stopped := make(chan error, 1)
		go func() { stopped <- e.Stop(t.Context()) }()
		wait(time.Second)
		r.cluster.Unlock(group, "c1", q)
		r.cluster.Lock(group, "java@1", q)
		r.cluster.SetCommitted(group, q, 5)
		wait(16 * time.Second) // the lock is renewed, and is another's
		mute.Store(false)
		wait(40 * time.Second)
		if got := r.cluster.Committed(group, q); got != 5 {
			t.Errorf("committed is %d, want the other member's 5", got)
		}
		if err := <-stopped; err == nil || !strings.Contains(err.Error(), "another client has got the queue's lock") {
			t.Errorf("the stop says %v", err)
		}
	})
}

// An operator's reset that no broker has confirmed before the lock ran out is done under the next lock.
func TestResetOutlivesALockThatRanOut(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		var mute atomic.Bool
		r.cluster.Fault = func(op, _ string, of sdk.Queue) error {
			if mute.Load() && (op == "LockQueues" || of == q && op == "Commit") {
				return errors.New("refused")
			}
			return nil
		}
		r.cluster.SetCommitted(group, q, 0)
		r.cluster.Fill(q, 6)
		e := r.start(r.config("c1", ordered(runtime.OrderQueue)))
		wait(10 * time.Second)
		mute.Store(true)
		r.cluster.Spec(group, "c1").OnReset(topicName, map[sdk.Queue]int64{q: 3})
		wait(time.Minute)
		if st := e.Status().Streams[0]; st.Counters.Queues.LocksLost == 0 || len(r.offsetsOf(0)) != 6 {
			t.Fatalf("%d locks lost, handled %v", st.Counters.Queues.LocksLost, r.offsetsOf(0))
		}
		mute.Store(false)
		wait(30 * time.Second)
		if got := r.offsetsOf(0); !slices.Equal(got, []uint64{0, 1, 2, 3, 4, 5, 3, 4, 5}) {
			t.Errorf("handled %v", got)
		}
		r.stop(e)
	})
}

// The order of a running stream changes: membership stays, queues are drained and begun anew, and for a minute after the
// locks went nothing is sent back.
func TestOrderChangesOnReload(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			nap(20 * time.Millisecond)
			if rec.Body == "fail" && rec.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		var joins atomic.Int32
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "Join" {
				joins.Add(1)
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		apply := func(e *runtime.Runtime, o runtime.Order) {
			t.Helper()
			if err := e.Apply(t.Context(), r.config("c1", ordered(o))); err != nil {
				t.Error(err)
			}
			wait(3 * time.Second)
		}
		e := r.start(r.config("c1"))
		go r.produce(2, 90*time.Second)
		wait(2 * time.Second)
		if owner := r.cluster.LockOwner(group, q); owner != "" {
			t.Errorf("locked by %q without an order", owner)
		}
		apply(e, runtime.OrderKey)
		if owner := r.cluster.LockOwner(group, q); owner != "c1" {
			t.Errorf("locked by %q", owner)
		}
		apply(e, runtime.OrderNone)
		if owner := r.cluster.LockOwner(group, q); owner != "" {
			t.Errorf("still locked by %q", owner)
		}
		r.cluster.Put(q, rocketmq.OutgoingMessage{Body: []byte("fail")})
		wait(5 * time.Second)
		if s := e.Status().Streams[0].Counters.Settle; s.SentBack != 0 || s.InPlace != 1 {
			t.Errorf("a failure right after the change: %+v", s)
		}
		wait(60 * time.Second)
		r.cluster.Put(q, rocketmq.OutgoingMessage{Body: []byte("fail")})
		wait(time.Second)
		if s := e.Status().Streams[0].Counters.Settle; s.SentBack != 1 {
			t.Errorf("a failure a minute later: %+v", s)
		}
		wait(40 * time.Second)
		r.committedAll(2)
		n, twice := r.bodies(), 0
		for _, times := range n {
			twice += times - 1
		}
		if len(n) != r.total(2) || twice != 2 {
			t.Errorf("%d of %d messages delivered, %d more than once; the two that failed were to", len(n), r.total(2), twice)
		}
		if joins.Load() != 1 {
			t.Errorf("joined %d times", joins.Load())
		}
		r.stop(e)
	})
}

// A clean stop gives the locks back, so that another member has the queues at once; kill -9 makes it wait for 60 s (OR-P03).
func TestLocksAtAStopAndAtAKill(t *testing.T) {
	for name, kill := range map[string]bool{"stop": false, "kill": true} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 2, ack)
				var dead atomic.Bool
				r.cluster.Fault = func(_, client string, _ sdk.Queue) error {
					if client == "c1" && dead.Load() {
						return errors.New("dead")
					}
					return nil
				}
				a := r.start(r.config("c1", ordered(runtime.OrderQueue)))
				b := r.start(r.config("c2", ordered(runtime.OrderQueue)))
				wait(5 * time.Second)
				if got := owned(a); !slices.Equal(got, []int32{0}) {
					t.Errorf("owns %v", got)
				}
				start := time.Now()
				if kill {
					dead.Store(true)
					r.cluster.Kill("c1")
					stopNow(t, a)
				} else {
					r.stop(a)
				}
				r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
				for len(r.offsetsOf(0)) == 0 && time.Since(start) < 3*time.Minute {
					wait(100 * time.Millisecond)
				}
				switch took := time.Since(start); {
				case !kill && took > 3*time.Second, kill && (took < 30*time.Second || took > 65*time.Second):
					t.Errorf("the next member handled after %s", took)
				}
				r.stop(b)
			})
		})
	}
}

// A queue goes while a handler that ignores its context still has a message of it which the engine has given up: after a reset, or
// past its deadline. Nobody else starts before the handler has ended (OR-P03).
func TestNobodyStartsBeforeADeafHandlerEnds(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"reset": time.Minute, "deadline": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 2, nil)
				var mu sync.Mutex
				running, starts := 0, 0
				r.handler.Do = func(_ context.Context, rec clustertest.Record) clustertest.Answer {
					if rec.QueueID != 1 {
						return clustertest.Answer{}
					}
					mu.Lock()
					starts++
					deaf := starts == 1
					if running++; running > 1 {
						t.Errorf("offset %d starts while another of its queue runs", rec.Offset)
					}
					mu.Unlock()
					if deaf {
						nap(25 * time.Second)
					}
					mu.Lock()
					defer mu.Unlock()
					running--
					return clustertest.Answer{}
				}
				q := clustertest.Queue(topicName, 1)
				r.cluster.Fill(q, 1)
				a := r.start(r.config("c1", ordered(runtime.OrderQueue), func(s *runtime.StreamConfig) { s.Deadline = deadline }))
				wait(5 * time.Second)
				if name == "reset" {
					r.cluster.Spec(group, "c1").OnReset(topicName, map[sdk.Queue]int64{q: 0})
					wait(time.Second)
				}
				b := r.start(r.config("c2", ordered(runtime.OrderQueue)))
				wait(2 * time.Minute)
				if got := r.cluster.Committed(group, q); got != 1 {
					t.Errorf("committed is %d, want 1", got)
				}
				if got := owned(b); !slices.Equal(got, []int32{1}) {
					t.Errorf("the second member owns %v", got)
				}
				r.stop(a)
				r.stop(b)
			})
		})
	}
}
