package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

// forgetful is a disk that says of a file which could not be synchronized, the next time, that it is on the disk, and it is not. So
// does Linux.
type forgetful struct {
	vfs.FS
	mu     sync.Mutex
	forgot map[string]bool // by the file's path
}

type forgetfulFile struct {
	vfs.File
	fs   *forgetful
	name string
}

func (f *forgetful) file(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return forgetfulFile{file, f, name}, nil
}

func (f *forgetful) move(name, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot[to] = f.forgot[name]
	delete(f.forgot, name)
}

func (f *forgetful) Unwrap() vfs.FS { return f.FS }

func (f *forgetful) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err == nil {
		f.move("", name)
	}
	return f.file(name, file, err)
}

func (f *forgetful) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, category)
	if err == nil {
		f.move(old, name)
	}
	return f.file(name, file, err)
}

func (f *forgetful) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, options...)
	return f.file(name, file, err)
}

func (f *forgetful) Rename(old, name string) error {
	err := f.FS.Rename(old, name)
	if err == nil {
		f.move(old, name)
	}
	return err
}

func (f forgetfulFile) sync(do func() error) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.forgot[f.name] {
		return nil
	}
	err := do()
	f.fs.forgot[f.name] = err != nil
	return err
}

func (f forgetfulFile) Sync() error     { return f.sync(f.File.Sync) }
func (f forgetfulFile) SyncData() error { return f.sync(f.File.SyncData) }

// wreck is what a power loss left, and how many messages it had to leave.
type wreck struct {
	fs    *vfs.MemFS
	least int64
}

// TestCrash_afterAFailedSync: the disk cannot synchronize a file, or the folder, and the power goes at any time before the store is open
// again. What is left opens, has all that it must have, and reads to its end.
func TestCrash_afterAFailedSync(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flush store.Flush
		fails string // the end of the file's name
		size  int    // of the messages
	}{
		{store.FlushSync, ".log", 1000},
		{store.FlushSync, ".log", 40_000}, // a batch that Pebble flushes by itself
		{store.FlushSync, ".messages", 40_000},
		{store.FlushSync, "data", 1000},
		{store.FlushAsync, ".log", 1000},
		{store.FlushAsync, ".messages", 1000},
		{store.FlushAsync, "data", 1000},
	} {
		t.Run(fmt.Sprint(c.flush, " ", c.fails, " ", c.size), func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) {
				wrecks := failAndCrash(t, c.flush, c.fails, strings.Repeat("x", c.size))
				for i, w := range wrecks {
					s, err := store.Open(store.Options{Dir: "data", FS: w.fs, Flush: c.flush})
					if err != nil {
						t.Fatalf("power lost at %d of %d: %v", i, len(wrecks), err)
					}
					if _, next, _ := s.Bounds("T", 0); next < w.least {
						t.Errorf("power lost at %d of %d: %d messages of %d", i, len(wrecks), next, w.least)
					}
					checkDense(t, s, "T", 0)
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// failAndCrash returns what is left when the power is lost right before any of the operations on files from a failed synchronization on.
func failAndCrash(t *testing.T, flush store.Flush, fails, body string) (wrecks []wreck) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	steps := &crashing{FS: mem}
	faults := faultfs.New(steps)
	s := open(t, store.Options{
		FS: &forgetful{FS: faults, forgot: map[string]bool{}}, Flush: flush, FlushInterval: 10 * time.Millisecond,
		MemTableBytes: 64 << 10, SegmentBytes: 10_000, MinApart: 10_000,
	})
	for range 20 {
		put(t, s, "T", record(t, "T", strings.Repeat("x", 1000), 0))
	}
	<-time.After(time.Second) // It is all on the disk.
	var least atomic.Int64
	least.Store(20)
	random, since := rand.New(rand.NewPCG(7, 18)), 0
	hit, lift := faults.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: fails, Err: syscall.EIO})
	steps.before(func() {
		select {
		case <-hit:
			if since++; since > 40 && since%5 != 0 {
				return
			}
			must := least.Load() // first: what is acknowledged while the copy is made may be on the disk after it only
			for _, kept := range []int{0, 40} {
				wrecks = append(wrecks, wreck{mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: random}), must})
			}
		default:
		}
	})
	for s.Err() == nil {
		if s.Apply(change(t, body)) == nil && flush == store.FlushSync {
			least.Add(1)
		}
	}
	<-time.After(1200 * time.Millisecond) // It cannot be opened again once or twice.
	lift()
	for tries := 0; s.Err() != nil; tries++ {
		if tries > 1000 {
			t.Fatalf("it does not recover: %v", s.Err())
		}
		<-time.After(100 * time.Millisecond)
	}
	steps.before(nil)
	put(t, s, "T", record(t, "T", "after", 0))
	checkDense(t, s, "T", 0)
	if since < 10 {
		t.Errorf("only %d operations followed the failed synchronization", since)
	}
	return wrecks
}

// TestOpen_afterAStartThatWasKilled at any time: the first one of a folder leaves next to nothing in it at first.
func TestOpen_afterAStartThatWasKilled(t *testing.T) {
	t.Parallel()
	for _, flush := range []store.Flush{store.FlushSync, store.FlushAsync} {
		mem := vfs.NewCrashableMem()
		steps := &crashing{FS: mem}
		var left []*vfs.MemFS
		steps.before(func() { left = append(left, killed(mem)) })
		s := open(t, store.Options{FS: steps, Flush: flush})
		steps.before(nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for i, fs := range left {
			s, err := store.Open(store.Options{Dir: "data", FS: fs, Flush: flush})
			if err != nil {
				t.Errorf("%s, killed at %d of %d: %v", flush, i, len(left), err)
				continue
			}
			put(t, s, "T", record(t, "T", "x", 0))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
