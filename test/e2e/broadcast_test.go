package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/exitcode"
)

const allOfThem = ", model: broadcasting, on_exhausted: block"

// broadcaster is a member of a broadcasting group, with a folder of its own.
func broadcaster(t *testing.T, b *broker.Broker, name string) (*stream, string) {
	t.Helper()
	s := newStage(t)
	s.brokers = []*broker.Broker{b}
	st := s.witness("prices", b, allOfThem)
	return st, s.write(fmt.Sprintf("member: %s\nstate_ephemeral: true\n", name)) // the folder of a test is below /tmp
}

// Each member handles every message, over a clean restart exactly once, and over kill -9 without loss. A failed message is
// tried again in place, at its member alone; the broker keeps no offset, no retry and no dead letter.
func TestBroadcasting(t *testing.T) {
	t.Parallel()
	b := newStage(t).newBroker()
	one, first := broadcaster(t, b, "m1")
	two, second := broadcaster(t, b, "m2")
	d1, d2 := one.start(1, first), two.start(1, second)
	all := append(numbered("both", 40), "fail 2 times")
	one.feed(all...)
	one.handles(all...)
	two.handles(all...)
	d1.stop()
	missed := numbered("while m1 is away", 20)
	one.feed(missed...)
	two.handles(missed...)
	d1 = one.start(1, first)
	one.handles(missed...)
	for _, st := range []*stream{one, two} {
		st.once()
		attempts := 0
		for _, l := range st.lines() {
			if !l.End && l.Body == "fail 2 times" {
				attempts++
			}
		}
		if attempts != 3 {
			t.Errorf("%d attempts of the message that fails twice", attempts)
		}
	}
	stop := one.load("under load")
	one.until("the load reaches both", func() (bool, string) {
		a, c := len(one.acked()), len(two.acked())
		return a > 200 && c > 200, fmt.Sprint(a, c)
	})
	d1.kill()
	two.until("the other one goes on", func() (bool, string) { n := len(two.acked()); return n > 400, fmt.Sprint(n) })
	d1 = one.start(1, first)
	stop()
	one.handles(one.bodies...)
	two.handles(one.bodies...)
	d1.stop()
	d2.stop()
	one.unburned()
	for q := range int32(queues) {
		if at, ok := b.Committed(one.group(), one.topic(), q); ok {
			t.Errorf("the broker has offset %d of queue %d", at, q)
		}
	}
	two.once() // nobody's restart is felt elsewhere
}

// T20, BC-P01: a damaged offset file is told of and its backup used; two damaged ones end the start with what to do.
func TestBroadcasting_damagedOffsets(t *testing.T) {
	t.Parallel()
	st, config := broadcaster(t, newStage(t).newBroker(), "m1")
	d := st.start(1, config)
	st.feed(numbered("before", 20)...)
	st.handles(st.bodies...)
	d.stop()
	file := filepath.Join(d.state, "offsets", "m1@"+st.broker.Name()+"@"+st.group()+".json")
	damage := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		st.save(path, string(text[:len(text)/2]))
	}
	damage(file)
	d = st.start(1, config)
	d.says(file, "damaged", "backup")
	st.feed(numbered("after", 20)...)
	st.handles(st.bodies...)
	d.stop()
	damage(file)
	damage(file + ".bak")
	d = st.start(1, config)
	<-d.done
	if code := d.cmd.ProcessState.ExitCode(); code != exitcode.Environment {
		t.Errorf("exit code %d, want %d", code, exitcode.Environment)
	}
	d.says(file, file+".bak", "move both away", "start_from")
}

// A folder that the next boot may empty is refused, and the error says how to go on.
func TestBroadcasting_ephemeralState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.witness("prices", s.newBroker(), allOfThem)
	d := s.start(1, s.write("member: m1\n"))
	<-d.done
	if code := d.cmd.ProcessState.ExitCode(); code != exitcode.Environment || !strings.Contains(d.text(), "state_ephemeral: true") {
		t.Errorf("exit code %d: %s", code, d.text())
	}
}
