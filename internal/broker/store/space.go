package store

import (
	"errors"
	"fmt"

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
