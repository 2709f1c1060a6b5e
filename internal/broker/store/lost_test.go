package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
)

// lostFile names, for a process that loses its store, the file whose synchronization fails; lostDir the folder.
const (
	lostFile = "STREAMD_TEST_LOST_FILE"
	lostDir  = "STREAMD_TEST_LOST_DIR"
)

// noLog has the process be one that is stopped while it waits for room for its next log.
const noLog = "no log"

// TestLost is a disk that fails to synchronize a file after which Pebble cannot go on, nor be closed: everything is refused from
// then on, Close returns, and a new process finds whatever was acknowledged. It runs in a process of its own, in which Pebble's
// goroutines stay.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"MANIFEST", ".blob", noLog} {
		dir := t.TempDir() // Without the file's name in its own.
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), lostFile+"="+file, lostDir+"="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("the process that loses its store: %v\n%s", err, out)
			}
			var stored int
			if _, err := fmt.Sscanf(string(out), "stored %d", &stored); err != nil || stored < 10 {
				t.Fatalf("it said %q", out)
			}
			s := open(t, store.Options{Dir: dir, FS: vfs.Default})
			if raws, err := s.Messages("T", 0, 0, 0); err != nil || len(raws) < stored {
				t.Errorf("%d messages are there, %d were acknowledged: %v", len(raws), stored, err)
			}
		})
	}
}

// lose is the process of TestLost. It writes how many messages were acknowledged.
func lose(out io.Writer, file, dir string, c *store.Change) error {
	fs := faultfs.New(vfs.Default)
	s, err := store.Open(store.Options{Dir: dir, FS: fs, MemTableBytes: 64 << 10})
	if err != nil {
		return err
	}
	fs.Inject(faultfs.Fault{Op: faultfs.Sync, Name: file, Err: syscall.EIO})
	stored, err := untilRefused(s, c)
	if !errors.Is(err, store.ErrFailed) {
		return fmt.Errorf("after %d messages: %w", stored, errors.Join(err, errors.New("the store goes on")))
	}
	limit := time.After(90 * time.Second)
	for !strings.Contains(fmt.Sprint(s.Err()), "must be started again") {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			return fmt.Errorf("the store says %w", s.Err())
		}
	}
	return lost(out, s, dir, stored, limit)
}

// leave is that of the disk that has no room for the next log when the process is to end.
func leave(out io.Writer, _, dir string, c *store.Change) error {
	fs := faultfs.New(vfs.Default)
	s, err := store.Open(store.Options{Dir: dir, FS: fs, MemTableBytes: 64 << 10})
	if err != nil {
		return err
	}
	fs.Inject(faultfs.Fault{Op: faultfs.Create, Suffix: ".log", Err: syscall.ENOSPC})
	stored, err := untilRefused(s, c)
	if !errors.Is(err, store.ErrFull) {
		return fmt.Errorf("after %d messages: %w", stored, errors.Join(err, errors.New("the store goes on")))
	}
	return lost(out, s, dir, stored, time.After(90*time.Second))
}

// untilRefused stores copies of a message until one is refused.
func untilRefused(s *store.Store, c *store.Change) (stored int, err error) {
	raw := c.Appends[0].Records[0].Raw
	for ; stored < 10_000; stored++ {
		one := &store.Change{Appends: []store.Append{{Topic: "T", Records: []store.Record{{Raw: append([]byte(nil), raw...)}}}}}
		if err = s.Apply(one); err != nil {
			break
		}
	}
	return stored, err
}

// lost closes a store that Pebble cannot be closed in.
func lost(out io.Writer, s *store.Store, dir string, stored int, limit <-chan time.Time) error {
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	var err error
	select {
	case err = <-closed:
	case <-limit:
		return errors.New("the store does not close")
	}
	if _, again := store.Open(store.Options{Dir: dir, FS: vfs.Default}); !errors.Is(again, store.ErrInUse) {
		return fmt.Errorf("the process opens the folder again: %w", again)
	}
	_, failed := fmt.Fprintf(out, "stored %d\n", stored)
	return errors.Join(err, failed)
}
