package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// doubts are the files that a synchronization of failed. What the disk has of them is not known, and the next synchronization would
// say that it has all: the operating system gave up on what it could not write, and still reads it from memory.
type doubts struct {
	mu    sync.Mutex
	paths []string
}

func (d *doubts) add(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.paths, path) {
		d.paths = append(d.paths, path)
	}
}

// renew writes again what is in doubt. Nobody has it open.
func (d *doubts) renew(fs vfs.FS, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.paths) > 0 {
		name := fs.PathBase(d.paths[0])
		info, err := fs.Stat(d.paths[0])
		if err == nil {
			err = cutFile(fs, dir, name, info.Size())
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // Whether one is missing is looked at later.
			return fmt.Errorf("writing %s again, which could not be synchronized: %w", name, err)
		}
		d.paths = d.paths[1:]
	}
	return nil
}
