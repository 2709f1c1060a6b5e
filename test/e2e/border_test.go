package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// No unary call in disguise: a backlog of 100,000 crosses the border on one stream per lane, in at most 6,400 frames at
// batch 32. A gRPC stats handler in the plugin counts.
func TestBorder_batchesCrossOnOneStream(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	path := s.path("counts.json")
	st := s.stream("bulk", b, fmt.Sprintf("command: [%q, %q]", built.counter, path), "")
	if err := b.Fill(st.topic(), queues, 100_000, 100); err != nil {
		t.Fatal(err)
	}
	d := s.run(1)
	st.settles()
	var counts struct {
		RPCs, Frames     map[string]int
		Batches, Records int
	}
	s.until("the counts of 100,000 records", func() (bool, string) {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err.Error()
		}
		if err := json.Unmarshal(text, &counts); err != nil {
			t.Fatal(err)
		}
		return counts.Records == 100_000, string(text)
	})
	t.Logf("%d batches, calls %v, frames %v", counts.Batches, counts.RPCs, counts.Frames)
	const lane = "/streamd.plugin.v1.Plugin/Lane"
	if counts.RPCs[lane] != 1 {
		t.Errorf("%d lane calls, want 1: %v", counts.RPCs[lane], counts.RPCs)
	}
	if counts.Batches > 6400 || counts.Frames[lane] > 6400+100 {
		t.Errorf("%d batches in %d frames, the limit is 6,400", counts.Batches, counts.Frames[lane])
	}
	for name, n := range counts.Frames {
		if name != lane && n > 200 { // health checks and the like
			t.Errorf("%d calls of %s", n, name)
		}
	}
	d.stop()
}

// A verdict is a message's, not its batch's: with record 0 blocked, the rest of its batch and the next ones are
// acknowledged first, and the committed offset stays.
func TestBorder_verdictsArePerMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	st := s.witness("orders", b, ", batch: {max: 256}, deadline: 1h")
	for i := range 600 {
		body := fmt.Sprint("ok ", i)
		if i == 0 {
			body = "hold 0"
		}
		st.put = 0 // all into queue 0
		st.feed(body)
	}
	d := s.run(1)
	st.handles(st.bodies[1:]...)
	d.says("started") // whole log lines by now
	if at, _ := b.Committed(st.group(), st.topic(), 0); at != 0 {
		t.Errorf("committed %d past a message without a verdict", at)
	}
	if st.acked()["hold 0"] != 0 {
		t.Error("the held message was acknowledged")
	}
	st.open()
	st.handles("hold 0")
	st.settles()
	st.once()
	d.stop()
}

// Credits are real: with the handler blocked before a backlog, no more is out than was granted, and the plugin's memory
// stays small.
func TestBorder_creditsBoundWhatIsOut(t *testing.T) {
	t.Parallel()
	const granted = 8 * 32 // the engine asks for eight batches
	s := newStage(t)
	b := s.newBroker()
	st := s.witness("orders", b, ", deadline: 2h") // what ends at one makes room for another
	st.config = strings.Replace(st.config, "{", "{slow: 1h, ", 1)
	if err := b.Fill(st.topic(), queues, 20_000, 1024); err != nil { // many times what is granted, and what the windows hold
		t.Fatal(err)
	}
	d := s.run(1)
	s.until("20 records run", func() (bool, string) { return len(st.lines()) >= 20, fmt.Sprint(len(st.lines())) })
	s.until("as many are out as may be", func() (bool, string) {
		p := d.process("orders", "has records", func(p pluginProcess) bool { return p.InFlight > 0 })
		if p.InFlight > granted {
			t.Fatalf("%d records are out, %d were granted", p.InFlight, granted)
		}
		return p.InFlight == granted, fmt.Sprint(p.InFlight)
	})
	if n := len(st.lines()); n != 20 {
		t.Errorf("%d records run, the concurrency is 20", n)
	}
	if kib := residentKiB(t, st.pid()); kib > 64<<10 {
		t.Errorf("the plugin holds %d KiB, the limit is 64 MiB", kib)
	}
	if st.committed() != 0 {
		t.Error("something was committed")
	}
	d.kill() // a drain would wait for the hour
}

// residentKiB is the memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatal("no VmRSS in the status of the process")
	return 0
}
