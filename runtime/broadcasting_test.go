package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/offsetfile"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// broadcaster is the config of one member of a broadcasting group, whose offsets are in dir.
func (r *rig) broadcaster(name, dir string, change ...func(*runtime.StreamConfig)) runtime.Config {
	cfg := r.config(name, append([]func(*runtime.StreamConfig){func(s *runtime.StreamConfig) {
		s.Broadcasting, s.OnExhausted = true, runtime.Block
	}}, change...)...)
	cfg.Offsets = func(c *runtime.StreamConfig) (runtime.Offsets, error) {
		return offsetfile.Open(offsetfile.Options{Dir: dir, Member: name, Broker: c.Broker, Group: c.Group, Logger: slog.New(slog.DiscardHandler)})
	}
	return cfg
}

func (r *rig) deliveries() int { return len(r.handler.Handled()) }

// Each of two members handles every message of every queue; the broker keeps nothing of the group but its members.
func TestBroadcastingGivesEveryMemberEverything(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		for i := range 4 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 25)
		}
		var committed atomic.Int32
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "Commit" {
				committed.Add(1)
			}
			return nil
		}
		a, b := r.start(r.broadcaster("m1", dir)), r.start(r.broadcaster("m2", dir))
		wait(5 * time.Second)
		for id, n := range r.bodies() {
			if n != 2 {
				t.Errorf("message %s delivered %d times, want once a member", id, n)
			}
		}
		if r.deliveries() != 200 || committed.Load() != 0 || r.cluster.Committed(group, clustertest.Queue(topicName, 0)) != -1 {
			t.Errorf("%d deliveries, %d commits at the broker", r.deliveries(), committed.Load())
		}
		for _, e := range []*runtime.Runtime{a, b} {
			st := e.Status().Streams[0]
			if len(st.Queues) != 4 || st.Assignments[topicName].Mine != 4 || len(st.Members) != 2 || st.Counters.Group.Overlaps != 0 || len(st.Holds) != 0 {
				t.Errorf("status %+v", st)
			}
		}
		spec := r.cluster.Spec(group, "m1")
		subs := spec.Subscriptions()
		if !spec.Broadcasting || len(subs) != 1 || subs[0].Topic != topicName {
			t.Errorf("it says %t, %+v", spec.Broadcasting, subs)
		}
		info := spec.RunningInfo(false)
		if q := info.Queues[wire.MessageQueue{Topic: topicName, BrokerName: clustertest.Broker}]; q.CommitOffset != 25 {
			t.Errorf("others are told of offset %d, want 25", q.CommitOffset)
		}
		r.stop(a)
		r.stop(b)
	})
}

// BC-P02: a member goes on where it was, exactly, and with nothing of the other's.
func TestBroadcastingGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		fill := func(n int) {
			for i := range 2 {
				r.cluster.Fill(clustertest.Queue(topicName, i), n)
			}
		}
		fill(25)
		late := func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }
		for _, want := range []int{0, 20, 40} { // a member without a past begins at the end
			before := r.deliveries()
			e := r.start(r.broadcaster("m1", dir, late))
			wait(3 * time.Second)
			if got := r.deliveries() - before; got != want {
				t.Errorf("%d deliveries, want %d", got, want)
			}
			r.stop(e)
			fill((want + 20) / 2)
		}
		before := r.deliveries()
		e := r.start(r.broadcaster("m2", dir))
		wait(3 * time.Second)
		if got, want := r.deliveries()-before, 50+20+40+60; got != want {
			t.Errorf("another member got %d, want all %d", got, want)
		}
		r.stop(e)
	})
}

// A start that is cut off before every queue has its position does not make the others look like queues that came later.
func TestBroadcastingStartIsDurableAsAWhole(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		for i := range 2 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 10)
		}
		late := func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }
		var deaf atomic.Bool
		deaf.Store(true)
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op == "MaxOffset" && q.ID == 1 && deaf.Load() {
				return errors.New("no answer")
			}
			return nil
		}
		e := r.start(r.broadcaster("m1", dir, late))
		wait(3 * time.Second)
		stopNow(t, e)
		deaf.Store(false)
		r.cluster.CreateTopic(topicName, 4)
		for i := range 4 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 5)
		}
		r.cluster.Expire(clustertest.Queue(topicName, 3), 2)
		e = r.start(r.broadcaster("m1", dir, late))
		wait(3 * time.Second)
		// Queue 0 goes on; queue 1 begins at its end now; queue 2 came later; so did queue 3, and two of its messages are gone.
		if got := r.deliveries(); got != 5+0+5+3 {
			t.Errorf("%d deliveries, want 13", got)
		}
		if st := e.Status(); st.Streams[0].Counters.Queues.Expired != 2 || holds(st, runtime.HoldOffsetsLost) {
			t.Errorf("%d expired: %+v", st.Streams[0].Counters.Queues.Expired, st.Streams[0].Queues)
		}
		r.stop(e)
	})
}

// A failed message is tried again in place, with its attempts counted; one that fails for good, or is rejected, holds its
// queue or is dropped, as the operator chose. No broker hears of it.
func TestBroadcastingRetriesInPlace(t *testing.T) {
	reject := frame.Verdict{Kind: frame.VerdictReject, Class: "schema", Text: "no such price"}
	for name, c := range map[string]struct {
		end      runtime.OnExhausted
		verdict  frame.Verdict
		until    uint32 // the attempt that is acked; 0 = none
		attempts int
		held     bool
	}{
		"mended":            {runtime.Block, retryOnce, 3, 3, false},
		"blocked":           {runtime.Block, retryOnce, 0, 0, true},
		"rejected, blocked": {runtime.Block, reject, 0, 0, true},
		"skipped":           {runtime.Skip, retryOnce, 0, 3, false},
		"rejected, skipped": {runtime.Skip, reject, 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
					if rec.Offset == 0 && rec.Attempt != c.until {
						return clustertest.Answer{Verdict: c.verdict}
					}
					return clustertest.Answer{}
				})
				r.cluster.Fill(clustertest.Queue(topicName, 0), 5)
				e := r.start(r.broadcaster("m1", dir, func(s *runtime.StreamConfig) { s.OnExhausted, s.Retry.MaxRetries = c.end, 2 }))
				wait(5 * time.Minute)
				var attempts []uint32
				for _, rec := range r.handler.Handled() {
					if rec.Offset == 0 {
						attempts = append(attempts, rec.Attempt)
					}
				}
				if !slices.IsSorted(attempts) || attempts[0] != 1 || c.attempts > 0 && len(attempts) != c.attempts || c.attempts == 0 && len(attempts) < 4 {
					t.Errorf("attempts %v", attempts)
				}
				st := e.Status()
				q := st.Streams[0].Queues[0]
				if want := int64(5); (q.Committed == want) == c.held || c.held && q.Committed != 0 {
					t.Errorf("committed %d", q.Committed)
				}
				if c.held != holds(st, runtime.HoldExhausted) {
					t.Errorf("holds %+v", st.Streams[0].Holds)
				}
				if n := len(r.cluster.Messages(wire.DLQTopic(group))) + len(r.cluster.Sent()); n != 0 {
					t.Errorf("%d messages were stored", n)
				}
				r.stop(e)
			})
		})
	}
}

// BC-P03: an offset file that cannot be written is told of, handling goes on, and it is current once it can.
func TestBroadcastingOnABrokenDisk(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		cfg := r.broadcaster("m1", dir)
		store, err := cfg.Offsets(&cfg.Streams[0])
		if err != nil {
			t.Fatal(err)
		}
		disk := &brokenOffsets{Offsets: store}
		cfg.Offsets = func(*runtime.StreamConfig) (runtime.Offsets, error) { return disk, nil }
		e := r.start(cfg)
		wait(2 * time.Second)
		disk.broken.Store(true)
		r.cluster.Fill(clustertest.Queue(topicName, 0), 10)
		wait(time.Minute)
		st := e.Status()
		if r.deliveries() != 10 || !holds(st, runtime.HoldCommit) || st.Streams[0].Counters.Queues.CommitErrors == 0 {
			t.Errorf("%d deliveries, %+v", r.deliveries(), st.Streams[0].Queues)
		}
		disk.broken.Store(false)
		wait(15 * time.Second)
		if st := e.Status(); holds(st, runtime.HoldCommit) || st.Streams[0].Queues[0].Committed != 10 {
			t.Errorf("mended: %+v", st.Streams[0].Queues)
		}
		disk.broken.Store(true)
		r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
		wait(time.Second)
		if err := e.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("a stop that stores nothing: %v", err)
		}
	})
}

type brokenOffsets struct {
	runtime.Offsets
	broken atomic.Bool
}

func (b *brokenOffsets) Commit(ctx context.Context, q runtime.Queue, offset int64) error {
	if b.broken.Load() {
		return errors.New("read-only file system")
	}
	return b.Offsets.Commit(ctx, q, offset)
}

// What the engine cannot do with a broadcasting stream is told before anything is started, and offsets that cannot be read
// end the start, which may be tried again.
func TestBroadcastingThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		for want, change := range map[string]func(*runtime.Config){
			"nowhere to keep its offsets": func(c *runtime.Config) { c.Offsets = nil },
			"no dead letters":             func(c *runtime.Config) { c.Streams[0].OnExhausted = "" },
		} {
			cfg := r.broadcaster("m1", dir)
			change(&cfg)
			if _, err := runtime.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		cfg := r.broadcaster("m1", dir)
		open, tries := cfg.Offsets, 0
		cfg.Offsets = func(c *runtime.StreamConfig) (runtime.Offsets, error) {
			if tries++; tries == 1 {
				return nil, errors.New("the file is damaged")
			}
			return open(c)
		}
		e, err := runtime.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") || e.State() != runtime.StateCreated {
			t.Fatalf("%v; the engine is %s", err, e.State())
		}
		if len(r.cluster.Members(group)) != 0 {
			t.Error("the group was joined")
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.stop(e)
	})
}

// A reload that changes the model leaves the group as one and joins it as the other.
func TestReloadChangesTheModel(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		clustering := r.config("m1")
		clustering.Offsets = r.broadcaster("m1", dir).Offsets
		e := r.start(clustering)
		wait(2 * time.Second)
		for i, next := range []runtime.Config{r.broadcaster("m1", dir), clustering} {
			next.Brokers = clustering.Brokers
			if err := e.Apply(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			wait(3 * time.Second)
			if got := r.cluster.Spec(group, "m1").Broadcasting; got != (i == 0) {
				t.Errorf("reload %d: broadcasting %t", i, got)
			}
		}
		if got := r.deliveries(); got != 20 { // ten for each model's own offsets
			t.Errorf("%d deliveries, want 20", got)
		}
		r.stop(e)
	})
}

// A queue whose end went below its offset, with no time to go by, says how a member that keeps its offsets itself is moved.
func TestBroadcastingHoldNamesItsOwnWayOut(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		e := r.start(r.broadcaster("m1", dir, func(s *runtime.StreamConfig) { s.StartFrom = runtime.StartFrom{} }))
		wait(2 * time.Second)
		r.stop(e)
		r.cluster.Truncate(q, 4)
		e = r.start(r.broadcaster("m1", dir))
		wait(5 * time.Second)
		hold := e.Status().Streams[0].Queues[0].Hold
		if hold.Kind != runtime.HoldOutOfRange || !strings.Contains(hold.Text, "offset file") || strings.Contains(hold.Text, "mqadmin") {
			t.Errorf("hold %+v", hold)
		}
		r.stop(e)
	})
}
