package store

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// file is one open file.
type file struct {
	vfs.File
	disk    *disk
	lazy    bool // synchronized by the disk's interval
	early   bool // by it or by the segments, and when much was written
	tells   bool // a failed synchronization is told to the store and kept from Pebble, which would end the process
	folder  bool
	decides bool // see decides
	name    string
	written atomic.Int64 // how many bytes are in the file
	safe    atomic.Int64 // how many of them are on the disk, if it is lazy or a segment
	whole   atomic.Int64 // how many of them are whole batches, if it is lazy
	noted   int64        // up to where SYNCED says that it is on the disk; guarded by the disk's syncing
}

// Write is part of vfs.File. What was written before the disk was full is not written again.
func (f *file) Write(p []byte) (int, error) {
	return f.write(p, func(p []byte, _ int64) (int, error) { return f.File.Write(p) }, f.written.Load())
}

// WriteAt is part of vfs.File. What is written follows what was, with a hole or without.
func (f *file) WriteAt(p []byte, at int64) (int, error) { return f.write(p, f.File.WriteAt, at) }

func (f *file) write(p []byte, write func(p []byte, at int64) (int, error), at int64) (int, error) {
	if f.isFrozen() {
		return len(p), nil
	}
	written := 0
	err := f.disk.insist(func() error {
		n, err := write(p[written:], at+int64(written))
		written += n
		f.written.Store(at + int64(written))
		return err
	})
	if f.early && f.written.Load()-f.safe.Load() >= syncStep {
		select {
		case f.disk.much <- struct{}{}:
		default:
		}
	}
	return written, err
}

func (f *file) isFrozen() bool { return f.decides && f.disk.isFrozen() }

// Sync is part of vfs.File.
func (f *file) Sync() error { return f.sync(f.File.Sync) }

// SyncData is part of vfs.File.
func (f *file) SyncData() error { return f.sync(f.File.SyncData) }

func (f *file) sync(do func() error) error {
	switch {
	case f.isFrozen():
		return nil
	case f.lazy:
		f.whole.Store(f.written.Load()) // Pebble synchronizes behind a batch, and the next one waits for that.
		return nil
	}
	err := do()
	if err != nil && f.tells && !f.folder {
		f.disk.doubts.add(f.name)
	}
	return f.synced(err)
}

// synced is what Pebble is told of a synchronization.
func (f *file) synced(err error) error {
	if err == nil {
		return nil
	}
	if opening, told := f.disk.opening(f, err); opening {
		return told
	}
	if strings.HasSuffix(f.name, ".blob") {
		// Pebble would end the process by a nil pointer. It is kept from going on, nothing of it may follow.
		f.disk.onLost(fmt.Errorf("synchronizing %s: %w", f.name, err))
		select {}
	}
	if !f.tells {
		// Pebble writes the file again, at once and for ever: slowly, then, and whoever waits is told.
		f.disk.wait(err)
		f.disk.pause()
		f.disk.waitOver()
		return err
	}
	f.disk.fail(fmt.Errorf("synchronizing %s: %w", f.name, err))
	return nil
}

// SyncTo is part of vfs.File.
func (f *file) SyncTo(length int64) (bool, error) {
	if f.lazy {
		return false, nil // What is not a whole batch may be asked for.
	}
	return f.File.SyncTo(length)
}

// Close is part of vfs.File. A log is on the disk when it is closed, with the messages that it points to: the next one must not
// survive it, nor the tables that Pebble makes of it. SYNCED says so: until there is a next one it is the last.
func (f *file) Close() error {
	if !f.lazy {
		return f.File.Close()
	}
	syncing, closing := f.syncAndClose()
	return errors.Join(f.synced(syncing), closing)
}

func (f *file) syncAndClose() (syncing, closing error) {
	f.disk.syncing.Lock()
	defer f.disk.syncing.Unlock()
	syncing = f.disk.syncLogsLocked(true)
	f.disk.mu.Lock()
	delete(f.disk.logs, f)
	f.disk.mu.Unlock()
	return syncing, f.File.Close()
}
