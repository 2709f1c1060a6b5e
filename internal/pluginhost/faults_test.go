package pluginhost_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
)

// A plugin that cannot start says what is wrong and what to do, in Open's error and in Status; another plugin serves.
func TestStart_failuresAreTold(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec func() pluginhost.PluginSpec
		want []string
	}{
		"missing":        {func() pluginhost.PluginSpec { return pluginhost.PluginSpec{Command: []string{"/no/such/acme"}} }, []string{"/no/such/acme does not exist", "install"}},
		"not-executable": {func() pluginhost.PluginSpec { return pluginhost.PluginSpec{Command: []string{text}} }, []string{"is not executable", "chmod +x"}},
		"checksum": {func() pluginhost.PluginSpec {
			s := spec(t, "", "ok")
			s.Checksum = "sha256:" + strings.Repeat("0", 64)
			return s
		}, []string{"the config asks for sha256:000"}},
		"wrong-magic":   {func() pluginhost.PluginSpec { return spec(t, "", "wrong-magic") }, []string{"ended before its handshake (exit status 1)", "plugin"}},
		"wrong-version": {func() pluginhost.PluginSpec { return spec(t, "", "wrong-version") }, []string{"version 99", "speaks [1]", "upgrade"}},
		"exits":         {func() pluginhost.PluginSpec { return spec(t, "", "exits") }, []string{"exit status 7", "no license found"}},
		"prints":        {func() pluginhost.PluginSpec { return spec(t, "", "prints") }, []string{"before its handshake", "Welcome to acme!", "stderr"}},
		"hangs": {func() pluginhost.PluginSpec {
			s := spec(t, "", "hangs")
			s.StartTimeout = 8 * time.Second // until it has the stacks that it is asked for
			return s
		}, []string{"no handshake within 8s", "start_timeout", "goroutine"}},
		"no-plugin": {func() pluginhost.PluginSpec { return pluginhost.PluginSpec{Command: []string{"echo", "hello"}} }, []string{"before its handshake", "hello", "correct its command"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.apply(spec(t, "good", "ok"))
			s := tc.spec()
			s.Name = name
			if err := b.host.Apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the failure shows", func() bool { return b.process(name).LastError != "" })
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := b.host.Configure(ctx, pluginhost.HandlerSpec{Name: name, Plugin: name}); err == nil {
				t.Error("configured")
			}
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := b.host.Open(ctx, laneSpec(name))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("opening: %v", err)
			}
			contains(t, err.Error(), append(tc.want, "plugin "+name, "handler "+name)...)
			l := b.open(laneSpec("good"))
			l.until(frame.EventCredit)
			l.send("a")
			l.acked(1)
		})
	}
}

// A crash in mid-batch: what was answered stays answered, the record that ran is the suspect, the plugin comes back, and
// the lane of another plugin notices nothing.
func TestCrash_inMidBatch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"exit": "exit status 7", "panic": "panic: record 2 of batch 2"} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.apply(spec(t, "acme", "ok"))
			b.apply(spec(t, "good", "ok"))
			other := b.open(laneSpec("good"))
			other.until(frame.EventCredit)
			l := b.open(laneSpec("acme"))
			l.until(frame.EventCredit)
			l.send("a", "b")
			l.acked(2)
			l.send("c", "d", body, "e", "f")
			lost, acks := l.lost()
			if lost.Cause != frame.CauseCrash || acks > 2 {
				t.Errorf("cause %d after %d acks", lost.Cause, acks)
			}
			if len(lost.Suspects) != 1 || lost.Suspects[0] != (frame.Ref{Seq: 2, Index: 2}) {
				t.Errorf("suspects %v, want record 2 of batch 2", lost.Suspects)
			}
			contains(t, lost.Text, "plugin acme (pid ", want)
			again := b.open(laneSpec("acme"))
			if again.Info().Generation <= l.Info().Generation {
				t.Error("the same generation answers")
			}
			again.until(frame.EventCredit)
			again.send("a")
			again.acked(1)
			other.send("a")
			other.acked(1)
			contains(t, b.process("acme").LastError, want)
		})
	}
}

// A plugin that dies on every message is tried for ever, with its breaker open after five; it stays one plugin's trouble.
func TestCrash_onEveryMessageOpensTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *pluginhost.Config) {
		c.Timing.Policy.MinPause, c.Timing.Policy.MaxPause = time.Millisecond, 10*time.Millisecond
		c.Timing.Policy.Healthy, c.Timing.Policy.Window = time.Minute, 2*time.Minute
		c.Timing.Policy.Exits, c.Timing.Policy.HalfOpen = 5, 50*time.Millisecond
	})
	b.apply(spec(t, "acme", "ok"))
	for range 7 {
		l := b.open(laneSpec("acme"))
		l.until(frame.EventCredit)
		l.send("exit")
		l.lost()
	}
	eventually(t, "the breaker opens", func() bool { return b.process("acme").BreakerOpen })
	if p := b.process("acme"); p.Exits < 5 || p.Restarts < 6 {
		t.Errorf("%+v", p)
	}
}

// Crashes of the solo process do not count, and it sees one record at a time.
func TestSolo_isApart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	normal := b.open(laneSpec("acme"))
	normal.until(frame.EventCredit)
	solo := laneSpec("acme")
	solo.Solo = true
	for range 3 {
		l := b.open(solo)
		if l.Info().PID == normal.Info().PID {
			t.Fatal("the solo lane shares the process")
		}
		if e, _ := l.until(frame.EventCredit); e.Credits != 1 {
			t.Errorf("%d credits on a solo lane", e.Credits)
		}
		if err := l.Send(l.batch("a", "b")); !errors.Is(err, frame.ErrNoCredit) {
			t.Errorf("two records on a solo lane: %v", err)
		}
		l.send("exit")
		if lost, _ := l.lost(); lost.Cause != frame.CauseCrash || len(lost.Suspects) != 1 {
			t.Errorf("%+v", lost)
		}
	}
	normal.send("a")
	normal.acked(1)
	if p := b.process("acme"); p.Exits != 0 || p.Restarts != 0 {
		t.Errorf("the plugin's own process: %+v", p)
	}
	eventually(t, "the idle solo process stops", func() bool {
		processes := b.host.Status()[0].Processes
		return len(processes) == 2 && processes[1].PID == 0 && processes[1].State == "stopped"
	})
}

// Two streams have suspects at once: what the one's kills the solo process with must not look like the other's doing, so each has
// it to itself.
func TestSolo_isForOneLaneAtATime(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	first, second := laneSpec("acme"), laneSpec("acme")
	first.Solo, second.Solo, second.Stream = true, true, "bills"
	killer := b.open(first)
	killer.until(frame.EventCredit)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := b.host.Open(ctx, second); err == nil {
		t.Fatalf("a second lane to solo process %d, which %d has", l.Info().PID, killer.Info().PID)
	} else {
		contains(t, err.Error(), "alone in its solo process")
	}
	killer.send("exit")
	killer.lost()
	innocent := b.open(second)
	innocent.until(frame.EventCredit)
	innocent.send("a")
	innocent.acked(1)
}

// A frozen process is replaced, whether it has records or not.
func TestFreeze_isReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *pluginhost.Config) { c.Timing.HealthDeadline = time.Second })
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	start := time.Now()
	l.send("a", "stop", "b")
	lost, acks := l.lost()
	if lost.Cause != frame.CauseHang || acks > 1 || len(lost.Suspects) != 1 || lost.Suspects[0].Index != 1 {
		t.Errorf("%d acks, %+v", acks, lost)
	}
	contains(t, lost.Text, "no sign of life", "stopped by a signal")
	again := b.open(laneSpec("acme"))
	t.Logf("replaced %s after the freeze", time.Since(start).Round(time.Millisecond))
	if err := syscall.Kill(again.Info().PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lost, _ = again.lost()
	contains(t, lost.Text, "no sign of life")
}

// A process that has no processor is not taken for a frozen one while that lasts.
func TestFreeze_isNotSeenInWhatIsStarved(t *testing.T) {
	t.Parallel()
	var starving, stopped atomic.Bool
	starving.Store(true)
	start, looks := time.Now(), make(chan struct{}, 100)
	b := newBench(t, func(c *pluginhost.Config) {
		c.Timing.HealthDeadline, c.Timing.Health, c.Timing.Misses = 100*time.Millisecond, 100*time.Millisecond, 3
		c.CPUWaits = func(pid int) map[int]time.Duration {
			if pid == os.Getpid() || !starving.Load() {
				return map[int]time.Duration{1: time.Hour}
			}
			if stopped.Load() { // on a busy machine there may have been some before
				looks <- struct{}{}
			}
			return map[int]time.Duration{1: time.Since(start)}
		}
	})
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	if err := syscall.Kill(l.Info().PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped.Store(true)
	for range 12 {
		select {
		case <-looks:
		case <-time.After(patience):
			t.Fatal("the process was replaced while it waited for a processor")
		}
	}
	starving.Store(false)
	lost, _ := l.lost()
	contains(t, lost.Text, "no sign of life", "did not count, for want of a processor")
	if !b.logs.Has("there is no processor for it") {
		t.Error("the log does not say why the process is given more time")
	}
}

// A record that is never answered: the process is replaced after deadline and grace, and its stacks are in the error.
func TestHang_isReplacedWithItsStacks(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	s := laneSpec("acme")
	s.Deadline = 8 * time.Second // the other record has its time
	l := b.open(s)
	l.until(frame.EventCredit)
	l.send("a", "hang")
	lost, acks := l.lost()
	if lost.Cause != frame.CauseHang || acks != 1 || len(lost.Suspects) != 1 {
		t.Errorf("%d acks, %+v", acks, lost)
	}
	contains(t, lost.Text, "gave no answer for record 1 of batch 1", "deadline 8s", "SIGQUIT", "goroutine")
}

func TestMemory_overTheLimitIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := spec(t, "acme", "eats")
	s.Memory = 128 << 20
	if err := b.host.Apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := b.host.Configure(within(t, patience), pluginhost.HandlerSpec{Name: "acme", Plugin: "acme", Use: "main"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is replaced", func() bool { return strings.Contains(b.process("acme").LastError, "its limit is 128 MiB") })
	contains(t, b.process("acme").LastError, "limits.memory")
	eventually(t, "the next one is watched", func() bool { p := b.process("acme"); return p.Memory > 0 && p.MemoryMechanism == "watch" })
}

// Broken protocol closes the lane by name; second answers are dropped and counted.
func TestProtocol_isFenced(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("twice", "a")
	l.acked(2)
	if d := b.process("acme").Lanes[0].Duplicates; d != 1 {
		t.Errorf("%d duplicates counted", d)
	}
	for body, want := range map[string]string{
		"foreign": "broke the protocol on the lane of handler acme: it answered batch 1001, which was never sent",
		"outside": "answers records 5000",
		"unknown": "field 0 is none that version 1 of the contract knows",
		"opened":  "opened the lane a second time",
		"drained": "drained without being asked",
		"leaves":  "ended the lane of handler acme while it lives on",
	} {
		l := b.open(laneSpec("acme"))
		l.until(frame.EventCredit)
		l.send(body)
		lost, _ := l.lost()
		if lost.Cause != frame.CauseProtocol || len(lost.Suspects) != 0 {
			t.Errorf("%+v", lost)
		}
		contains(t, lost.Text, "plugin acme ", want)
	}
	l.send("a") // the other lane of the process goes on
	l.acked(1)
}

func TestCredits_areKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "dry", "no-credit"))
	l := b.open(laneSpec("dry"))
	if err := l.Send(l.batch("a")); !errors.Is(err, frame.ErrNoCredit) {
		t.Errorf("sending without credit: %v", err)
	}
	if b.process("dry").Lanes[0].DrySince.IsZero() {
		t.Error("Status does not show that the plugin gives no credit")
	}
	eventually(t, "the log says so", func() bool { return b.logs.Has("plugin takes no records though it has none") })
	b.apply(spec(t, "acme", "ok"))
	l = b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	if err := l.Send(l.batch(strings.Fields(strings.Repeat("a ", 65))...)); !errors.Is(err, frame.ErrNoCredit) {
		t.Errorf("sending 65 records for 64 credits: %v", err)
	}
	if err := l.Send(&frame.Batch{Seq: 100}); err == nil || errors.Is(err, frame.ErrNoCredit) {
		t.Errorf("sending an empty batch: %v", err)
	}
}

// Whatever comes on the pipes, the plugin is never blocked by it and the host lives.
func TestPipes_anythingGoes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"floods":    "dropped_lines=",
		"long-line": "truncated_bytes=",
		"bombs":     `msg=5`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.apply(spec(t, "acme", mode))
			l := b.open(laneSpec("acme"))
			l.until(frame.EventCredit)
			l.send("a", "b")
			l.acked(2)
			eventually(t, want, func() bool { return b.logs.Has(want) })
			l.send("a")
			l.acked(1)
		})
	}
}

// A grandchild that holds the pipes delays neither the notice of the exit nor the next start, and dies.
func TestGrandchild_delaysNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "grandchild"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	pid := l.Info().PID
	start := time.Now()
	l.send("exit")
	l.lost()
	t.Logf("the crash was noticed after %s", time.Since(start).Round(100*time.Microsecond))
	if time.Since(start) > time.Minute { // it lives for five
		t.Error("the grandchild held up the notice")
	}
	eventually(t, "nothing is left of the group", func() bool { return len(group(pid)) == 0 })
	b.open(laneSpec("acme"))
}

// group lists the living members of a process group.
func group(pgid int) []string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var members []string
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		rest := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(rest) > 2 && rest[2] == itoa(pgid) && rest[0] != "Z" && rest[0] != "X" {
			members = append(members, string(data[:40]))
		}
	}
	return members
}

// A plugin that ignores Shutdown and SIGTERM is gone within the ladder.
func TestStop_isBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "stubborn"))
	pid := b.open(laneSpec("acme")).Info().PID
	start := time.Now()
	if err := b.host.Remove("acme"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Minute { // it would never end by itself
		t.Errorf("took %s", took)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
}
