package pluginhost

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/streamd/streamd/internal/frame"
)

const (
	maxLanes = 64  // lanes of one process
	rowSlots = 256 // records of one lane that can be told apart as running; beyond that all in flight are suspects
)

// sharedPage is memory without a name that host and plugin both map. It is sealed at its size, so that a plugin cannot
// shrink it under the host.
type sharedPage struct {
	page *frame.Page
	file *os.File
	mem  []byte
	once sync.Once
}

func newSharedPage() (*sharedPage, error) {
	fd, err := unix.MemfdCreate("streamd-running", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making the shared page: %w", err)
	}
	s := &sharedPage{file: os.NewFile(uintptr(fd), "streamd-running")}
	if err := s.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("making the shared page: %w", err), s.close())
	}
	return s, nil
}

func (s *sharedPage) build() error {
	size := frame.PageSize(maxLanes, rowSlots)
	fd := int(s.file.Fd())
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return err
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	s.mem = mem
	s.page, err = frame.InitPage(mem, maxLanes, rowSlots)
	return err
}

// close frees the memory; the page must not be used any more.
func (s *sharedPage) close() (err error) {
	s.once.Do(func() {
		if s.mem != nil {
			err = unix.Munmap(s.mem)
		}
		err = errors.Join(err, s.file.Close())
	})
	return err
}
