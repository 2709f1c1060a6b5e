package store_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

func keyed(t *testing.T, topic, body, key string) store.Record {
	t.Helper()
	r := record(t, topic, body, 0)
	r.Keys = []string{key}
	return r
}

func count(t *testing.T, s *store.Store, topic, key string) int {
	t.Helper()
	raws, err := s.Query(topic, key, 0, 1<<60, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(raws)
}

func TestRetain_byAge(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s := open(t, store.Options{FS: fs, RetainAge: time.Hour})
		waits := keyed(t, "Timer", "waits", "w")
		waits.Due = s.Now() + (5 * time.Hour).Milliseconds()
		kept := put(t, s, "Timer", waits, keyed(t, "Timer", "behind it", "w"))[0]
		half := record(t, "Half", "open", 0)
		half.Half = true
		open := put(t, s, "Half", half)[0]
		var first store.Position
		for i := range 18 {
			p := put(t, s, "T", keyed(t, "T", fmt.Sprint(i), "k"))[0]
			if i == 0 {
				first = p
			}
			<-time.After(10 * time.Minute)
		}
		<-time.After(2 * time.Minute)
		// Stored at 0, 10, …, 170 minutes; now are 182: what is from before 122 is gone.
		if lowest, next, _ := s.Bounds("T", 0); lowest != 13 || next != 18 {
			t.Errorf("%d..%d are left, want 13..18", lowest, next)
		}
		if n := count(t, s, "T", "k"); n != 5 {
			t.Errorf("%d are found by key, want 5", n)
		}
		if _, ok := lookup(t, s, first.LogOffset); ok {
			t.Error("an expired message is found by its id")
		}
		for _, p := range []store.Position{kept, open} {
			if _, ok := lookup(t, s, p.LogOffset); !ok {
				t.Error("a message that waits was expired")
			}
		}
		checkDense(t, s, "T", 0)
		checkDense(t, s, "Timer", 0)
		due, _, err := s.Scheduled(0, 1<<60, 10, 1<<30)
		if err != nil || len(due) != 1 || string(decode(t, due[0].Raw).Body) != "waits" {
			t.Fatalf("scheduled %v, %v", due, err)
		}
		if err := s.Apply(&store.Change{Unschedule: due, EndHalves: []int64{open.LogOffset}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Hour)
		for _, topic := range []string{"T", "Timer", "Half"} {
			if lowest, next, _ := s.Bounds(topic, 0); lowest != next {
				t.Errorf("%s: %d..%d are left of what is old", topic, lowest, next)
			}
		}
		// Everything is gone, and still no offset is used again.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, fs)
		if p := put(t, s, "T", record(t, "T", "new", 0))[0]; p.QueueOffset != 18 || p.LogOffset <= open.LogOffset {
			t.Errorf("the next message is at %+v", p)
		}
	})
}

func reopen(t *testing.T, fs vfs.FS) *store.Store {
	t.Helper()
	return open(t, store.Options{FS: fs})
}

func TestRetain_bySize(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := open(t, store.Options{RetainBytes: 100_000, MemTableBytes: 64 << 10})
		for i := range 300 {
			put(t, s, fmt.Sprintf("T%d", i%3), record(t, "T0", strings.Repeat("x", 2000), 0))
		}
		<-time.After(2 * time.Minute)
		left := 0
		for i := range 3 {
			topic := fmt.Sprintf("T%d", i)
			first, next, _ := s.Bounds(topic, 0)
			left += int(next - first)
			checkDense(t, s, topic, 0)
		}
		if size := left * 2093; size > 100_000 || size < 90_000 {
			t.Errorf("%d messages are left, %d bytes", left, size)
		}
	})
}

// TestClock_backAcrossRestarts has the machine's clock go back while the store is closed: store times do not, and what waits
// is due when it was to be.
func TestClock_backAcrossRestarts(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	var last int64
	bubbletest.Run(t, func(t *testing.T) {
		<-time.After(1000 * time.Hour) // Each bubble begins at the same time: the next one is in the past.
		s := open(t, store.Options{FS: fs})
		r := record(t, "T", "waits", 0)
		r.Due = s.Now() + 1000
		last = put(t, s, "T", r)[0].StoreMillis
	})
	bubbletest.Run(t, func(t *testing.T) {
		s := open(t, store.Options{FS: fs, RetainAge: time.Hour})
		for range 3 {
			<-time.After(time.Minute)
			p := put(t, s, "T", record(t, "T", "later", 0))[0]
			if p.StoreMillis < last {
				t.Errorf("stored at %d, the one before at %d", p.StoreMillis, last)
			}
			last = p.StoreMillis
		}
		if first, next, _ := s.Bounds("T", 0); first != 0 || next != 4 {
			t.Errorf("%d..%d are left of what is young", first, next)
		}
		if now := time.Now().UnixMilli(); s.Now() != now {
			t.Errorf("what is to wait begins at %d, now is %d", s.Now(), now)
		}
		if due, _, err := s.Scheduled(0, last+1000, 10, 1<<30); err != nil || len(due) != 1 {
			t.Errorf("waiting: %v, %v", due, err)
		}
	})
}

// TestOpen_readsNoMessages keeps opening short, however much is stored.
func TestOpen_readsNoMessages(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs, MemTableBytes: 64 << 10})
	for i := range 300 {
		put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Read, Suffix: ".blob", Err: syscall.EIO})
	s = open(t, store.Options{FS: fs})
	if first, next, _ := s.Bounds("T", 0); first != 0 || next != 300 {
		t.Errorf("bounds %d..%d", first, next)
	}
	lift()
	checkDense(t, s, "T", 0)
}

// TestRetain_givesTheDiskBack though nobody stores anything any more.
func TestRetain_givesTheDiskBack(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s := open(t, store.Options{FS: fs, RetainAge: time.Hour, MemTableBytes: 1 << 20})
		fill(t, s, "T", 20<<10)
		synctest.Wait() // What is full is written out in the background.
		before := tables(t, fs)
		<-time.After(2*time.Hour + 30*time.Second)
		if after := tables(t, fs); after > before/4 {
			t.Errorf("the tables have %d KiB of %d", after>>10, before>>10)
		}
	})
}

// tables is the size of all files but the logs, which are used again.
func tables(t *testing.T, fs vfs.FS) (n int64) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := fs.Stat(fs.PathJoin("data", name)); err == nil && !strings.HasSuffix(name, ".log") { // a file may go meanwhile
			n += info.Size()
		}
	}
	return n
}
