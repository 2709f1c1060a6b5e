package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

// TestCrash_anywhere does anything at random, with the disk failing in some rounds, and crashes between any two operations on files.
// What is left is what there was after one of the changes: the last one that was acknowledged or a later one, where that is promised.
func TestCrash_anywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := &world{random: rand.New(rand.NewPCG(seed, 18)), fs: vfs.NewCrashableMem()}
			w.states = []state{{queues: map[string]queueState{}, waiting: map[int64]string{}}}
			for round := range 12 {
				bubbletest.Run(t, func(t *testing.T) {
					w.T, w.round = t, round
					w.run()
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// state is what a store has after a change. Retention may have taken the oldest of it.
type state struct {
	appends int64 // how many messages of topic Count
	queues  map[string]queueState
	waiting map[int64]string // bodies by log offset
	halves  []int64
}

type queueState struct {
	first  int64
	bodies []string
}

func (q queueState) next() int64 { return q.first + int64(len(q.bodies)) }

func (s state) clone() state {
	return state{s.appends, maps.Clone(s.queues), maps.Clone(s.waiting), slices.Clone(s.halves)}
}

// world is a store and what it should have, over many crashes.
type world struct {
	*testing.T
	random  *rand.Rand
	round   int
	options store.Options
	fs      *vfs.MemFS
	store   *store.Store
	going   sync.WaitGroup // changes that are not answered

	mu     sync.Mutex
	states []state // after each change
	acked  int     // the last of them that was acknowledged
	failed bool    // something was refused: what is stored is to be looked up
	left   *vfs.MemFS
	least  int // the state that must be left
}

func (w *world) run() {
	kept := []int{0, 30, 60, 100}[w.random.IntN(4)]
	faulty := w.random.IntN(3) == 0
	crashes := rand.New(rand.NewPCG(w.random.Uint64(), 1))
	flush := store.Flush(w.random.IntN(2))
	w.left, w.acked, w.least, w.failed = nil, 0, 0, false
	crash := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.left != nil {
			return
		}
		if flush == store.FlushSync || kept == 100 {
			w.least = w.acked
		}
		w.left = w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: crashes})
	}
	faults := faultfs.New(&crashing{FS: w.fs, after: 1 + w.random.IntN(700), crash: crash})
	w.options = store.Options{
		Dir: "data", FS: faults, Flush: flush, FlushInterval: 10 * time.Millisecond, MemTableBytes: 64 << 10, CacheBytes: 1 << 20,
		SegmentBytes: 1 + w.random.Int64N(20_000), MinApart: 1 + w.random.Int64N(20_000), RetainEvery: 20 * time.Millisecond, RetainBytes: w.random.Int64N(2) * 60_000,
	}
	s, err := store.Open(w.options)
	if err != nil {
		w.Fatalf("round %d, %s, %d %% kept: %v", w.round, flush, kept, err)
	}
	w.store = s
	stop := make(chan struct{})
	var reading sync.WaitGroup
	end := sync.OnceValue(func() error {
		close(stop)
		reading.Wait()
		return s.Close()
	})
	defer func() { _ = end() }()
	w.found("after the crash")
	lift := func() {}
	if faulty {
		lift = w.fault(faults)
	}
	reading.Go(func() { w.read(stop) })
	for range 80 {
		if w.crashed() || !w.settled() {
			break
		}
		w.change()
		if w.random.IntN(4) == 0 {
			<-time.After(time.Duration(w.random.IntN(20)) * time.Millisecond)
		}
	}
	crash()
	lift()
	if faulty {
		<-time.After(time.Second) // What waits for the disk is tried again.
	}
	if err := end(); err != nil && !faulty {
		w.Errorf("round %d: closing: %v", w.round, err)
	}
	w.going.Wait()
	w.states, w.fs = w.states[w.least:], w.left
}

func (w *world) crashed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left != nil
}

func (w *world) refused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// fault makes the disk fail once, for a while.
func (w *world) fault(fs *faultfs.FS) func() {
	all := []faultfs.Fault{
		{Op: faultfs.Sync, Suffix: ".messages", Err: syscall.EIO},
		{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO},
		{Op: faultfs.Write, Suffix: ".messages", Err: syscall.ENOSPC},
		{Op: faultfs.Write, Suffix: ".log", Err: syscall.ENOSPC},
		{Op: faultfs.Write, Suffix: ".sst", Err: syscall.ENOSPC},
		{Op: faultfs.Create, Suffix: ".messages", Err: syscall.ENOSPC},
		{Op: faultfs.Create, Suffix: ".log", Err: syscall.ENOSPC},
		{Op: faultfs.Create, Name: "SYNCED", Err: syscall.ENOSPC},
	}
	fault := all[w.random.IntN(len(all))]
	fault.After = w.random.IntN(10)
	_, end := fs.Inject(fault)
	timer := time.AfterFunc(time.Duration(w.random.IntN(3000))*time.Millisecond, end)
	return func() {
		timer.Stop()
		end()
	}
}

// settled waits, when something was refused, until the store takes changes again, and looks up what is stored; false: it crashed.
func (w *world) settled() bool {
	for tries := 0; w.refused(); tries++ {
		if w.crashed() {
			return false
		}
		if tries > 1000 {
			w.Fatalf("round %d: it does not recover: %v", w.round, w.store.Err())
		}
		<-time.After(100 * time.Millisecond)
		if w.store.Err() == nil && settled(w.store) == nil {
			w.going.Wait()
			w.found("after a failure")
		}
	}
	return true
}

// found looks which of the states the store has.
func (w *world) found(when string) {
	var faults []string
	for i, s := range w.states {
		if i < w.acked {
			continue
		}
		fault := w.differs(s)
		if fault == "" {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.left == nil {
				w.states, w.acked, w.failed = []state{s}, 0, false
			}
			return
		}
		faults = append(faults, fault)
	}
	w.Fatalf("round %d, %s: it has none of %d states: %s", w.round, when, len(w.states), strings.Join(slices.Compact(faults), "; "))
}

// differs tells where the store has something else; "" when it has not.
func (w *world) differs(s state) string {
	if _, n, _ := w.store.Bounds("Count", 0); n != s.appends {
		return fmt.Sprintf("%d changes in the place of %d", n, s.appends)
	}
	for _, topic := range []string{"Count", "T0", "T1", "T2"} {
		if fault := w.queueDiffers(topic, s.queues[topic]); fault != "" {
			return fault
		}
	}
	due, _, err := w.store.Scheduled(0, 1<<60, 1<<30, 1<<30)
	waiting := map[int64]string{}
	for _, e := range due {
		if e.Raw != nil {
			m := decode(w, e.Raw)
			waiting[e.LogOffset] = string(m.Body)
		}
	}
	if err != nil || !maps.Equal(waiting, s.waiting) || w.store.CountScheduled() != len(s.waiting) {
		return fmt.Sprintf("%d wait in the place of %d: %v", len(waiting), len(s.waiting), err)
	}
	if halves, err := w.store.Halves(); err != nil || !slices.Equal(halves, s.halves) {
		return fmt.Sprintf("transactions %v in the place of %v: %v", halves, s.halves, err)
	}
	return ""
}

func (w *world) queueDiffers(topic string, q queueState) string {
	_, next, _ := w.store.Bounds(topic, 0)
	raws, err := w.store.Messages(topic, 0, 0, 0)
	first, _, _ := w.store.Bounds(topic, 0)
	switch {
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", topic, err)
	case next > q.next() && first == next && len(raws) == 0:
		return "" // Its end was taken off where all had expired.
	case next != q.next() || first < q.first:
		return fmt.Sprintf("%s has %d..%d in the place of %d..%d", topic, first, next, q.first, q.next())
	case int64(len(raws)) < next-first:
		return fmt.Sprintf("%s has %d messages from %d to %d", topic, len(raws), first, next)
	}
	for i, raw := range raws {
		offset := next - int64(len(raws)-i)
		if m := decode(w, raw); m.QueueOffset != offset || offset < q.first || string(m.Body) != q.bodies[offset-q.first] {
			return fmt.Sprintf("%s has %.20q at %d", topic, m.Body, m.QueueOffset)
		}
	}
	return ""
}

// change does one thing.
func (w *world) change() {
	topic := "T" + strconv.Itoa(w.random.IntN(3))
	after := w.states[len(w.states)-1].clone()
	q := after.queues[topic]
	switch w.random.IntN(24) {
	case 0:
		n := min(w.random.IntN(6), len(q.bodies))
		after.queues[topic] = queueState{q.first + int64(n), q.bodies[n:]}
		w.edit(after, func(done func(error)) { w.store.Expire(topic, 0, q.first+int64(n), done) })
	case 1:
		n := max(len(q.bodies)-w.random.IntN(4), 0)
		after.queues[topic] = queueState{q.first, q.bodies[:n:n]}
		w.edit(after, func(done func(error)) { w.store.Truncate(topic, 0, q.first+int64(n), done) })
	case 2:
		delete(after.queues, topic)
		w.edit(after, func(done func(error)) { w.store.Delete(topic, done) })
	case 3, 4:
		w.end(after)
	default:
		w.append(after, topic)
	}
}

// edit waits for the answer: one that is refused at once is not to be told from one that is not stored.
func (w *world) edit(after state, do func(done func(error))) {
	answered := make(chan struct{})
	w.stored(after)(nil, func(done func(error)) error {
		do(func(err error) {
			done(err)
			close(answered)
		})
		return nil
	})
	<-answered
}

// stored notes a state that a change leads to.
func (w *world) stored(after state) func(positions func() state, submit func(done func(error)) error) {
	return func(positions func() state, submit func(done func(error)) error) {
		at := len(w.states)
		w.going.Add(1)
		err := submit(func(err error) {
			defer w.going.Done()
			w.mu.Lock()
			defer w.mu.Unlock()
			if err != nil {
				w.failed = true
			} else {
				w.acked = at
			}
		})
		if err != nil {
			w.going.Done()
			w.mu.Lock()
			w.failed = true
			w.mu.Unlock()
			return
		}
		if positions != nil {
			after = positions()
		}
		w.states = append(w.states, after)
	}
}

func (w *world) body() string {
	size := w.random.IntN(500)
	switch w.random.IntN(12) {
	case 0:
		size = 17_000 // goes into a segment under FlushSync too
	case 1:
		size = 40_000 // with its key it makes a batch that Pebble flushes by itself
	}
	return strconv.FormatUint(w.random.Uint64(), 36) + strings.Repeat("x", size)
}

func (w *world) append(after state, topic string) {
	records := make([]store.Record, 1+w.random.IntN(4))
	bodies := make([]string, len(records))
	for i := range records {
		bodies[i] = w.body()
		records[i] = record(w, topic, bodies[i], 0)
		records[i].Half = w.random.IntN(20) == 0
	}
	c := &store.Change{Appends: []store.Append{{Topic: "Count", Records: []store.Record{record(w, "Count", "", 0)}}}}
	waits := w.random.IntN(4) == 0
	if waits {
		for i := range records {
			records[i].Due, records[i].Half = 1<<50+w.random.Int64N(1000), false
		}
		topic = "Waiting"
	}
	c.Appends = append(c.Appends, store.Append{Topic: topic, Records: records})
	if w.random.IntN(2) == 0 {
		slices.Reverse(c.Appends)
	}
	w.stored(after)(func() state {
		for _, a := range c.Appends {
			switch a.Topic {
			case "Waiting":
				for i, p := range a.Positions {
					after.waiting[p.LogOffset] = bodies[i]
				}
			case "Count":
				after.appends++
				after.add("Count", a.Positions[0].QueueOffset, []string{""})
			default:
				after.add(topic, a.Positions[0].QueueOffset, bodies)
				for i, p := range a.Positions {
					if a.Records[i].Half {
						after.halves = append(after.halves, p.LogOffset)
					}
				}
			}
		}
		return after
	}, func(done func(error)) error { return w.store.Submit(c, done) })
}

func (s state) add(topic string, at int64, bodies []string) {
	q := s.queues[topic]
	if at != q.next() { // All of it had expired.
		q = queueState{first: at}
	}
	s.queues[topic] = queueState{q.first, append(slices.Clip(q.bodies), bodies...)}
}

// end ends what waits, and a transaction.
func (w *world) end(after state) {
	c := &store.Change{}
	if due, _, err := w.store.Scheduled(0, 1<<60, 1, 1<<20); err == nil {
		for _, e := range due {
			if _, still := after.waiting[e.LogOffset]; still && e.Raw != nil {
				c.Unschedule = append(c.Unschedule, e)
				delete(after.waiting, e.LogOffset)
			}
		}
	}
	if n := len(after.halves); n > 0 {
		i := w.random.IntN(n)
		c.EndHalves = []int64{after.halves[i]}
		after.halves = slices.Delete(after.halves, i, i+1)
	}
	w.stored(after)(nil, func(done func(error)) error { return w.store.Submit(c, done) })
}

// read reads meanwhile, and meets nothing but what is there.
func (w *world) read(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(7 * time.Millisecond):
		}
		_, err := w.store.Messages("T"+strconv.Itoa(i%3), 0, 0, 0)
		if err != nil && !errors.Is(err, store.ErrFailed) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrFull) {
			w.Errorf("round %d: reading: %v", w.round, err)
		}
	}
}
