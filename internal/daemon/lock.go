package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/filelock"
)

// The folders in state_dir.
const (
	telemetryDir = "telemetry" // links of attempts over a restart
	failuresDir  = "failures"  // failure records that no topic took
)

// stateLock keeps a second streamd away from a state folder. The kernel gives it back when the process ends, however.
type stateLock struct{ file *os.File }

// lockState makes the folder and takes its lock. Errors have the exit code of the environment.
func lockState(dir string) (*stateLock, error) {
	for _, sub := range []string{telemetryDir, failuresDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o750); err != nil {
			return nil, exitcode.With(exitcode.Environment, advised(fmt.Errorf("making state_dir: %w", err), aboutFolder(err, "state_dir")))
		}
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, advised(fmt.Errorf("locking state_dir: %w", err), aboutFolder(err, "state_dir")))
	}
	if err := filelock.Take(f); err != nil {
		return nil, exitcode.With(exitcode.Environment, errors.Join(inUse(f, dir, err), f.Close()))
	}
	l := &stateLock{f}
	if err := l.write(os.Getpid()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func inUse(f *os.File, dir string, err error) error {
	if !errors.Is(err, filelock.ErrTaken) {
		return fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	who := "another process"
	if text, err := io.ReadAll(io.LimitReader(f, 32)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			who = fmt.Sprintf("the streamd with pid %d", pid)
		}
	}
	return fmt.Errorf("state_dir %s is in use by %s; stop it, or give this one another state_dir", dir, who)
}

func (l *stateLock) write(pid int) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	return nil
}

// Close gives the lock back. The file stays: removing it would let two processes lock two files of one name.
func (l *stateLock) Close() error { return l.file.Close() }
