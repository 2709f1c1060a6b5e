package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/streamd/streamd/test/e2e/record"
)

// ownPlugin gives the stream a plugin binary of its own from now on, and returns where it is.
func (s *stream) ownPlugin(n int) (path string) {
	path = s.path(fmt.Sprintf("witness-%d", n))
	s.plugin = fmt.Sprintf("command: [%q]", path)
	s.replace(path, s.good(), 0o700)
	return path
}

func (s *stage) good() []byte {
	s.t.Helper()
	program, err := os.ReadFile(built.witness)
	if err != nil {
		s.t.Fatal(err)
	}
	return program
}

// replace puts another program in the place of one that may be running.
func (s *stage) replace(path string, program []byte, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(path+".new", program, mode); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// shared waits until so many members own all queues of the topic, each some of them, and each queue has one owner.
func (s *stream) shared(members int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d members own the queues of stream %s", members, s.name), func() (bool, string) {
		g, said := s.groupStatusNow()
		if g == nil {
			return false, said
		}
		owners, owned := map[string]bool{}, 0
		for _, q := range g.Queues {
			if q.Topic == s.topic() && len(q.Owners) == 1 {
				owners[q.Owners[0]] = true
				owned++
			}
		}
		return len(g.Members) == members && owned == queues && len(owners) == members, said
	})
}

// handlers are the processes that acknowledged each of some bodies.
func (s *stream) handlers(bodies []string) map[string][]int {
	by := map[string][]int{}
	for _, l := range s.lines() {
		if l.End && l.Error == "" && slices.Contains(bodies, l.Body) {
			by[l.Body] = append(by[l.Body], l.PID)
		}
	}
	return by
}

// A member whose plugin cannot start any more leaves its group after handler_down.hold; the other member gets its queues and
// handles their messages, once. When the plugin starts again, the member returns to its share.
func TestHandlerDown_theOtherMemberHandlesTheQueues(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	both := s.witness("both", s.newBroker(), ", deadline: 1h, handler_down: {hold: 3s, then: leave}") // the other member's messages are held as well
	both.ownPlugin(1)
	other := s.start(1, s.saved("one.yaml"))
	mine := both.ownPlugin(2)
	bad := s.start(2, s.saved("two.yaml"))
	both.shared(2)

	both.feed(numbered("hold", 40)...)
	killed := bad.process("both", "runs", func(p pluginProcess) bool { return p.State == "ready" && p.PID > 0 }).PID
	s.until("the plugin of the second member has work in hand", func() (bool, string) {
		lines := both.lines()
		return slices.ContainsFunc(inFlight(lines), func(l record.Line) bool { return l.PID == killed }), fmt.Sprint(len(lines))
	})
	// What cannot be executed is tried again soon. A program that ends again and again opens the breaker, which after the repair
	// takes up to a minute to try: that is in the tests of the supervisor.
	s.replace(mine, []byte("half a download\n"), 0o600)
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	bad.process("both", "cannot start", func(p pluginProcess) bool { return hasAll(p.LastError, []string{"is not executable", "chmod +x"}) })
	bad.says("leaving the group", "handler is down")
	bad.holds("both", "handler_down", "others handle its queues")
	both.shared(1)
	both.open()
	both.handles(both.bodies...)

	alone := numbered("alone", 100)
	both.feed(alone...)
	both.handles(alone...)
	both.settles()
	living := other.process("both", "runs", func(p pluginProcess) bool { return p.State == "ready" }).PID
	for body, pids := range both.handlers(alone) {
		if len(pids) != 1 || pids[0] != living {
			t.Errorf("%q was handled by %v, want once and by %d", body, pids, living)
		}
	}
	for body, pids := range both.handlers(both.bodies) {
		if len(pids) > 1 && pids[0] != killed {
			t.Errorf("%q was handled by %v, and the first was not the process that was killed", body, pids)
		}
	}
	both.unburned()

	s.replace(mine, s.good(), 0o700)
	both.shared(2)
	bad.says("the handler answers again, joining the group")
	again := numbered("again", 100)
	both.feed(again...)
	both.handles(again...)
	both.settles()
	workers := map[int]bool{}
	for body, pids := range both.handlers(again) {
		if len(pids) != 1 {
			t.Errorf("%q was handled by %v", body, pids)
		}
		workers[pids[0]] = true
	}
	if len(workers) != 2 || !workers[living] {
		t.Errorf("after the return the messages were handled by %v", slices.Sorted(maps.Keys(workers)))
	}
	both.unburned()
	bad.stop()
	other.stop()
}

// saved writes the config to a file of its own.
func (s *stage) saved(name string) string {
	s.t.Helper()
	path := s.path(name)
	if err := os.Rename(s.write(""), path); err != nil {
		s.t.Fatal(err)
	}
	return path
}
