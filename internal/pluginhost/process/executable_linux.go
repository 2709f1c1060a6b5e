package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkMount explains the EACCES that a noexec mount would give.
func (e *Executable) checkMount() error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(e.file.Fd()), &fs); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", e.Path, err)
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is on a file system mounted noexec; install the plugin elsewhere", e.Path)
	}
	if err := unix.Access(e.Path, unix.X_OK); errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%s may not be executed by uid %d; check its mode and owner", e.Path, os.Getuid())
	}
	return nil
}

// Dup returns the same opened program again; both are closed apart.
func (e *Executable) Dup() (*Executable, error) {
	fd, err := unix.FcntlInt(e.file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicating the descriptor of %s: %w", e.Path, err)
	}
	return &Executable{Path: e.Path, Checksum: e.Checksum, Script: e.Script, file: os.NewFile(uintptr(fd), e.Path)}, nil
}
