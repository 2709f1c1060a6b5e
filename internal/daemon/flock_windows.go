package daemon

import (
	"os"

	"golang.org/x/sys/windows"
)

// errTaken is flock's answer when another process has the lock.
const errTaken = windows.ERROR_LOCK_VIOLATION

// flock takes the lock of a file without waiting. It covers a byte behind the pid, which others must be able to read.
func flock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) //nolint:wrapcheck // as flock_unix.go
}
