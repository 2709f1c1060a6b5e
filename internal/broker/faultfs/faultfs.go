// Package faultfs is a file system that fails on demand, for tests of what a broker does about its disk.
//
// An FS passes everything on to the one it wraps until a Fault is injected. It is safe for concurrent use and starts no
// goroutines.
package faultfs

import (
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Op is what may fail.
type Op string

// The operations.
const (
	Create Op = "create" // and reuse
	Open   Op = "open"
	Read   Op = "read"
	Write  Op = "write"
	Sync   Op = "sync"
)

// Fault is an error in place of an operation.
type Fault struct {
	Op Op
	// Suffix is how the names of the files end that it concerns, such as ".log"; Name is a part of their names. "" = all.
	Suffix, Name string
	Err          error
	// After is how many operations pass before the first fails.
	After int
}

func (f *Fault) concerns(op Op, name string) bool {
	return f.Op == op && strings.HasSuffix(name, f.Suffix) && strings.Contains(name, f.Name)
}

// FS fails on demand.
type FS struct {
	vfs.FS
	mu     sync.Mutex
	faults []*injected
	usage  *vfs.DiskUsage
}

type injected struct {
	Fault
	hit chan struct{} // closed when it first strikes
}

// New wraps a file system.
func New(fs vfs.FS) *FS { return &FS{FS: fs} }

// Inject adds a fault until lift is called. hit is closed when it first strikes.
func (f *FS) Inject(fault Fault) (hit <-chan struct{}, lift func()) {
	i := &injected{fault, make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, i)
	return i.hit, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(o *injected) bool { return o == i })
	}
}

// SetUsage says how full the disk is from now on.
func (f *FS) SetUsage(total, free uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usage = &vfs.DiskUsage{TotalBytes: total, AvailBytes: free, UsedBytes: total - free}
}

func (f *FS) check(op Op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.faults {
		if !i.concerns(op, name) {
			continue
		}
		if i.After > 0 {
			i.After--
			continue
		}
		select {
		case <-i.hit:
		default:
			close(i.hit)
		}
		return i.Err
	}
	return nil
}

// Unwrap is part of vfs.FS.
func (f *FS) Unwrap() vfs.FS { return f.FS }

// GetDiskUsage is part of vfs.FS.
func (f *FS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	f.mu.Lock()
	usage := f.usage
	f.mu.Unlock()
	if usage != nil {
		return *usage, nil
	}
	return f.FS.GetDiskUsage(path)
}

// Create is part of vfs.FS.
func (f *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.check(Create, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.FS.Create(name, category))
}

// ReuseForWrite is part of vfs.FS.
func (f *FS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.check(Create, newName); err != nil {
		return nil, err
	}
	return f.wrap(newName)(f.FS.ReuseForWrite(oldName, newName, category))
}

// Open is part of vfs.FS.
func (f *FS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if err := f.check(Open, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.FS.Open(name, options...))
}

// OpenDir is part of vfs.FS. A folder can fail to be synchronized.
func (f *FS) OpenDir(name string) (vfs.File, error) { return f.wrap(name)(f.FS.OpenDir(name)) }

func (f *FS) wrap(name string) func(vfs.File, error) (vfs.File, error) {
	return func(inner vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		return &file{inner, f, name}, nil
	}
}

type file struct {
	vfs.File
	fs   *FS
	name string
}

// Read is part of vfs.File.
func (f *file) Read(p []byte) (int, error) {
	if err := f.fs.check(Read, f.name); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// ReadAt is part of vfs.File.
func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fs.check(Read, f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

// Write is part of vfs.File.
func (f *file) Write(p []byte) (int, error) {
	if err := f.fs.check(Write, f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// WriteAt is part of vfs.File.
func (f *file) WriteAt(p []byte, at int64) (int, error) {
	if err := f.fs.check(Write, f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// Sync is part of vfs.File.
func (f *file) Sync() error {
	if err := f.fs.check(Sync, f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData is part of vfs.File.
func (f *file) SyncData() error {
	if err := f.fs.check(Sync, f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}
