package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spaceEvery is how long a look at the disk's free space counts, in milliseconds.
const spaceEvery = 100

// space watches the disk's free space, so that messages are refused while there is still room for what must go on: offsets,
// ends of transactions, Pebble's own work. It is guarded by the Store's mutex.
type space struct {
	fs    vfs.FS
	dir   string
	least int64
	next  int64
	err   error
}

func (s *space) refusal(now int64) error {
	if now >= s.next {
		s.next = now + spaceEvery
		s.err = s.look()
	}
	return s.err
}

func (s *space) look() error {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: looking for free space in %s: %w", ErrFailed, s.dir, err)
	}
	least := min(uint64(max(s.least, 0)), usage.TotalBytes/8)
	if usage.AvailBytes < least {
		return fmt.Errorf("%w: %s has %d MiB left, and %d MiB are kept free", ErrFull, s.dir, usage.AvailBytes>>20, least>>20)
	}
	return nil
}

// openingSlack is what opening needs beside what the logs hold: a new log, a new description of the files.
const openingSlack = 4 << 20

// checkRoom refuses to open a folder whose logs do not fit on the disk once more: Pebble writes what they hold into tables
// while it opens, and on a full disk would try so without end.
func checkRoom(fs vfs.FS, dir string) error {
	usage, err := fs.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for free space: %w", err)
	}
	names, err := fs.List(dir)
	if err != nil {
		return plainly(err)
	}
	need := uint64(openingSlack)
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return plainly(err)
		}
		need += uint64(max(info.Size(), 0))
	}
	if usage.AvailBytes < need {
		return fmt.Errorf("%w: %d MiB are left, and opening it may need %d MiB: make space", ErrFull, usage.AvailBytes>>20, need>>20)
	}
	return nil
}
