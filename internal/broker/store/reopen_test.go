package store_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

// failing is a store that has just failed, of whose disk lift makes a good one again.
func failing(t *testing.T, o store.Options) (s *store.Store, lift func()) {
	t.Helper()
	fs := faultfs.New(vfs.NewMem())
	o.FS = fs
	s = open(t, o)
	put(t, s, "T", record(t, "T", "0", 0))
	_, lift = fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
	if err := s.Apply(change(t, "unknown")); !errors.Is(err, store.ErrFailed) {
		t.Fatalf("a failed synchronization: %v", err)
	}
	return s, lift
}

// TestSettled_tellsOfAFailureMeanwhile: who sets a value, and looks when the store is open again, must not hear that it is stored.
func TestSettled_tellsOfAFailureMeanwhile(t *testing.T) {
	t.Parallel()
	for name, setAt := range map[string]int{"set before the failure": 0, "set while it had failed": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) { settledAfterFailure(t, setAt) })
		})
	}
}

func settledAfterFailure(t *testing.T, setAt int) {
	t.Helper()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs})
	put(t, s, "T", record(t, "T", "0", 0))
	began := s.Mark()
	set := func(at int) {
		if at == setAt {
			s.Set(store.Value{Table: "t", Key: "k", Value: []byte("v")})
		}
	}
	set(0)
	_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
	if err := s.Apply(change(t, "unknown")); !errors.Is(err, store.ErrFailed) {
		t.Fatalf("a failed synchronization: %v", err)
	}
	set(1)
	late := s.Mark()
	lift()
	<-time.After(30 * time.Second)
	synctest.Wait()
	if err := s.Err(); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
	for name, mark := range map[string]store.Mark{"before": began, "while it had failed": late} {
		result := make(chan error, 1)
		s.Settled(mark, func(err error) { result <- err })
		if err := <-result; !errors.Is(err, store.ErrFailed) {
			t.Errorf("since %s: %v", name, err)
		}
	}
	if err := settled(s); err != nil {
		t.Errorf("since now: %v", err)
	}
}

// TestReopened_refusesUntilTheTablesAreRead: a broker whose tables are not what is stored must not serve.
func TestReopened_refusesUntilTheTablesAreRead(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		times, unreadable := 0, errors.New("unreadable")
		s, lift := failing(t, store.Options{Reopened: func() error {
			if times++; times < 4 {
				return unreadable
			}
			return nil
		}})
		lift()
		for range 3 {
			<-time.After(time.Second)
			synctest.Wait()
			if err := s.Apply(change(t, "refused")); !errors.Is(err, store.ErrFailed) {
				t.Errorf("the tables were read in vain %d times, and a change is answered with %v", times, err)
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if err := s.Err(); err != nil || times != 4 {
			t.Fatalf("the tables were read %d times: %v", times, err)
		}
		put(t, s, "T", record(t, "T", "1", 0))
	})
}

// TestFailed_readsDoNotHang while a write waits for a disk that takes nothing: the store cannot close Pebble until that is over,
// and says so to who reads.
func TestFailed_readsDoNotHang(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: 20 * time.Millisecond, MemTableBytes: 64 << 10})
	put(t, s, "T", record(t, "T", "0", 0))
	stuck, liftStuck := fs.Inject(faultfs.Fault{Op: faultfs.Write, Suffix: ".sst", Err: syscall.ENOSPC})
	defer liftStuck()
	for waits := false; !waits; {
		_ = s.Apply(change(t, strings.Repeat("x", 100))) // It is refused when a write waits.
		select {
		case <-stuck:
			waits = true
		default:
		}
	}
	failed, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
	defer lift()
	s.Set(store.Value{Table: "t", Key: "k", Value: []byte("v")}) // is stored all the same
	<-failed
	answered := make(chan error, 1)
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	for refused := false; !refused; {
		go func() {
			_, err := s.Messages("T", 0, 0, 1)
			answered <- err
		}()
		select {
		case err := <-answered:
			refused = errors.Is(err, store.ErrFailed) // Until it begins to open itself again, it reads.
		case <-limit.C:
			t.Fatal("a read hangs")
		}
	}
	liftStuck()
	lift()
	for s.Err() != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit.C:
			t.Fatalf("it does not recover: %v", s.Err())
		}
	}
	put(t, s, "T", record(t, "T", "after", 0))
	checkDense(t, s, "T", 0)
}

// TestAsync_killedWhileOpening is damage in a part of the log that is known to be on the disk, and a process that is killed after
// it began to open the folder once more: the damage must not be taken for an end that was torn off.
func TestAsync_killedWhileOpening(t *testing.T) {
	t.Parallel()
	for _, was := range []store.Flush{store.FlushAsync, store.FlushSync} {
		t.Run(was.String(), func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) { killedWhileOpening(t, was) })
		})
	}
}

func killedWhileOpening(t *testing.T, was store.Flush) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Options{FS: mem, Flush: was})
	for range 20 { // Pebble tells damage from an end by the blocks of 32 KiB behind it.
		put(t, s, "T", record(t, "T", strings.Repeat("x", 10_000), 0))
	}
	<-time.After(time.Second)
	synctest.Wait()
	fs := &killedAt{MemFS: killed(mem), name: "MANIFEST"}
	open(t, store.Options{FS: fs, Flush: store.FlushAsync})
	left := fs.left.Load()
	if left == nil {
		t.Fatal("opening made no file of this name")
	}
	spoil(t, left, ".log", 500)
	if s, err := store.Open(store.Options{Dir: "data", FS: left, Flush: store.FlushAsync}); err == nil {
		_, next, _ := s.Bounds("T", 0)
		t.Fatalf("it opens with %d messages of 20: %v", next, s.Close())
	} else if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("damage in what is on the disk: %v", err)
	}
}

// killed is what the end of the process leaves.
func killed(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// killedAt keeps what the process would leave if it were killed when it makes a file.
type killedAt struct {
	*vfs.MemFS
	name string
	left atomic.Pointer[vfs.MemFS]
}

func (k *killedAt) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, k.name) && k.left.Load() == nil {
		k.left.Store(killed(k.MemFS))
	}
	return k.MemFS.Create(name, c)
}

// TestOpen_failsWithoutALog: the disk lets the log of before be read, and no new one be made. Pebble then leaves none, and the
// folder is whole all the same.
func TestOpen_failsWithoutALog(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs})
	fill(t, s, "T", 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Create, Suffix: ".log", Err: syscall.EMFILE})
	for range 3 {
		if s, err := store.Open(store.Options{Dir: "data", FS: fs}); err == nil {
			t.Fatal("it opens", s.Close())
		} else if !errors.Is(err, syscall.EMFILE) {
			t.Errorf("without room for one more file: %v", err)
		}
	}
	lift()
	s = open(t, store.Options{FS: fs})
	if _, next, _ := s.Bounds("T", 0); next != 100 {
		t.Errorf("%d messages of 100", next)
	}
	checkDense(t, s, "T", 0)
}
