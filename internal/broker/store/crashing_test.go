package store_test

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crashing takes what a crash would leave right before one of the operations that change its files.
type crashing struct {
	vfs.FS
	mu    sync.Mutex
	after int // so many operations
	crash func()
	each  func() // right before each of them
}

func (c *crashing) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.after--; c.after == 0 {
		c.crash()
	}
	if c.each != nil {
		c.each()
	}
}

// before has something done right before each operation from now on.
func (c *crashing) before(each func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.each = each
}

type crashingFile struct {
	vfs.File
	fs *crashing
}

func (c *crashing) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return crashingFile{f, c}, nil
}

func (c *crashing) Unwrap() vfs.FS { return c.FS }

func (c *crashing) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c.step()
	return c.file(c.FS.Create(name, category))
}

func (c *crashing) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c.step()
	return c.file(c.FS.ReuseForWrite(old, name, category))
}

func (c *crashing) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	return c.file(c.FS.Open(name, options...))
}

func (c *crashing) OpenDir(name string) (vfs.File, error) { return c.file(c.FS.OpenDir(name)) }

func (c *crashing) Rename(old, name string) error {
	c.step()
	return c.FS.Rename(old, name)
}

func (c *crashing) Remove(name string) error {
	c.step()
	return c.FS.Remove(name)
}

func (f crashingFile) Write(p []byte) (int, error) {
	f.fs.step()
	return f.File.Write(p)
}

func (f crashingFile) WriteAt(p []byte, at int64) (int, error) {
	f.fs.step()
	return f.File.WriteAt(p, at)
}

func (f crashingFile) Sync() error {
	f.fs.step()
	return f.File.Sync()
}

func (f crashingFile) SyncData() error {
	f.fs.step()
	return f.File.SyncData()
}
