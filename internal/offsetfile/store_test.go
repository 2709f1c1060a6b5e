package offsetfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/sdk"
)

func queue(id int32) sdk.Queue { return sdk.Queue{Topic: "T", Broker: "broker-a", ID: id} }

func options(files Files, log *logtest.Log) Options {
	out := slog.DiscardHandler
	if log != nil {
		out = slog.NewTextHandler(log, nil)
	}
	return Options{Dir: "/state/offsets", Member: "m1", Broker: "main", Group: "billing", Files: files, Logger: slog.New(out), Pause: time.Nanosecond}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// state is what a store knows of queues 0 and 1.
func state(s *Store) string {
	a, okA := s.Committed(queue(0))
	b, okB := s.Committed(queue(1))
	return fmt.Sprint(a, okA, b, okB)
}

func TestOffsetsSurviveOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "offsets")
	o := Options{Dir: dir, Member: "m1", Broker: "main", Group: "%billing|x", Logger: slog.New(slog.DiscardHandler)}
	s := open(t, o)
	for i := range int64(3) {
		if err := s.Commit(t.Context(), queue(0), 7+i); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	if err := s.Commit(t.Context(), queue(0), 11); !errors.Is(err, ErrClosed) {
		t.Errorf("a commit after Close = %v", err)
	}
	again := open(t, o)
	defer mustClose(t, again)
	if got := state(again); got != "9 true 0 false" {
		t.Errorf("after a restart: %s", got)
	}
	if _, err := os.Stat(Path(dir, "m1", "main", "%billing|x") + backupSuffix); err != nil {
		t.Errorf("the backup: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("files %v, %v; want the file and its backup", left, err)
	}
}

// BC-P02: two members, two clusters or two groups never share a file, however they are called.
func TestPathsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range [][3]string{{"m1", "main", "g"}, {"m2", "main", "g"}, {"m1", "b", "g"}, {"m1", "main", "h"}, {"m1@main", "b", "g"}, {"m1", "main@b", "g"}, {"../m", "a/b", ".."}} {
		p := Path("/s", n[0], n[1], n[2])
		if seen[p] || filepath.Dir(p) != "/s" {
			t.Errorf("%v has the path %s", n, p)
		}
		seen[p] = true
	}
}

// A write may fail at each of its steps, and the machine may be cut off at each of them: the old offsets are there afterwards
// or the new ones, never neither; what Commit confirmed is there in any case.
func TestEveryStepMayFail(t *testing.T) {
	const before, after = "5 true 6 true", "8 true 6 true"
	for _, half := range []bool{false, true} {
		for step := 1; ; step++ {
			m := newMemory()
			s := open(t, options(m, nil))
			for id, at := range map[int32]int64{0: 5, 1: 6} {
				if err := s.Commit(t.Context(), queue(id), at); err != nil {
					t.Fatal(err)
				}
			}
			m.mu.Lock()
			m.half, m.failAt = half, m.steps+step
			m.mu.Unlock()
			err := s.Commit(t.Context(), queue(0), 8)
			if err != nil && (!errors.Is(err, errFault) || !strings.Contains(err.Error(), s.Path())) {
				t.Fatalf("step %d: %v", step, err)
			}
			for i, left := range append(m.after(), m.now()) {
				found, openErr := Open(options(left, nil))
				if openErr != nil {
					t.Fatalf("step %d, outcome %d: %v", step, i, openErr)
				}
				if got := state(found); got != after && (got != before || err == nil) {
					t.Errorf("step %d (%v), outcome %d: found %s", step, err, i, got)
				}
				mustClose(t, found)
			}
			// The fault is over: the next commit stores everything, and so does Close.
			if again := s.Commit(t.Context(), queue(0), 8); again != nil {
				t.Errorf("step %d: after the fault: %v", step, again)
			}
			mustClose(t, s)
			for _, left := range m.after() {
				found := open(t, options(left, nil))
				if got := state(found); got != after {
					t.Errorf("step %d: after the fault %s", step, got)
				}
				mustClose(t, found)
			}
			if err == nil {
				if step < 7 {
					t.Fatalf("only %d steps failed", step-1)
				}
				break
			}
		}
	}
}

// The machine may be cut off between any two steps as well, over many writes.
func TestCutOffLoop(t *testing.T) {
	m := newMemory()
	for at := range int64(40) {
		s := open(t, options(m, nil))
		have, ok := s.Committed(queue(0))
		if at > 0 && (!ok || have != at-1 && have != at) {
			t.Fatalf("before %d the store has %d, %t", at, have, ok)
		}
		m.mu.Lock()
		m.failAt = m.steps + 1 + int(at)%9
		m.mu.Unlock()
		err := s.Commit(t.Context(), queue(0), at)
		outcomes := m.after()
		m.mu.Lock()
		m.failAt = 0
		m.mu.Unlock()
		mustClose(t, s)
		m = outcomes[int(at*7)%len(outcomes)]
		if err != nil { // not confirmed: try until it is
			s = open(t, options(m, nil))
			if err := s.Commit(t.Context(), queue(0), at); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
		}
	}
}

// T20, BC-P01: damage is found, whatever it is. The backup stands in for one file; for two nothing does.
func TestDamage(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"truncated":   func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
		"zeros":       func(b []byte) []byte { return make([]byte, len(b)) },
		"one bit":     func(b []byte) []byte { b[len(b)/3] ^= 4; return b },
		"no checksum": func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] },
		"more behind": func(b []byte) []byte { return append(b, "x\n"...) },
		"gone":        nil,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			s := open(t, options(m, nil))
			for _, at := range []int64{5, 8} {
				if err := s.Commit(t.Context(), queue(0), at); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, s)
			m.harm(s.Path(), harm)
			var log logtest.Log
			s = open(t, options(m, &log))
			if got := state(s); got != "5 true 0 false" || !strings.Contains(log.String(), s.Path()) || !strings.Contains(log.String(), "comes again") {
				t.Errorf("with the backup: %s; log %s", got, log.String())
			}
			if m.names[s.Path()] != nil || (harm != nil) != (m.names[s.Path()+damagedSuffix] != nil) {
				t.Errorf("files %v", m.names)
			}
			if err := s.Commit(t.Context(), queue(0), 6); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			m.harm(s.Path(), harm)
			m.harm(s.Path()+backupSuffix, func(b []byte) []byte { return b[:len(b)-2] })
			_, err := Open(options(m, nil))
			var bad *DamagedError
			if !errors.As(err, &bad) || bad.Path != s.Path() {
				t.Fatalf("both damaged: %v", err)
			}
			for _, want := range []string{s.Path(), s.Path() + ".bak", "none are guessed", "start_from", "move both away"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func (m *memory) harm(name string, f func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f == nil {
		delete(m.names, name)
		return
	}
	m.names[name].data = f(bytes.Clone(m.names[name].data))
}

// A sound file that is not ours is not replaced by anything.
func TestFilesOfOthersAreRefused(t *testing.T) {
	m := newMemory()
	s := open(t, options(m, nil))
	for range 2 {
		if err := s.Commit(t.Context(), queue(0), int64(m.steps)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	o := options(m, nil)
	o.Member = "m2"
	m.names[Path(o.Dir, "m2", o.Broker, o.Group)] = m.names[s.Path()]
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), `belongs to member "m1"`) {
		t.Errorf("another member's file: %v", err)
	}
	line := bytes.Replace(m.names[s.Path()].data, []byte(`"format":1`), []byte(`"format":2`), 1)
	line, _, _ = bytes.Cut(line, []byte("\n"))
	m.names[s.Path()] = &inode{data: fmt.Appendf(nil, "%s\n%s\n", line, checksum(line))}
	if _, err := Open(options(m, nil)); err == nil || !strings.Contains(err.Error(), "format 2") || !strings.Contains(err.Error(), s.Path()) {
		t.Errorf("a newer file: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(Path(dir, "m", "b", "g"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Member: "m", Broker: "b", Group: "g", Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "reading the offsets") {
		t.Errorf("a folder in the file's place: %v", err)
	}
}

// The queues that a topic has when it is first seen are new until their first commit, over a restart; later ones are not.
func TestBegin(t *testing.T) {
	m := newMemory()
	s := open(t, options(m, nil))
	two := []sdk.Queue{queue(0), queue(1)}
	for range 2 {
		for _, q := range two {
			if fresh, err := s.Begin(t.Context(), q, two); err != nil || !fresh {
				t.Errorf("%s: %t, %v", q, fresh, err)
			}
		}
		mustClose(t, s)
		s = open(t, options(m, nil))
	}
	if err := s.Commit(t.Context(), queue(0), 100); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]bool{0: false, 1: true, 2: false} {
		if fresh, err := s.Begin(t.Context(), queue(id), append(two, queue(2))); err != nil || fresh != want {
			t.Errorf("queue %d: %t, %v, want %t", id, fresh, err, want)
		}
	}
	other := sdk.Queue{Topic: "U", Broker: "broker-a"}
	if fresh, err := s.Begin(t.Context(), other, []sdk.Queue{other}); err != nil || !fresh {
		t.Errorf("another topic: %t, %v", fresh, err)
	}
	if got := state(s); got != "100 true 0 false" {
		t.Errorf("noted queues have offsets: %s", got)
	}
	mustClose(t, s)
}

// Many queues commit at once, and share writes; nothing unchanged is written.
func TestCommitsShareWrites(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		m := newMemory()
		o := options(m, nil)
		o.Pause = 100 * time.Millisecond
		s := open(t, o)
		var wg sync.WaitGroup
		for id := range int32(50) {
			wg.Go(func() {
				for at := range int64(20) {
					if err := s.Commit(t.Context(), queue(id), at); err != nil {
						t.Error(err)
					}
				}
			})
		}
		begin := time.Now()
		wg.Wait()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("1000 commits took %s", took)
		}
		if most := 30 * 6; m.steps > most {
			t.Errorf("%d steps of the file system, want at most %d", m.steps, most)
		}
		steps := m.steps
		if err := s.Commit(t.Context(), queue(0), 19); err != nil || m.steps != steps {
			t.Errorf("an unchanged offset: %v, %d steps", err, m.steps-steps)
		}
		mustClose(t, s)
	})
}

// BC-P03: who waits for a file that cannot be written is told, does not wait for ever, and the file is current once it can.
func TestDiskThatFailsForAWhile(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		m := newMemory()
		s := open(t, options(m, nil))
		for at := range int64(5) {
			m.failAt = m.steps + 1
			if err := s.Commit(t.Context(), queue(0), at); !errors.Is(err, errFault) {
				t.Errorf("commit %d = %v", at, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errFault)
		if err := s.Commit(ctx, queue(1), 3); err != nil && !errors.Is(err, errFault) {
			t.Errorf("given up: %v", err)
		}
		synctest.Wait()
		mustClose(t, s)
		s = open(t, options(m.now(), nil))
		if got := state(s); got != "4 true 3 true" {
			t.Errorf("afterwards %s", got)
		}
		mustClose(t, s)
	})
}
