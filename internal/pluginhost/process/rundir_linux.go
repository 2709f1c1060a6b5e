package process

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

func supported() error { return nil }

func flock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:wrapcheck // the caller says what it locks
}

// checkBase refuses a directory in which somebody else could put another one in our place.
func checkBase(base string) error {
	var st unix.Stat_t
	if err := unix.Stat(base, &st); err != nil {
		return fmt.Errorf("looking at the run directory %s: %w", base, err)
	}
	if uid := int(st.Uid); uid != os.Getuid() && uid != 0 {
		return fmt.Errorf("run directory %s belongs to uid %d, who could replace the sockets in it; name one of your own", base, uid)
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("run directory %s can be written by others (mode %o); run: chmod go-w %s", base, st.Mode&0o777, base)
	}
	return nil
}

func removeIfDead(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || int(st.Uid) != os.Getuid() {
		return nil // gone in the meantime, or not ours
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		if time.Since(time.Unix(st.Mtim.Sec, st.Mtim.Nsec)) > abandoned {
			_ = os.Remove(path) // succeeds only if it is empty
		}
		return nil // no lock: not one of ours that lived
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	if err := flock(lock); err != nil {
		return nil // its host lives
	}
	return os.RemoveAll(path)
}
