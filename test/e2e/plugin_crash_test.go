package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/test/e2e/record"
)

// Dies in mid-batch: what was in hand goes again, none of it as a failed attempt. On either path between the processes.
func TestPlugin_diesInMidBatch(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"grpc", "socketpair"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			diesInMidBatch(t, ", datapath: "+path)
		})
	}
}

func diesInMidBatch(t *testing.T, datapath string) {
	t.Helper()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	bad.plugin += datapath
	bodies := numbered("slow 5", 300)
	bodies[60], bodies[61], bodies[170] = "once 60", "once 61", "once 170"
	bad.feed(bodies...)
	d := s.run(1)
	good.goesOn("meanwhile")
	bad.handles(bodies...)
	bad.settles()
	bad.unburned()
	good.once()
	for _, l := range bad.lines() {
		if l.Attempt != 1 {
			t.Fatalf("a crash counted as an attempt: %+v", l)
		}
	}
	d.says("plugin process ended", "bad", "exit status 3")
	d.stop()
}

// Dies on one message only: that one is dead-lettered, and only after another record was acknowledged between two of its
// crashes in a process of its own; all others are handled.
func TestPlugin_diesOnOneMessageOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	bad.feed(numbered("slow 5", 100)...)
	bad.feed("exit poison")
	bad.feed(numbered("slow 6", 100)...)
	d := s.run(1)
	stop := bad.load("later")
	bad.until("the poison is dead-lettered", func() (bool, string) {
		dead := b.DeadLetters(bad.group())
		return len(dead) > 0, fmt.Sprint(len(starts(bad.lines(), "exit poison")), " deliveries of it")
	})
	stop()
	good.goesOn("meanwhile")
	bad.handles(slices.DeleteFunc(slices.Clone(bad.bodies), func(b string) bool { return b == "exit poison" })...)
	bad.settles()
	dead := b.DeadLetters(bad.group())
	if len(dead) != 1 || string(dead[0].Body) != "exit poison" {
		t.Fatalf("%d dead letters, want the one that kills", len(dead))
	}
	lines := bad.lines()
	at := starts(lines, "exit poison")
	if len(at) < 3 {
		t.Fatalf("dead-lettered after %d crashes: one with others, and two alone are the least", len(at))
	}
	between := lines[at[len(at)-2]:at[len(at)-1]]
	if !slices.ContainsFunc(between, func(l record.Line) bool { return l.End && l.Error == "" }) {
		t.Error("nothing was acknowledged between its last two crashes")
	}
	for _, l := range lines {
		if l.Attempt != 1 {
			t.Fatalf("a crash counted as an attempt: %+v", l)
		}
	}
	d.stop()
}

// starts lists where deliveries of a body start.
func starts(lines []record.Line, body string) (at []int) {
	for i, l := range lines {
		if !l.End && l.Body == body {
			at = append(at, i)
		}
	}
	return at
}

// Dies on every message for a minute: nothing is dead-lettered or sent back, the stream holds and says so. Mended by a
// reload, everything is handled. Ten minutes of it are in runtime's TestBrokenPluginBurnsNothing, in virtual time.
func TestPlugin_diesOnEveryMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	healthy := bad.plugin
	bad.plugin += ", env: {WITNESS_DIES: yes}"
	bad.feed(numbered("ok", 200)...)
	minute := time.NewTimer(time.Minute)
	defer minute.Stop()
	d := s.run(1)
	good.goesOn("meanwhile")
	d.holds("bad", "plugin_broken", "mend the plugin", "no database at db:5432")
	bad.why("plugin_broken", "nothing is dead-lettered")
	<-minute.C
	good.goesOn("still")
	bad.unburned()
	if n := bad.committed(); n != 0 {
		t.Errorf("committed %d, though nothing was handled", n)
	}
	tries := len(bad.lines())
	t.Logf("%d deliveries in a minute", tries)
	if tries > 2000 {
		t.Error("a broken plugin is tried without a pause")
	}
	bad.plugin = healthy
	d.reload()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	good.once()
	d.stop()
}

// Takes more memory than its limit: the process is replaced, and the limit is named.
func TestPlugin_eatsMemory(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	bad, good := s.witness("bad", b, ""), s.witness("good", b, "")
	bad.plugin += ", limits: {memory: 128MiB}"
	bad.feed(numbered("ok", 20)...)
	bad.feed("eat all")
	bad.feed(numbered("fine", 20)...)
	d := s.run(1)
	bad.handles(bad.bodies...)
	good.goesOn("after")
	bad.settles()
	bad.unburned()
	d.says("plugin process ended", "its limit is 128 MiB", "limits.memory")
	d.stop()
}
