package pluginhost_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/pluginhost/supervisor"
)

// patient waits for an hour after each failure, and opens the breaker at the first crash: what comes up again did not wait.
func patient(c *pluginhost.Config) {
	c.Timing.Look = 20 * time.Millisecond
	c.Timing.Policy = supervisor.Policy{
		MinPause: time.Hour, MaxPause: time.Hour, Healthy: time.Hour, Exits: 1, Window: time.Hour, HalfOpen: time.Hour,
	}
}

// broken is a plugin that does not start until it is repaired.
type broken struct {
	*bench
	path string // of its program
	spec pluginhost.PluginSpec
}

func newBroken(t *testing.T) *broken {
	t.Helper()
	p := &broken{newBench(t, patient), filepath.Join(t.TempDir(), "acme"), spec(t, "acme", "ok")}
	p.spec.Command[0] = p.path
	return p
}

func (p *broken) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// put has the path name a program. A link, because a file that was just written may be busy.
func (p *broken) put(program string) {
	p.t.Helper()
	next := p.path + ".next"
	p.must(os.Symlink(program, next))
	p.must(os.Rename(next, p.path))
}

// unlicensed makes it one that ends at its start until it has a license, and returns what gives it one.
func (p *broken) unlicensed() (license func()) {
	p.t.Helper()
	p.spec.Command = []string{"sh", "-c", fmt.Sprintf("[ -e %s ] || exit 7; exec %s ok", p.path, faulty(p.t))}
	return func() { p.must(os.WriteFile(p.path, nil, 0o600)) }
}

// down starts it, and returns when it waits for its next try.
func (p *broken) down() {
	p.t.Helper()
	p.must(p.host.Apply(p.t.Context(), p.spec))
	eventually(p.t, "it waits for its next try", func() bool { return !p.process("acme").NextTry.IsZero() })
}

// A plugin that was repaired is tried at once, and what it failed of before is forgotten.
func TestRepaired_isTriedAtOnce(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(*broken) (repair func()){
		"another binary": func(p *broken) func() {
			ends, err := exec.LookPath("false")
			p.must(err)
			p.put(ends)
			return func() { p.put(faulty(p.t)) }
		},
		"missing": func(p *broken) func() {
			return func() { p.put(faulty(p.t)) }
		},
		"not executable": func(p *broken) func() {
			writeProgram(p.t, p.path, fmt.Appendf(nil, "#!/bin/sh\nexec %s ok\n", faulty(p.t)), 0o600)
			return func() { p.must(os.Chmod(p.path, 0o700)) }
		},
		"elsewhere, and told": func(p *broken) func() {
			license := p.unlicensed()
			return func() { license(); p.host.Retry() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newBroken(t)
			repair := setup(p)
			p.down()
			repair()
			if _, err := p.host.Configure(within(t, patience), pluginhost.HandlerSpec{Name: "acme", Plugin: "acme", Use: "main"}); err != nil {
				t.Fatal(err)
			}
			l := p.open(laneSpec("acme"))
			l.until(frame.EventCredit)
			l.send("a")
			l.acked(1)
			if s := p.process("acme"); s.BreakerOpen || s.Exits != 0 || s.Restarts != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A process apart that comes up shows that the plugin starts again: its own process is tried, with its breaker as it was.
func TestSolo_showsThatThePluginStarts(t *testing.T) {
	t.Parallel()
	p := newBroken(t)
	license := p.unlicensed()
	p.down()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the host has to know of the handler; nothing is ready
	if _, err := p.host.Configure(ctx, pluginhost.HandlerSpec{Name: "acme", Plugin: "acme", Use: "main"}); err == nil {
		t.Fatal("configured")
	}
	license()
	solo := laneSpec("acme")
	solo.Solo = true
	p.open(solo).until(frame.EventCredit)
	eventually(t, "its own process is ready", func() bool { return p.process("acme").State == "ready" })
	if s := p.process("acme"); !s.BreakerOpen || s.Restarts != 1 {
		t.Errorf("%+v", s)
	}
}
