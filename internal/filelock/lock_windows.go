package filelock

import (
	"os"

	"golang.org/x/sys/windows"
)

// ErrTaken is Take's answer when another process has the lock.
const ErrTaken = windows.ERROR_LOCK_VIOLATION

// Take takes the lock of a file without waiting. It covers a byte far behind the text, which others must be able to read.
func Take(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) //nolint:wrapcheck // as lock_unix.go
}
