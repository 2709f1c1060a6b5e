package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// retryPause is how long a write waits before it is tried again.
const retryPause = 250 * time.Millisecond

// disk is the file system that Pebble works on. A write that fails, because the disk is full or for another reason, is tried
// again until it does not, because Pebble does not get over a failed write of its log; whoever waits for it is told by
// onStuck. A failed synchronization is not tried again: it says nothing of what the disk has. Under FlushAsync the log is
// synchronized by syncLogs instead of by Pebble.
type disk struct {
	vfs.FS
	diskEvents
	dir   string
	flush Flush

	ctx     context.Context //nolint:containedctx // ends the waits of all files
	cancel  context.CancelFunc
	patient atomic.Bool // set once the store is open: until then an error is one

	mu      sync.Mutex
	waiting int                // writes that wait
	reason  error              // of the first of them
	logs    map[*file]struct{} // under FlushAsync, those that are open
}

// diskEvents are what a store is told of its disk.
type diskEvents struct {
	onStuck  func(error) // a write waits
	onFail   func(error) // what is on the disk is not known
	onLost   func(error) // so is Pebble's state
	onDamage func(path, detail string)
}

func newDisk(fs vfs.FS, dir string, flush Flush, events diskEvents) *disk {
	d := &disk{FS: fs, diskEvents: events, dir: dir, flush: flush, logs: make(map[*file]struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// stuck is why a write waits; nil when none does.
func (d *disk) stuck() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reason
}

// Unwrap is part of vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// Create is part of vfs.FS.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var f vfs.File
	err := d.insist(func() (err error) {
		f, err = d.FS.Create(name, category)
		return err
	})
	return d.wrap(name, f, err)
}

// ReuseForWrite is part of vfs.FS.
func (d *disk) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var f vfs.File
	err := d.insist(func() (err error) {
		f, err = d.FS.ReuseForWrite(oldName, newName, category)
		return err
	})
	return d.wrap(newName, f, err)
}

// Open is part of vfs.FS.
func (d *disk) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, options...)
	if err != nil || !strings.HasSuffix(name, ".blob") {
		return f, err
	}
	fault, err := blobFault(f)
	if fault != "" {
		d.onDamage(name, fault)
		err = errDamaged(name, fault)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenDir is part of vfs.FS.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, name: name, tells: true}, nil
}

func (d *disk) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	isLog := strings.HasSuffix(name, ".log")
	w := &file{File: f, disk: d, name: name, lazy: isLog && d.flush == FlushAsync, tells: isLog}
	if w.lazy {
		d.mu.Lock()
		d.logs[w] = struct{}{}
		d.mu.Unlock()
	}
	return w, nil
}

// insist does something until it works.
func (d *disk) insist(do func() error) error {
	err := do()
	if err == nil || !d.patient.Load() {
		return err
	}
	d.wait(err)
	defer d.waitOver()
	for d.pause() {
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

// pause waits before something is tried again; false: the store is being closed.
func (d *disk) pause() bool {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.ctx.Done():
		return false
	}
}

func (d *disk) wait(err error) {
	d.mu.Lock()
	d.waiting++
	first := d.waiting == 1
	if isFull(err) {
		d.reason = fmt.Errorf("%w: %w", ErrFull, err)
	} else {
		d.reason = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	reason := d.reason
	d.mu.Unlock()
	if first {
		d.onStuck(reason)
	}
}

func (d *disk) waitOver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting--; d.waiting == 0 {
		d.reason = nil
	}
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// syncLogs brings what was written to the log to the disk.
func (d *disk) syncLogs() {
	d.mu.Lock()
	var dirty []*file
	for f := range d.logs {
		if f.dirty.Swap(false) {
			f.busy.Add(1)
			dirty = append(dirty, f)
		}
	}
	d.mu.Unlock()
	for _, f := range dirty {
		written := f.written.Load()
		err := f.File.SyncData()
		f.busy.Done()
		if err == nil {
			err = writeSynced(d.FS, d.dir, d.FS.PathBase(f.name), written)
		}
		if err != nil {
			d.onFail(err)
		}
	}
}

// file is one open file.
type file struct {
	vfs.File
	disk  *disk
	lazy  bool // synchronized by the disk's interval
	tells bool // a failed synchronization is told to the store and kept from Pebble, which would end the process
	name  string
	dirty atomic.Bool
	// written is how many bytes are in the file.
	written atomic.Int64
	busy    sync.WaitGroup // synchronizations of syncLogs
}

// Write is part of vfs.File. What was written before the disk was full is not written again.
func (f *file) Write(p []byte) (int, error) {
	written := 0
	err := f.disk.insist(func() error {
		n, err := f.File.Write(p[written:])
		written += n
		f.written.Add(int64(n))
		return err
	})
	if f.lazy {
		f.dirty.Store(true)
	}
	return written, err
}

// Sync is part of vfs.File.
func (f *file) Sync() error {
	if f.lazy {
		return nil
	}
	return f.synced(f.File.Sync())
}

// SyncData is part of vfs.File.
func (f *file) SyncData() error {
	if f.lazy {
		return nil
	}
	return f.synced(f.File.SyncData())
}

func (f *file) synced(err error) error {
	if err == nil || !f.disk.patient.Load() {
		return err
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
	f.disk.onFail(fmt.Errorf("synchronizing %s: %w", f.name, err))
	return nil
}

// SyncTo is part of vfs.File.
func (f *file) SyncTo(length int64) (bool, error) {
	if f.lazy {
		return false, nil
	}
	return f.File.SyncTo(length)
}

// Close is part of vfs.File. A log is on the disk when it is closed: the next one must not survive it.
func (f *file) Close() error {
	if !f.lazy {
		return f.File.Close()
	}
	f.disk.mu.Lock()
	delete(f.disk.logs, f)
	f.disk.mu.Unlock()
	f.busy.Wait()
	return errors.Join(f.synced(f.File.SyncData()), f.File.Close())
}
