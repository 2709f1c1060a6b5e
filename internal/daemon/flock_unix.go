//go:build unix

package daemon

import (
	"os"

	"golang.org/x/sys/unix"
)

// errTaken is flock's answer when another process has the lock.
const errTaken = unix.EWOULDBLOCK

// flock takes the lock of a file without waiting.
func flock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec,wrapcheck // descriptors are small; the caller says what it locks
}
