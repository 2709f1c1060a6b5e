package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncStep is how much of a log FlushAsync leaves to the operating system alone.
const syncStep = 4 << 20

// retryPause is how long a write waits before it is tried again.
const retryPause = 250 * time.Millisecond

// disk is the file system that Pebble works on. A write that fails, because the disk is full or for another reason, is tried
// again until it does not, because Pebble does not get over a failed write of its log; whoever waits for it is told by
// onStuck. A failed synchronization is not tried again, which would say nothing of what the disk has; it freezes the disk, see
// frozen.go. Under FlushAsync the log is synchronized by syncLogs instead of by Pebble.
type disk struct {
	vfs.FS
	diskEvents
	dir   string
	flush Flush

	ctx      context.Context //nolint:containedctx // ends the waits of all files
	cancel   context.CancelFunc
	messages func() error // brings the segments to the disk
	patient  atomic.Bool  // set once the store is open: until then an error is one
	frozen   atomic.Pointer[error]
	doubts   doubts

	syncing sync.Mutex // held while logs are synchronized, which are noted in order
	broken  error      // why that failed: it is not tried again, it would work and say nothing; guarded by syncing
	unnoted error      // why the last note could not be written; guarded by syncing

	mu      sync.Mutex
	unsure  error              // of a folder that could not be synchronized while the store was opened
	waiting int                // writes that wait
	reason  error              // of the first of them
	logs    map[*file]struct{} // under FlushAsync, those that are open
	much    chan struct{}      // one of them has syncStep that is not on the disk
}

// diskEvents are what a store is told of its disk.
type diskEvents struct {
	onStuck  func(error) // a write waits
	onFail   func(error) // what is on the disk is not known
	onLost   func(error) // so is Pebble's state
	onDamage func(path, detail string)
}

func newDisk(fs vfs.FS, dir string, flush Flush, events diskEvents) *disk {
	d := &disk{FS: fs, diskEvents: events, dir: dir, flush: flush, logs: make(map[*file]struct{}), much: make(chan struct{}, 1)}
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
	if strings.HasPrefix(d.FS.PathBase(name), "marker.") {
		// It names a description. A power loss may keep the one's name in the folder and not the other's.
		if err := d.syncFolder(); err != nil {
			return nil, err
		}
	}
	if decides(name) && d.isFrozen() {
		return d.nowhere(name)
	}
	var f vfs.File
	err := d.insist(func() (err error) {
		f, err = d.FS.Create(name, category)
		return err
	})
	return d.made(name, f, err)
}

// ReuseForWrite is part of vfs.FS.
func (d *disk) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if decides(newName) && d.isFrozen() {
		return d.nowhere(newName)
	}
	var f vfs.File
	err := d.insist(func() (err error) {
		f, err = d.FS.ReuseForWrite(oldName, newName, category)
		return err
	})
	return d.made(newName, f, err)
}

// made is wrap of a file that was waited for until it was made, or the store was closed. Without its next log Pebble would end the
// process by a panic: it is kept from going on instead.
func (d *disk) made(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil && d.patient.Load() && strings.HasSuffix(name, ".log") {
		d.onLost(fmt.Errorf("making %s: %w", name, err))
		select {}
	}
	return d.wrap(name, f, err)
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
	return &file{File: f, disk: d, name: name, tells: true, folder: true, decides: true}, nil
}

func (d *disk) syncFolder() error {
	f, err := d.OpenDir(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *disk) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	isLog := strings.HasSuffix(name, ".log")
	w := &file{File: f, disk: d, name: name, lazy: isLog && d.flush == FlushAsync, tells: isLog, decides: decides(name)}
	w.early = w.lazy || strings.HasSuffix(name, segmentSuffix)
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

// syncLoop brings the log to the disk every interval, and whenever much was written: Pebble closes a log between two commits, and all
// writers would wait for as much as is not on the disk then.
func (d *disk) syncLoop(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = d.syncLogs(true) // The store was told what failed; what could not be noted is noted the next time.
		case <-d.much:
			_ = d.syncLogs(false) // Likewise.
		case <-ctx.Done():
			return
		}
	}
}

// syncLogs brings what was written to the log to the disk, and notes how much that is. The messages are there first: the log
// points to them. What was written before it was called is on the disk when it returns, or the store was told. The error is why SYNCED
// does not say all that it should: the disk is full.
func (d *disk) syncLogs(note bool) (unnoted error) {
	d.syncing.Lock()
	err := d.syncLogsLocked(note)
	unnoted = d.unnoted
	d.syncing.Unlock()
	if err != nil {
		d.fail(err)
	}
	return unnoted
}

func (d *disk) syncLogsLocked(note bool) error {
	if d.broken == nil {
		d.broken = d.syncOpenLogs(note)
	}
	return d.broken
}

func (d *disk) syncOpenLogs(note bool) error {
	type open struct {
		*file
		written, whole int64
	}
	var logs []open
	d.mu.Lock()
	for f := range d.logs {
		whole, written := f.whole.Load(), f.written.Load()
		if written > f.safe.Load() || note && whole > f.noted {
			logs = append(logs, open{f, written, whole})
		}
	}
	d.mu.Unlock()
	slices.SortFunc(logs, func(a, b open) int { return strings.Compare(a.name, b.name) }) // The note of the last one stays.
	err := d.messages()
	for _, f := range logs {
		if err == nil {
			if err = f.File.SyncData(); err != nil {
				d.doubts.add(f.name)
			}
		}
		if err == nil {
			f.safe.Store(f.written)
			if note {
				err = d.note(f.file, f.whole)
			}
		}
	}
	return err
}

// note writes how much of a log is on the disk. When the disk is full, that has time.
func (d *disk) note(f *file, whole int64) error {
	d.unnoted = writeSynced(d.FS, d.dir, d.FS.PathBase(f.name), whole)
	switch {
	case d.unnoted == nil:
		f.noted = whole
	case !isFull(d.unnoted):
		return d.unnoted
	}
	return nil
}
