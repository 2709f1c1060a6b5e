package store

import (
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/bubbletest"
)

// slow makes operations on files with a part in their names take a while.
type slow struct {
	vfs.FS
	create, sync  string
	begun         chan struct{}
	running, most atomic.Int64
	first         sync.Once
}

type slowFile struct {
	vfs.File
	fs   *slow
	name string
}

func (s *slow) pass(name, part string) {
	if part == "" || !strings.Contains(name, part) {
		return
	}
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	s.first.Do(func() { close(s.begun) })
	<-time.After(100 * time.Millisecond)
	s.running.Add(-1)
}

func (s *slow) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	s.pass(name, s.create)
	f, err := s.FS.Create(name, category)
	return &slowFile{f, s, name}, err
}

func (f *slowFile) SyncData() error {
	f.fs.pass(f.name, f.fs.sync)
	return f.File.SyncData()
}

// oneLog is a disk under FlushAsync with a log that has one batch.
func oneLog(t *testing.T, fs *slow) (*disk, vfs.File) {
	t.Helper()
	fs.FS, fs.begun = vfs.NewMem(), make(chan struct{})
	d := newDisk(fs, "", FlushAsync, diskEvents{onFail: func(err error) { t.Error(err) }})
	d.messages = func() error { return nil }
	f, err := d.Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("batch")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return d, f
}

// TestSyncLogs_waitsForALogThatIsClosed: what was written to it is on the disk when syncLogs returns.
func TestSyncLogs_waitsForALogThatIsClosed(t *testing.T) {
	t.Parallel()
	fs := &slow{sync: ".log"}
	d, f := oneLog(t, fs)
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	<-fs.begun
	if err := d.syncLogs(true); err != nil {
		t.Error(err)
	}
	if fs.running.Load() != 0 {
		t.Error("it returns while the log is not on the disk")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if log, offset, _, err := readSynced(fs, ""); log != "000001.log" || offset != 5 {
		t.Errorf("SYNCED says %s %d, %v", log, offset, err)
	}
}

// TestSyncLogs_oneAfterTheOther: the loop and retention call it, and there is one SYNCED.
func TestSyncLogs_oneAfterTheOther(t *testing.T) {
	t.Parallel()
	fs := &slow{create: syncedName}
	d, f := oneLog(t, fs)
	synced := make(chan error, 2)
	for range 2 {
		go func() { synced <- d.syncLogs(true) }()
	}
	if err := errors.Join(<-synced, <-synced, f.Close()); err != nil {
		t.Error(err)
	}
	if n := fs.most.Load(); n != 1 {
		t.Errorf("SYNCED is written by %d at once", n)
	}
}

// TestRetain_looksAnewAfterAFailure: what was seen to be gone may not have been on the disk.
func TestRetain_looksAnewAfterAFailure(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := segmented(t, 3)
		s.retain()
		for _, segment := range s.segments.spans(math.MaxInt64) {
			s.dropped.used[segment.first] = segment.end // All messages were gone.
		}
		s.fail(errors.New("and are there again"))
		<-time.After(30 * time.Second)
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		s.retain()
		if raws, err := s.Messages("T", 0, 0, 0); err != nil || len(raws) != 3 {
			t.Errorf("%d messages of 3: %v", len(raws), err)
		}
	})
}

// TestRetain_isNotByWhatWasBeforeAFailure: other messages may have the offsets.
func TestRetain_isNotByWhatWasBeforeAFailure(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := segmented(t, 3)
		s.options.RetainAge = time.Minute
		before := s.Mark()
		s.fail(errors.New("meanwhile"))
		<-time.After(30 * time.Second)
		if err := s.expire(before, s.Now()+time.Hour.Milliseconds()); !errors.Is(err, ErrFailed) {
			t.Errorf("expiring by what was read before: %v", err)
		}
		if first, next, _ := s.Bounds("T", 0); first != 0 || next != 3 {
			t.Errorf("messages %d to %d are left", first, next)
		}
	})
}

// TestEmptySegments_endWithWhatIsStored: the segment of a message that is on its way is not known yet, and the message is no part of
// the one before.
func TestEmptySegments_endWithWhatIsStored(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := segmented(t, 1)
		expired := make(chan error, 1)
		s.Expire("T", 0, 1, func(err error) { expired <- err })
		if err := <-expired; err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		stored := s.nextLog
		s.nextLog += 100 // Something is on its way.
		s.mu.Unlock()
		empty, err := s.emptySegments()
		if err != nil || len(empty) != 0 || s.dropped.used[0] != stored {
			t.Errorf("%v are empty, looked at up to %d of %d: %v", empty, s.dropped.used[0], stored, err)
		}
		s.mu.Lock()
		s.nextLog, s.left = stored, stored // It did not come.
		s.mu.Unlock()
		if empty, err = s.emptySegments(); err != nil || len(empty) != 1 || empty[0] != (span{0, stored}) {
			t.Errorf("then %v are: %v", empty, err)
		}
	})
}
