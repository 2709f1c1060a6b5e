package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A plugin is a process of its own: SIGSTOP the pid that `group status -o json` shows, and that stream halts while the
// others go on; the frozen process is replaced, and nothing is lost.
func TestPlugin_freezes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	d := s.run(1)
	bad.goesOn("before")
	pid := bad.pid()
	if pid == d.cmd.Process.Pid || pid == good.pid() {
		t.Fatalf("the plugin is no process of its own: %d", pid)
	}
	stop := bad.load("slow 20")
	bad.awaitWork(1)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := bad.committed()
	good.goesOn("during")
	stop()
	d.says("plugin process ended", "no sign of life", "stopped by a signal")
	t.Logf("committed %d at the freeze, %d when the process had been replaced", before, bad.committed())
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	good.once()
	if now := bad.pid(); now == pid {
		t.Error("the frozen process was not replaced")
	}
	d.stop()
}

// isStopped waits until every thread of a process has stopped: the signal is one thread's, and the others may run on until that
// one has had its turn on a busy machine.
func (s *stream) isStopped(pid int) {
	s.t.Helper()
	s.until(fmt.Sprintf("process %d is stopped", pid), func() (bool, string) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			return false, err.Error()
		}
		for _, path := range threads {
			text, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				continue // it was replaced already
			}
			if _, state, _ := strings.Cut(string(text), ") "); err != nil || !strings.HasPrefix(state, "T") {
				return false, fmt.Sprintf("%s: %.30s %v", path, text, err)
			}
		}
		return true, ""
	})
}

// The stream of a frozen plugin halts: its record does not grow, while the process is frozen.
func TestPlugin_frozenStreamHalts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	d := s.run(1)
	bad.goesOn("before")
	bad.settles() // what the plugin wrote down as handled has been answered, too: else it comes again
	pid := bad.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	bad.isStopped(pid)
	lines := len(bad.lines())
	bad.feed(numbered("during", 50)...)
	good.goesOn("during") // meanwhile the frozen one gets nothing done
	for _, l := range bad.lines()[lines:] {
		if l.PID == pid {
			t.Fatalf("a stopped process wrote %+v", l)
		}
	}
	bad.handles(bad.bodies...)
	bad.settles()
	bad.once()
	d.stop()
}

// A handler that ignores its deadline and acknowledges later: counted late, and settled once, as a failed attempt.
func TestPlugin_answersAfterTheDeadline(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad := s.witness("bad", b, ", deadline: 5s") // all others keep it on a busy machine too
	bad.feed("deaf x")
	bad.feed(numbered("ok", 50)...)
	d := s.run(1)
	bad.handles(numbered("ok", 50)...)
	s.until("the attempt has failed", func() (bool, string) {
		n := len(b.Messages(wire.RetryTopic(bad.group())))
		return n > 0, fmt.Sprint(n)
	})
	bad.open() // within the 5 s for which the host waits for it after its deadline
	s.until("the late answer is counted", func() (bool, string) {
		n := d.counter("bad", "late")
		return n == 1, fmt.Sprint(n)
	})
	s.until("the second attempt", func() (bool, string) {
		return bad.acked()["deaf x"] == 2, fmt.Sprint(bad.acked()["deaf x"]) // late, and in time
	})
	bad.settles()
	retries := b.Messages(wire.RetryTopic(bad.group()))
	if len(retries) != 1 || string(retries[0].Body) != "deaf x" {
		t.Errorf("%d retries, want one", len(retries))
	}
	if dead := b.DeadLetters(bad.group()); len(dead) != 0 {
		t.Errorf("%d dead letters", len(dead))
	}
	d.stop()
}

// Answers that no honest plugin gives: a second one is dropped, one for a foreign record closes the lane by name; neither
// settles anything that was not handled, and the message is not burned.
func TestPlugin_breaksTheProtocol(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	twice, foreign, outside := s.faulty("twice", b, "ok"), s.faulty("foreign", b, "ok"), s.faulty("outside", b, "ok")
	good := s.witness("good", b, "")
	twice.feed("a", "twice", "twice", "b", "twice")
	for _, st := range []*stream{foreign, outside} {
		st.feed("a", "b", "c", "d", st.name, "e", "f", "g")
	}
	d := s.run(1)
	good.goesOn("meanwhile")
	twice.settles()
	twice.unburned()
	for st, words := range map[*stream][]string{foreign: {"broke the protocol", "never sent"}, outside: {"broke the protocol", "answers records 5000"}} {
		d.holds(st.name, words...)
		d.says(append(words, st.name)...)
		if at, _ := b.Committed(st.group(), st.topic(), 0); at > 1 {
			t.Errorf("stream %s: committed %d past the record that was never answered", st.name, at)
		}
		st.unburned()
		st.mend()
	}
	good.goesOn("still")
	if n := strings.Count(d.text(), "broke the protocol"); n > 500 {
		t.Errorf("%d log lines about the broken protocol: they are not paced", n)
	}
	d.reload()
	for _, st := range []*stream{foreign, outside} {
		st.handles(st.name)
		st.settles()
		st.unburned()
	}
	d.stop()
}

// A plugin that never grants credit gets nothing, its stream says so, and a sound one takes over.
func TestPlugin_neverGrantsCredit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.faulty("bad", b, "no-credit"), s.witness("good", b, "")
	bad.feed(numbered("ok", 100)...)
	d := s.run(1)
	good.goesOn("meanwhile")
	d.holds("bad", "credit")
	bad.why("credit")
	if n := bad.committed(); n != 0 {
		t.Errorf("committed %d", n)
	}
	bad.mend()
	d.reload()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	bad.once()
	d.stop()
}
