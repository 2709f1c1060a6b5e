package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

// counted counts which of its files are open.
type counted struct {
	vfs.FS
	mu   sync.Mutex
	open map[string]int
}

type countedFile struct {
	vfs.File
	closed func()
}

func (c *counted) count(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	add := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[name] += n
	}
	add(1)
	return countedFile{f, func() { add(-1) }}, nil
}

func (c *counted) Unwrap() vfs.FS { return c.FS }

func (c *counted) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	return c.count(name, f, err)
}

func (c *counted) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, options...)
	return c.count(name, f, err)
}

func (f countedFile) Close() error {
	f.closed()
	return f.File.Close()
}

// TestSegments_removedAreClosed, or the disk would not have their space back.
func TestSegments_removedAreClosed(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := &counted{FS: vfs.NewMem(), open: map[string]int{}}
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, SegmentBytes: 10_000})
		for range 50 {
			put(t, s, "T", record(t, "T", strings.Repeat("o", 1000), 0))
		}
		checkDense(t, s, "T", 0)
		remove(t, s, "T")
		<-time.After(2 * time.Minute)
		fs.mu.Lock()
		defer fs.mu.Unlock()
		for name, n := range fs.open {
			if n > 0 && strings.HasSuffix(name, ".messages") {
				t.Errorf("%s is open %d times and was removed", name, n)
			}
		}
	})
}

// TestSegments_removedWhileRunning is damage to who reads what was in it, and named.
func TestSegments_removedWhileRunning(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, SegmentBytes: 1})
	for i := range 3 {
		put(t, s, "T", record(t, "T", fmt.Sprint(i), 0))
	}
	bad := files(t, fs, ".messages")[1]
	if err := fs.Remove("data/" + bad); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Messages("T", 0, 0, 0); !errors.Is(err, store.ErrDamaged) || !namesOnce(err, "data/"+bad, bad) {
		t.Errorf("reading: %v", err)
	}
	if raws, err := s.Messages("T", 0, 2, 0); err != nil || len(raws) != 1 {
		t.Errorf("what is elsewhere: %d, %v", len(raws), err)
	}
}

// TestSegments_namesAlike are not the store's and stay; a folder in which segments alone are left is damaged and no foreign one.
func TestSegments_namesAlike(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync})
	put(t, s, "T", record(t, "T", "x", 0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alike := []string{"+0000000000000000007.messages", "-0000000000000000000.messages", "1.messages", "00000000000000000007.messages.old", "x.messages"}
	for _, name := range alike {
		create(t, fs, name)
	}
	s = open(t, store.Options{FS: fs})
	for _, name := range alike {
		if _, err := fs.Stat("data/" + name); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	without("MANIFEST-", "marker.", "OPTIONS-", ".log", ".sst", "CLEAN", "SYNCED")(t, fs)
	if s, err := store.Open(store.Options{Dir: "data", FS: fs}); err == nil {
		t.Error("messages without what leads to them: it opens", s.Close())
	} else if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("messages without what leads to them: %v", err)
	}
}

func create(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("data", name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCrash_segmentOfWhatWaits: a segment that was begun by messages which are with their keys too, and which the power loss took,
// is no damage when the log that says so was not known to be on the disk. When it is there it stays.
func TestCrash_segmentOfWhatWaits(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour})
	waits := record(t, "T", "waits", 0)
	waits.Due = s.Now() + time.Hour.Milliseconds()
	put(t, s, "T", waits)
	killed, cut := killed(fs), killed(fs)
	for _, name := range files(t, cut, ".messages") {
		if err := cut.Remove("data/" + name); err != nil {
			t.Fatal(err)
		}
	}
	o := store.Options{FS: cut, Flush: store.FlushAsync}
	if _, next, _ := open(t, o).Bounds("T", 0); next != 0 {
		t.Errorf("it has %d messages; its segment was lost", next)
	}
	o.FS = killed
	if _, next, _ := open(t, o).Bounds("T", 0); next != 1 {
		t.Errorf("after the process was killed it has %d messages", next)
	}
	o.FS = killed.CrashClone(vfs.CrashCloneCfg{})
	if _, next, _ := open(t, o).Bounds("T", 0); next != 1 {
		t.Errorf("after the power was cut it has %d messages", next)
	}
}

// onCreate does something before the nth file with a part in its name is made.
type onCreate struct {
	vfs.FS
	part string
	n    int
	do   func()
	mu   sync.Mutex
}

func (c *onCreate) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c.mu.Lock()
	if strings.Contains(name, c.part) {
		if c.n--; c.n == 0 {
			c.do()
		}
	}
	c.mu.Unlock()
	return c.FS.Create(name, category)
}

func (c *onCreate) Unwrap() vfs.FS { return c.FS }

// TestCrash_betweenTwoLogs: a log that was closed is known to be on the disk before there is another one. What is missing of that is
// damage.
func TestCrash_betweenTwoLogs(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	var left, cut *vfs.MemFS
	fs := &onCreate{FS: mem, part: ".log", n: 3, do: func() { left, cut = killed(mem), mem.CrashClone(vfs.CrashCloneCfg{}) }}
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour, MemTableBytes: 64 << 10, SegmentBytes: 10_000})
	stored := int64(0)
	for ; left == nil && stored < 10_000; stored++ {
		put(t, s, "T", record(t, "T", strings.Repeat("x", 100), 0))
	}
	if left == nil {
		t.Fatal("no second log was made")
	}
	for name, fs := range map[string]*vfs.MemFS{"killed": left, "power cut": cut} {
		look := open(t, store.Options{FS: fs, Flush: store.FlushAsync})
		if _, next, _ := look.Bounds("T", 0); next < stored-1 {
			t.Errorf("%s: it has %d messages of %d", name, next, stored-1)
		}
		checkDense(t, look, "T", 0)
	}
}

// TestCrash_betweenTwoLogsWithDamage is the same with a segment less.
func TestCrash_betweenTwoLogsWithDamage(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	var left *vfs.MemFS
	fs := &onCreate{FS: mem, part: ".log", n: 3, do: func() { left = killed(mem) }}
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour, MemTableBytes: 64 << 10, SegmentBytes: 10_000})
	for range 10_000 {
		if put(t, s, "T", record(t, "T", strings.Repeat("x", 100), 0)); left != nil {
			break
		}
	}
	bad := files(t, left, ".messages")[1]
	if err := left.Remove("data/" + bad); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Open(store.Options{Dir: "data", FS: left, Flush: store.FlushAsync}); err == nil {
		_, next, _ := s.Bounds("T", 0)
		t.Errorf("it opens with %d messages: %v", next, s.Close())
	} else if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), bad) {
		t.Errorf("opening says %v", err)
	}
}

// lazyDisk says that logs are on the disk and leaves them to the operating system.
type lazyDisk struct{ vfs.FS }

type lazyFile struct{ vfs.File }

func (d lazyDisk) Unwrap() vfs.FS { return d.FS }

func (d lazyDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = lazyFile{f}
	}
	return f, err
}

func (lazyFile) Sync() error                { return nil }
func (lazyFile) SyncData() error            { return nil }
func (lazyFile) SyncTo(int64) (bool, error) { return false, nil }

// TestCrash_twice: the process was killed before its last writes were on the disk, and the power goes while the folder is opened again.
// What the first one left must not be torn behind the next log, and no mark may say that it was on the disk.
func TestCrash_twice(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"MANIFEST", ".log", "marker"} {
		for _, flush := range []store.Flush{store.FlushSync, store.FlushAsync} {
			mem := vfs.NewCrashableMem()
			s := open(t, store.Options{FS: lazyDisk{mem}})
			for range 20 {
				put(t, s, "T", record(t, "T", strings.Repeat("x", 10_000), 0))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			without("CLEAN")(t, mem)
			var left *vfs.MemFS
			open(t, store.Options{FS: &onCreate{FS: mem, part: part, n: 1, do: func() { left = mem.CrashClone(vfs.CrashCloneCfg{}) }}, Flush: flush})
			if left == nil {
				t.Fatalf("opening made no %s", part)
			}
			look, err := store.Open(store.Options{Dir: "data", FS: left, Flush: flush})
			if err != nil {
				t.Errorf("power cut at %s under %s: %v", part, flush, err)
				continue
			}
			checkDense(t, look, "T", 0)
			if err := look.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSegments_thatWereNotSynchronized because another one could not be are not taken for being on the disk when the store is open again.
func TestSegments_thatWereNotSynchronized(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		fs := faultfs.New(mem)
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour, MemTableBytes: 64 << 10, SegmentBytes: 10_000})
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Name: "00000000000000000000.messages", Err: syscall.EIO})
		for s.Err() == nil { // until Pebble leaves the log
			_ = s.Apply(change(t, strings.Repeat("x", 100)))
		}
		lift()
		<-time.After(time.Minute)
		synctest.Wait()
		if err := s.Err(); err != nil {
			t.Fatalf("after the fault: %v", err)
		}
		_, stored, _ := s.Bounds("T", 0)
		look := open(t, store.Options{FS: mem.CrashClone(vfs.CrashCloneCfg{}), Flush: store.FlushAsync})
		if _, next, _ := look.Bounds("T", 0); next < stored {
			t.Errorf("%d messages of %d are left after the power was cut", next, stored)
		}
		checkDense(t, look, "T", 0)
	})
}

// TestSegments_writingAnewFails on a full disk, and leaves the disk as it was.
func TestSegments_writingAnewFails(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := faultfs.New(vfs.NewMem())
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync})
		put(t, s, "T", record(t, "T", "0", 0))
		_, liftSync := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".messages", Err: syscall.EIO})
		full, liftFull := fs.Inject(faultfs.Fault{Op: faultfs.Write, Suffix: ".messages.tmp", Err: syscall.ENOSPC})
		<-full
		liftSync()
		<-time.After(10 * time.Second)
		synctest.Wait()
		if left := files(t, fs, ".tmp"); len(left) != 0 {
			t.Errorf("while it cannot be written anew there is %v", left)
		}
		liftFull()
		<-time.After(time.Minute)
		put(t, s, "T", record(t, "T", "1", 0))
		checkDense(t, s, "T", 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		create(t, fs, "00000000000000000000.messages.tmp") // The process was killed meanwhile.
		checkDense(t, open(t, store.Options{FS: fs}), "T", 0)
		if left := files(t, fs, ".tmp"); len(left) != 0 {
			t.Errorf("%v stays", left)
		}
	})
}
