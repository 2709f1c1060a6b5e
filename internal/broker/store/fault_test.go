package store_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

func change(t *testing.T, body string) *store.Change {
	t.Helper()
	return &store.Change{Appends: []store.Append{{Topic: "T", Records: []store.Record{record(t, "T", body, 0)}}}}
}

// TestFullDisk_isRefusedBeforeItIsFull and allows again without a restart.
func TestFullDisk_isRefusedBeforeItIsFull(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := faultfs.New(vfs.NewMem())
		s := open(t, store.Options{FS: fs, MinFree: 100 << 20})
		put(t, s, "T", record(t, "T", "0", 0))
		fs.SetUsage(10<<30, 99<<20)
		<-time.After(time.Second)
		err := s.Apply(change(t, "refused"))
		if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "99 MiB left, and 100 MiB are kept free") {
			t.Errorf("a disk with too little space: %v", err)
		}
		// What is no message goes on: reads, offsets, and what ends.
		if r := read(t, s, "T", 0, limits, nil); len(r.Messages) != 1 {
			t.Errorf("read %+v", r)
		}
		s.Set(store.Value{Table: "t", Key: "k", Value: []byte("v")})
		if err := settled(s); err != nil {
			t.Errorf("an offset: %v", err)
		}
		fs.SetUsage(10<<30, 101<<20)
		<-time.After(time.Second)
		put(t, s, "T", record(t, "T", "1", 0))
		checkDense(t, s, "T", 0)
	})
}

// TestFullDisk_isSaidAtTheStart and opens when there is space again: Pebble would write its tables without end.
func TestFullDisk_isSaidAtTheStart(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs})
	for range 400 {
		put(t, s, "T", record(t, "T", strings.Repeat("x", 15<<10), 0))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fs.SetUsage(10<<30, 5<<20)
	if s, err := store.Open(store.Options{Dir: "data", FS: fs}); err == nil {
		t.Fatal("a disk with too little space: it opens", s.Close())
	} else if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "5 MiB are left, and opening it may need") {
		t.Errorf("a disk with too little space: %v", err)
	}
	fs.SetUsage(10<<30, 1<<30)
	checkDense(t, open(t, store.Options{FS: fs}), "T", 0)
}

func settled(s *store.Store) error {
	result := make(chan error, 1)
	s.Settled(s.Mark(), func(err error) { result <- err })
	return <-result
}

// TestStuckDisk_recovers is a disk that takes nothing for a while: what waits is told so, nothing is lost, nothing is torn,
// and it goes on by itself.
func TestStuckDisk_recovers(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultfs.Fault{
		"log full":              {Op: faultfs.Write, Suffix: ".log", Err: syscall.ENOSPC},
		"log cannot be written": {Op: faultfs.Write, Suffix: ".log", Err: syscall.EIO},
		"quota":                 {Op: faultfs.Write, Suffix: ".log", Err: syscall.EDQUOT},
		"segment full":          {Op: faultfs.Write, Suffix: ".messages", Err: syscall.ENOSPC},
		"no segment made":       {Op: faultfs.Create, Suffix: ".messages", Err: syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) { stuck(t, fault) })
		})
	}
}

func stuck(t *testing.T, fault faultfs.Fault) {
	t.Helper()
	want := store.ErrFull
	if fault.Err == syscall.EIO { //nolint:errorlint // it is this one
		want = store.ErrFailed
	}
	fs := faultfs.New(vfs.NewMem())
	resumed := 0
	o := store.Options{FS: fs, SegmentBytes: 1, Resumed: func() { resumed++ }}
	if fault.Suffix == ".messages" {
		o.Flush = store.FlushAsync
	}
	s := open(t, o)
	put(t, s, "T", record(t, "T", "0", 0))
	_, lift := fs.Inject(fault)
	if err := s.Apply(change(t, "1")); !errors.Is(err, want) || !errors.Is(err, fault.Err) {
		t.Errorf("while stuck: %v", err)
	}
	if err := s.Apply(change(t, "refused")); !errors.Is(err, want) {
		t.Errorf("then: %v", err)
	}
	if r := read(t, s, "T", 0, limits, nil); len(r.Messages) != 1 {
		t.Errorf("read %+v", r)
	}
	<-time.After(time.Minute)
	lift()
	<-time.After(time.Second)
	synctest.Wait()
	if err := s.Err(); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	if resumed != 1 {
		t.Errorf("told %d times that something was stored after all", resumed)
	}
	put(t, s, "T", record(t, "T", "2", 0))
	raws, err := s.Messages("T", 0, 0, 0)
	if err != nil || len(raws) != 3 {
		t.Fatalf("%d messages, %v; the one that was told to be refused is stored too", len(raws), err)
	}
	checkDense(t, s, "T", 0)
}

// TestFailedSync_opensAgain is a disk that fails to synchronize: what it has is unknown, so the store is opened again.
func TestFailedSync_opensAgain(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := faultfs.New(vfs.NewMem())
		reopened := 0
		s := open(t, store.Options{FS: fs, Reopened: func() error { reopened++; return nil }})
		for i := range 10 {
			put(t, s, "T", record(t, "T", fmt.Sprint(i), 0))
		}
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
		if err := s.Apply(change(t, "unknown")); !errors.Is(err, store.ErrFailed) || !errors.Is(err, syscall.EIO) {
			t.Errorf("a failed synchronization: %v", err)
		}
		if err := s.Apply(change(t, "refused")); !errors.Is(err, store.ErrFailed) {
			t.Errorf("then: %v", err)
		}
		lift()
		<-time.After(30 * time.Second)
		synctest.Wait()
		if err := s.Err(); err != nil || reopened != 1 {
			t.Fatalf("after the fault: %v, opened again %d times", err, reopened)
		}
		put(t, s, "T", record(t, "T", "after", 0))
		raws, err := s.Messages("T", 0, 0, 0)
		if err != nil || len(raws) < 11 || len(raws) > 12 {
			t.Fatalf("%d messages, %v", len(raws), err)
		}
		checkDense(t, s, "T", 0)
	})
}

// TestFaults_everywhere lets single operations fail while much is stored and moved, and loses nothing of what was stored.
func TestFaults_everywhere(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultfs.Fault{
		{Op: faultfs.Create, Suffix: ".log"},
		{Op: faultfs.Create, Suffix: ".sst"},
		{Op: faultfs.Create, Suffix: ".blob"},
		{Op: faultfs.Write, Suffix: ".sst"},
		{Op: faultfs.Write, Suffix: ".blob"},
		{Op: faultfs.Write, Name: "MANIFEST"},
		{Op: faultfs.Sync, Suffix: ".sst"},
		{Op: faultfs.Create, Suffix: ".messages"},
		{Op: faultfs.Write, Suffix: ".messages"},
		{Op: faultfs.Sync, Suffix: ".messages"},
	} {
		t.Run(fmt.Sprint(fault.Op, " ", fault.Suffix, fault.Name), func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) {
				fault.Err = syscall.EIO
				faulty(t, fault)
			})
		})
	}
}

func faulty(t *testing.T, fault faultfs.Fault) {
	t.Helper()
	fs := faultfs.New(vfs.NewMem())
	o := store.Options{FS: fs, MemTableBytes: 64 << 10, SegmentBytes: 64 << 10}
	if fault.Suffix == ".messages" {
		o.Flush = store.FlushAsync
	}
	s := open(t, o)
	stored := map[int64]bool{}
	write := func(n int) {
		for i := range n {
			c := change(t, fmt.Sprint(i, strings.Repeat("x", 1000)))
			if s.Apply(c) == nil {
				stored[c.Appends[0].Positions[0].LogOffset] = true
			}
		}
	}
	write(100)
	hit, lift := fs.Inject(fault)
	write(200)
	<-hit
	lift()
	<-time.After(time.Minute)
	synctest.Wait()
	if err := s.Err(); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
	write(100)
	for offset := range stored {
		if _, ok := lookup(t, s, offset); !ok {
			t.Fatal("a stored message is gone")
		}
	}
	checkDense(t, s, "T", 0)
	if len(stored) < 200 {
		t.Errorf("only %d messages were stored", len(stored))
	}
}

// TestRead_failsLoudly never takes a disk that cannot be read for an empty queue.
func TestRead_failsLoudly(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	s := open(t, store.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1})
	for i := range 300 {
		put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
	}
	_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Read, Err: syscall.EIO})
	if r, err := s.Read("T", 0, 0, limits, store.Match{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("reading: %+v, %v", r, err)
	}
	if _, _, err := s.Lookup(0); !errors.Is(err, syscall.EIO) {
		t.Errorf("looking up: %v", err)
	}
	if _, err := s.Search("T", 0, 1, false); !errors.Is(err, syscall.EIO) {
		t.Errorf("searching: %v", err)
	}
	lift()
	if r := read(t, s, "T", 0, limits, nil); len(r.Messages) != 4 {
		t.Errorf("after the fault: %+v", r)
	}
}

// TestOpen_refuses what must not be opened, and says why and what to do.
func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	stored := func(t *testing.T) *vfs.MemFS {
		t.Helper()
		fs := vfs.NewMem()
		s := open(t, store.Options{FS: fs, MemTableBytes: 64 << 10})
		for i := range 300 {
			put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return fs
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, fs *vfs.MemFS)
		want  error
		says  string
	}{
		"newer format":   {newer, store.ErrNewer, "format 99"},
		"no description": {without("MANIFEST-", "marker.manifest"), store.ErrDamaged, "MANIFEST-"},
		"no log":         {without(".log"), store.ErrDamaged, ".log"},
		"no table":       {without(".sst"), store.ErrDamaged, "(type sstable)"},
		"broken description": {func(t *testing.T, fs *vfs.MemFS) {
			t.Helper()
			spoil(t, fs, "MANIFEST-", 50)
		}, store.ErrDamaged, "MANIFEST-"},
		"broken log": {func(t *testing.T, fs *vfs.MemFS) {
			t.Helper()
			spoil(t, fs, ".log", 500)
		}, store.ErrDamaged, ".log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := stored(t)
			c.spoil(t, fs)
			s, err := store.Open(store.Options{Dir: "data", FS: fs})
			if err == nil {
				t.Fatal("was opened", s.Close())
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "data") {
				t.Errorf("%v; want %v, and %q named", err, c.want, c.says)
			}
		})
	}
}

func newer(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	without("CLEAN")(t, fs)
	db, err := pebble.Open("data", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatValueSeparation, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("v"), []byte{0, 0, 0, 99}, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// without removes files by parts of their names.
func without(parts ...string) func(*testing.T, *vfs.MemFS) {
	return func(t *testing.T, fs *vfs.MemFS) {
		t.Helper()
		names, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for _, part := range parts {
				if strings.Contains(name, part) {
					if err := fs.Remove("data/" + name); err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// spoil turns the bits of one byte of each file with such a name that is so long.
func spoil(t *testing.T, fs *vfs.MemFS, part string, at int64) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(name, part) || strings.Contains(name, "marker") {
			continue
		}
		if info, err := fs.Stat("data/" + name); err != nil || info.Size() <= at {
			continue
		}
		f, err := fs.OpenReadWrite("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0xff
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen_onlyOnce(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]store.Options{"memory": {Dir: "data", FS: vfs.NewMem()}, "disk": {Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Open(o); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), o.Dir) {
				t.Errorf("opened twice: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = store.Open(o); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestOpen_folderCannotBeSynchronized is an error, and no end of the process.
func TestOpen_folderCannotBeSynchronized(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(vfs.NewMem())
	for range 2 {
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: "data", Err: syscall.EIO})
		if s, err := store.Open(store.Options{Dir: "data", FS: fs}); err == nil {
			t.Error("it opens", s.Close())
		} else if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "synchronizing data") {
			t.Errorf("opening says %v", err)
		}
		lift()
		s := open(t, store.Options{FS: fs})
		put(t, s, "T", record(t, "T", "x", 0))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpen_logCannotBeSynchronized is an error, and no end of the process.
func TestOpen_logCannotBeSynchronized(t *testing.T) {
	t.Parallel()
	failed := 0
	for after := range 10 {
		fs := faultfs.New(vfs.NewMem())
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO, After: after})
		s, err := store.Open(store.Options{Dir: "data", FS: fs})
		switch {
		case err == nil:
			lift()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		case !errors.Is(err, syscall.EIO):
			t.Errorf("opening says %v", err)
		}
		failed++
		lift()
		s = open(t, store.Options{FS: fs})
		put(t, s, "T", record(t, "T", "x", 0))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if failed == 0 || failed == 10 {
		t.Errorf("%d of 10 failed", failed)
	}
}

func TestOpen_folderNotWritable(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(store.Options{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as folder: %v", err)
	}
	fs := faultfs.New(vfs.NewMem())
	fs.Inject(faultfs.Fault{Op: faultfs.Create, Err: &os.PathError{Op: "open", Path: "data/x", Err: syscall.EACCES}})
	if _, err := store.Open(store.Options{Dir: "data", FS: fs}); err == nil || !strings.Contains(err.Error(), "it cannot be written") {
		t.Errorf("a folder that is not writable: %v", err)
	}
	fs = faultfs.New(vfs.NewMem())
	fs.Inject(faultfs.Fault{Op: faultfs.Write, Err: syscall.ENOSPC})
	if _, err := store.Open(store.Options{Dir: "data", FS: fs}); !errors.Is(err, store.ErrFull) {
		t.Errorf("a full disk: %v", err)
	}
}
