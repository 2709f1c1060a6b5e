package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

// acked is what a store said it has stored.
type acked struct {
	mu        sync.Mutex
	messages  map[int64]string // bodies by log offset
	scheduled map[int64]bool   // by log offset
	halves    map[int64]bool
	values    map[string]int
}

func newAcked() *acked {
	return &acked{messages: map[int64]string{}, scheduled: map[int64]bool{}, halves: map[int64]bool{}, values: map[string]int{}}
}

// snapshot is what was stored before now.
func (a *acked) snapshot() *acked {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := newAcked()
	maps.Copy(c.messages, a.messages)
	maps.Copy(c.scheduled, a.scheduled)
	maps.Copy(c.halves, a.halves)
	maps.Copy(c.values, a.values)
	return c
}

// work stores things of all kinds and notes what it was told is stored.
func (a *acked) work(t *testing.T, s *store.Store, sender int, random *rand.Rand, changes int, stored chan<- struct{}) {
	t.Helper()
	key := strconv.Itoa(sender)
	for range changes {
		n := 1 + random.IntN(5)
		records := make([]store.Record, n)
		for j := range records {
			size := random.IntN(2000) // together much or little, which FlushSync stores apart or with its key
			records[j] = record(t, "T", strconv.FormatUint(random.Uint64(), 36)+string(make([]byte, size)), 0)
			records[j].Keys = []string{"k" + key}
		}
		if random.IntN(3) == 0 {
			records[0].Due = s.Now() + 100_000
		}
		records[n-1].Half = random.IntN(4) == 0
		c := &store.Change{Appends: []store.Append{{Topic: "T", Queue: int32(sender), Records: records}}}
		i := a.next(key)
		s.Set(store.Value{Table: "offsets", Key: key, Value: []byte(strconv.Itoa(i))})
		if err := s.Apply(c); err != nil {
			t.Error(err)
			return
		}
		a.note(t, c.Appends[0], key, i)
		stored <- struct{}{}
	}
}

func (a *acked) next(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.values[key] + 1
}

func (a *acked) note(t *testing.T, appended store.Append, key string, i int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for j, p := range appended.Positions {
		r := appended.Records[j]
		m := decode(t, r.Raw)
		a.messages[p.LogOffset] = string(m.Body)
		if r.Due > 0 {
			a.scheduled[p.LogOffset] = true
		}
		if r.Half {
			a.halves[p.LogOffset] = true
		}
	}
	a.values[key] = i
}

// check tells what a store lacks of what it said it has stored.
func (a *acked) check(t *testing.T, s *store.Store) {
	t.Helper()
	for offset, body := range a.messages {
		raw, ok := lookup(t, s, offset)
		if !ok {
			t.Fatalf("an acknowledged message is gone: %q", body[:8])
		}
		if m := decode(t, raw); string(m.Body) != body || m.LogOffset != offset {
			t.Fatalf("message %q is %q", body[:8], m.Body[:8])
		}
	}
	table, err := s.Table("offsets")
	if err != nil {
		t.Fatal(err)
	}
	for key, i := range a.values {
		if n, err := strconv.Atoi(string(table[key])); err != nil || n < i {
			t.Fatalf("offset %s is %q, %d was acknowledged", key, table[key], i)
		}
	}
	a.checkWaiting(t, s)
	for queue := range int32(s.Queues("T")) {
		checkDense(t, s, "T", queue)
	}
}

func (a *acked) checkWaiting(t *testing.T, s *store.Store) {
	t.Helper()
	due, _, err := s.Scheduled(0, 1<<60, 1<<30, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[int64]bool{}
	for _, e := range due {
		if e.Raw == nil {
			t.Fatal("a schedule entry has no message")
		}
		waiting[e.LogOffset] = true
	}
	open, err := s.Halves()
	if err != nil {
		t.Fatal(err)
	}
	halves := map[int64]bool{}
	for _, offset := range open {
		halves[offset] = true
	}
	for offset := range a.scheduled {
		if !waiting[offset] {
			t.Fatal("an acknowledged schedule entry is gone")
		}
	}
	for offset := range a.halves {
		if !halves[offset] {
			t.Fatal("an acknowledged transaction is gone")
		}
	}
	if s.CountScheduled() != len(due) {
		t.Fatalf("%d wait, counted %d", len(due), s.CountScheduled())
	}
}

// checkDense reads a queue whole.
func checkDense(t *testing.T, s *store.Store, topic string, queue int32) {
	t.Helper()
	first, next, _ := s.Bounds(topic, queue)
	raws, err := s.Messages(topic, queue, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(raws)) != next-first {
		t.Fatalf("queue %d has %d messages, its bounds are %d and %d", queue, len(raws), first, next)
	}
	for i, raw := range raws {
		if m := decode(t, raw); m.QueueOffset != first+int64(i) || m.QueueID != queue {
			t.Fatalf("message %d of queue %d says %d of %d", i, queue, m.QueueOffset, m.QueueID)
		}
	}
}

// TestCrash cuts the power at many points under load, with what was not synchronized lost, kept, or partly either, and
// finds everything that was acknowledged.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flush store.Flush
		kept  int // percent of what was not synchronized; 100 = only the process was killed
	}{
		{store.FlushSync, 0}, {store.FlushSync, 50}, {store.FlushSync, 100}, {store.FlushAsync, 100},
	} {
		t.Run(fmt.Sprint(c.flush, " ", c.kept), func(t *testing.T) {
			t.Parallel()
			crash(t, c.flush, c.kept)
		})
	}
}

func crash(t *testing.T, flush store.Flush, kept int) {
	t.Helper()
	const senders, changes, rounds = 4, 25, 6
	fs, a := vfs.NewCrashableMem(), newAcked()
	for round := range uint64(rounds) {
		random := rand.New(rand.NewPCG(round, 3))
		s := open(t, store.Options{FS: fs, Flush: flush, MemTableBytes: 256 << 10, SegmentBytes: 100_000, MinApart: 10_000})
		a.check(t, s)
		stored := make(chan struct{}, senders*changes)
		var working sync.WaitGroup
		for sender := range senders {
			random := rand.New(rand.NewPCG(round, uint64(sender)))
			working.Go(func() { a.work(t, s, sender, random, changes, stored) })
		}
		for range random.IntN(senders*changes - senders) {
			<-stored
		}
		before := a.snapshot()
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: random})
		working.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		fs, a = crashed, before // The next round goes on after the crash.
	}
}

// TestCrash_async loses, when the power goes, at most the end: what is left is a prefix, and what is older than the interval
// is all there.
func TestCrash_async(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, MemTableBytes: 64 << 10, SegmentBytes: 100_000, FlushInterval: 500 * time.Millisecond})
		stored := 0
		for round := range 20 {
			for range 50 {
				s.Set(store.Value{Table: "t", Key: "n", Value: []byte(strconv.Itoa(stored))})
				put(t, s, "T", record(t, "T", strconv.Itoa(stored)+string(make([]byte, 3000)), 0))
				stored++
			}
			settled := 0
			if round%2 == 0 {
				<-time.NewTimer(501 * time.Millisecond).C
				synctest.Wait()
				settled = stored
			}
			crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: (round % 3) * 30, RNG: rand.New(rand.NewPCG(1, uint64(round)))})
			look := open(t, store.Options{FS: crashed})
			_, next, _ := look.Bounds("T", 0)
			if next < int64(settled) || next > int64(stored) {
				t.Fatalf("%d messages of %d are left, %d had been there for longer than the interval", next, stored, settled)
			}
			checkDense(t, look, "T", 0)
			table, err := look.Table("t")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := strconv.Atoi(string(table["n"])); next > 0 && (err != nil || int64(n) != next-1 && int64(n) != next) {
				t.Fatalf("value %q goes with %d messages: not a prefix", table["n"], next)
			}
		}
	})
}

// Much that is written does not wait for the interval: whoever closes a log, or loses power, finds little that is not on the disk.
func TestCrash_asyncOfMuch(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour})
		for range 130 {
			put(t, s, "T", record(t, "T", string(make([]byte, 100_000)), 0))
		}
		synctest.Wait()
		look := open(t, store.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
		if _, next, _ := look.Bounds("T", 0); next < 85 {
			t.Errorf("%d messages of 130, 13 MB, are left: more than 4 MiB were not on the disk", next)
		}
	})
}
