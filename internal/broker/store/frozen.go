package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A disk is frozen by a synchronization that failed and of which Pebble is not told, because it would end the process. Pebble goes on
// as if all were on the disk: it would begin the next log behind one whose end may be missing, note tables whose messages or whose
// names may be, and remove logs that these replace. A power loss would make damage of that, or lose what was acknowledged. So nothing
// that decides what counts reaches the disk any more until the store is opened again, and what is there is what a power loss, or the
// end of the process, would have left right before that synchronization. Opening copes with either.
//
// Tables, blobs and segments are written on: nothing names the new ones, and Pebble may read them meanwhile.

// decides tells whether a file is one that says what counts: a log, a description, a marker.
func decides(name string) bool {
	return !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".blob") && !strings.HasSuffix(name, segmentSuffix)
}

// fail freezes the disk and tells the store. Who writes looks for failure afterwards: what did not reach the disk is not acknowledged.
func (d *disk) fail(err error) {
	d.freeze(err)
	d.onFail(err)
}

func (d *disk) freeze(err error) { d.frozen.CompareAndSwap(nil, &err) }

// failure is why the disk is frozen; nil when it is not.
func (d *disk) failure() error {
	if err := d.frozen.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *disk) isFrozen() bool { return d.frozen.Load() != nil }

// nowhere is a file that is not on the disk.
func (d *disk) nowhere(name string) (vfs.File, error) {
	f, err := vfs.NewMem().Create(d.FS.PathBase(name), vfs.WriteCategoryUnspecified)
	return d.wrap(name, f, err)
}

// Remove is part of vfs.FS.
func (d *disk) Remove(name string) error {
	if d.isFrozen() {
		return nil
	}
	return d.FS.Remove(name)
}

// Rename is part of vfs.FS.
func (d *disk) Rename(oldName, newName string) error {
	if d.isFrozen() {
		return nil
	}
	return d.FS.Rename(oldName, newName)
}

// beginOpening has errors be errors: nobody waits until they are over. Nothing uses the disk now.
func (d *disk) beginOpening() {
	d.patient.Store(false)
	d.syncing.Lock()
	d.broken = nil
	d.syncing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsure = nil
	d.frozen.Store(nil)
}

// opening keeps from Pebble, while it opens, that a folder could not be synchronized: it would end the process by a panic. False: the
// store is open.
func (d *disk) opening(f *file, err error) (opening bool, told error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.patient.Load():
		return false, nil
	case !f.folder:
		return true, err
	}
	d.unsure = fmt.Errorf("synchronizing %s: %w", f.name, err)
	d.freeze(d.unsure)
	return true, nil
}

// kept is what is kept from Pebble while it opens.
func (d *disk) kept() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unsure
}

// opened ends the opening of the store, and returns what was kept from Pebble.
func (d *disk) opened() (unsure error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.patient.Store(true)
	unsure, d.unsure = d.unsure, nil
	return unsure
}
