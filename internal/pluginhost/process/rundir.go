package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// socketRoom is what has to fit behind the run directory: "/", a plugin's own directory and a socket's name, within
// the 107 bytes that the kernel takes.
const (
	maxSocketPath = 107
	socketRoom    = 48
	maxBase       = maxSocketPath - socketRoom - len("/h-1234567890")
)

const (
	instancePrefix = "h-"
	lockName       = "lock"
)

// RunDir is the private directory (mode 0700) of one running host, for the sockets of its plugins. Its base may be
// shared by several hosts; each keeps a lock while it lives, and what a dead one left is removed by the next.
type RunDir struct {
	Path string
	lock *os.File
}

// OpenRunDir makes a directory below base ("" = a default for this user), after removing what dead hosts left there.
func OpenRunDir(base string) (*RunDir, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if base == "" {
		base = defaultBase()
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, fmt.Errorf("making the run directory absolute: %w", err)
	}
	if len(base) > maxBase {
		return nil, fmt.Errorf("run directory %s is too long: sockets of plugins would pass the kernel's limit of %d bytes; "+
			"use a path of at most %d bytes, such as /run/streamd", base, maxSocketPath, maxBase)
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("making the run directory: %w; name a writable one", err)
	}
	if err := checkBase(base); err != nil {
		return nil, err
	}
	if err := sweep(base); err != nil {
		return nil, err
	}
	return create(base)
}

// defaultBase is the first of this user's directories for such things that leaves room for a socket's name.
func defaultBase() string {
	name := fmt.Sprintf("streamd-%d", os.Getuid())
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if base := filepath.Join(dir, name); dir != "" && len(base) <= maxBase {
			return base
		}
	}
	return filepath.Join("/tmp", name)
}

// create makes and locks a directory. A host that starts at the same moment may sweep it between the two steps, so a
// lost race is tried again.
func create(base string) (*RunDir, error) {
	var err error
	for range 5 {
		var d *RunDir
		if d, err = tryCreate(base); err == nil {
			return d, nil
		}
	}
	return nil, err
}

func tryCreate(base string) (*RunDir, error) {
	path, err := os.MkdirTemp(base, instancePrefix)
	if err != nil {
		return nil, fmt.Errorf("making a private directory for sockets: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the lock of the run directory: %w", err), os.RemoveAll(path))
	}
	if err := flock(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", lock.Name(), err), lock.Close(), os.RemoveAll(path))
	}
	if err := inPlace(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", lock.Name(), err), lock.Close(), os.RemoveAll(path))
	}
	return &RunDir{Path: path, lock: lock}, nil
}

// inPlace is an error when a file is not the one at its path any more. The lock of a directory that was swept before it was
// locked can be had: nobody else knows of it.
func inPlace(file *os.File) error {
	ours, err := file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(file.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(ours, there) {
		return errors.New("another file took its place")
	}
	return nil
}

// Close removes the directory and everything in it.
func (d *RunDir) Close() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// abandoned is the age at which an empty directory without a lock is no longer one in the making.
const abandoned = time.Minute

// sweep removes directories whose host is dead: the kernel released its lock. Directories of another user, and those
// without a lock that hold anything, are left alone.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("reading the run directory: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), instancePrefix) {
			continue
		}
		path := filepath.Join(base, entry.Name())
		if err := removeIfDead(path); err != nil {
			return fmt.Errorf("removing %s, left by a dead host: %w", path, err)
		}
	}
	return nil
}
