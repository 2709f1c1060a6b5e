//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// ErrTaken is Take's answer when another process has the lock.
const ErrTaken = unix.EWOULDBLOCK

// Take takes the lock of a file without waiting.
func Take(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec,wrapcheck // descriptors are small; the caller says what it locks
}
