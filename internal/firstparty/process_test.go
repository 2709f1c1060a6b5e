package firstparty_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/runtime"
)

// processes opens strategies in real processes, as the daemon does it.
type processes struct {
	t    *testing.T
	host *pluginhost.Host
}

func newProcesses(t *testing.T, plugins ...pluginhost.PluginSpec) *processes {
	t.Helper()
	run, err := os.MkdirTemp("", "fp") //nolint:usetesting // sockets live in it: its path has to be short
	if err != nil {
		t.Fatal(err)
	}
	h, err := pluginhost.New(pluginhost.Config{
		Logger: slog.New(slog.DiscardHandler), Version: "test", RunDir: run,
		Timing: pluginhost.Timing{HealthDeadline: 5 * time.Second, Describe: time.Minute}, // a slow machine must not fail a test
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
		if err := os.RemoveAll(run); err != nil {
			t.Error(err)
		}
	})
	for _, p := range plugins {
		if err := h.Apply(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return &processes{t, h}
}

func (p *processes) Open(ctx context.Context, spec runtime.StrategySpec) (runtime.Strategy, error) {
	instance := spec.Stream + "." + spec.Use
	diagnostics, err := p.host.Configure(ctx, pluginhost.HandlerSpec{Name: instance, Plugin: spec.Plugin, Use: spec.Use, Config: spec.Config})
	if err != nil {
		return nil, err
	}
	for _, d := range diagnostics {
		return nil, fmt.Errorf("config: %s", d)
	}
	deadline := time.Minute // a slow machine must not fail a test
	if spec.Use == "hangs" {
		deadline = time.Second // it never answers
	}
	return p.host.OpenStrategy(ctx, pluginhost.StrategyConfig{Instance: instance, Name: spec.Plugin + "/" + spec.Use, Config: spec.Config, Deadline: deadline})
}

// itself is the test binary as a plugin.
func itself(t *testing.T, name, mode string) pluginhost.PluginSpec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return pluginhost.PluginSpec{Name: name, Command: []string{self}, Env: map[string]string{serveMode: mode}, TLSOff: true}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Java's tables through a real process, and after its death in process, with no answer missing in between.
func TestServedByAProcess(t *testing.T) {
	p := newProcesses(t, itself(t, firstparty.PluginName, "allocate"))
	strategies := firstparty.NewStrategies(p, slog.New(slog.DiscardHandler))
	check := func() {
		t.Helper()
		for i, c := range allocatetest.JavaCases() {
			s, err := strategies.Open(t.Context(), runtime.StrategySpec{Stream: fmt.Sprint(c.Row, i), Name: c.Strategy, Config: []byte(c.Config)})
			if err != nil {
				t.Fatalf("%s: %v", c.Row, err)
			}
			all, err := allocatetest.ParseQueues(c.Topic, c.Queues)
			if err != nil {
				t.Fatal(err)
			}
			in := allocatetest.Input(t, all, c.Members)
			owner, err := s.Solve(within(t, 2*time.Minute), in)
			if (err != nil) != (c.Shares == nil) {
				t.Errorf("%s: %v", c.Row, err)
				continue
			}
			for member := range c.Shares {
				want, err := allocatetest.ParseQueues(c.Topic, c.Shares[member])
				if err != nil {
					t.Fatal(err)
				}
				if got := allocate.Share(in, owner, member); !slices.Equal(got, want) {
					t.Errorf("%s: member %d owns %v, want %v", c.Row, member, got, want)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	check()
	if _, err := p.host.Describe(within(t, 2*time.Minute), firstparty.PluginName); err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, status := range p.host.Status() {
		for _, process := range status.Processes {
			if process.PID == 0 { // it would be the test's own group
				continue
			}
			if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed == 0 {
		t.Error("there is no process to kill")
	}
	check()
}

// The example for authors, built as an author builds it.
func TestNearestPlugin(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "nearest")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/streamd/streamd/plugins/nearest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := newProcesses(t, pluginhost.PluginSpec{Name: "nearest", Command: []string{binary}})
	open := func(config string) (runtime.Strategy, error) {
		return p.Open(within(t, 2*time.Minute), runtime.StrategySpec{Stream: "s" + fmt.Sprint(len(config)), Plugin: "nearest", Use: "nearest", Config: []byte(config)})
	}
	s, err := open(`{"zones":[{"name":"a","brokers":["b0"]},{"name":"b","brokers":["b1"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if needs := s.Needs(); !slices.Equal(needs.Attributes, []string{"zone"}) || needs.Partial || needs.PerMember {
		t.Errorf("needs %+v", needs)
	}
	all, err := allocatetest.ParseQueues("T", "b0:0-1 b1:0-1")
	if err != nil {
		t.Fatal(err)
	}
	g := allocate.NewGuard(allocate.GuardConfig{Identity: s.Identity(), Needs: s.Needs()})
	d := g.Decide(allocate.View{Group: "G", Topic: "T", Self: "2@1@zone=a", Members: []string{"2@1@zone=a", "1@1@zone=b"}, Queues: all},
		func(in allocate.Input) ([]int32, error) { return s.Solve(t.Context(), in) })
	if d.Reason != nil || !slices.Equal(d.Mine, all[:2]) {
		t.Errorf("owns %v, %v, want the queues of its zone", d.Mine, d.Reason)
	}
	if _, err := open(`{"zones":[{"name":"a","brokers":["x"]},{"name":"b","brokers":["x"]}]}`); err == nil || !strings.Contains(err.Error(), "broker x is in zone a and in zone b") {
		t.Errorf("a contradictory config: %v", err)
	}
}

// RB-P08: a strategy process that fails in each way: the verified share stays, and other strategies of the same plugin
// go on.
func TestBrokenPluginKeepsTheShare(t *testing.T) {
	p := newProcesses(t, itself(t, "broken", "broken"))
	sound, err := p.Open(within(t, 2*time.Minute), runtime.StrategySpec{Stream: "other", Plugin: "broken", Use: "sound"})
	if err != nil {
		t.Fatal(err)
	}
	all := allocatetest.Queues("T", "b", 4)
	view := allocate.View{Group: "G", Topic: "T", Self: "c1", Members: []string{"c1", "c2"}, Queues: all}
	ask := func(s runtime.Strategy) allocate.Ask {
		return func(in allocate.Input) ([]int32, error) { return s.Solve(t.Context(), in) }
	}
	for _, c := range []struct {
		use  string
		rule allocate.Rule
		text string
	}{
		{"repeats", allocate.RuleTwoOwners, "queue T/b/0 has two owners: c"},
		{"forgets", allocate.RuleUncovered, "queue T/b/0 has no owner"},
		{"invents", allocate.RuleForeignQueue, "queue T/nowhere/1"},
		{"wavers", allocate.RuleUnstable, "changes its mind"},
		{"panics", allocate.RuleRefused, "main_test.go"},
		{"refuses", allocate.RuleRefused, "no map of zones"},
		{"hangs", allocate.RuleTimeout, "did not answer in time"},
		{"dies", allocate.RuleCrash, "broken/dies"},
	} {
		t.Run(c.use, func(t *testing.T) {
			s, err := p.Open(within(t, 2*time.Minute), runtime.StrategySpec{Stream: "orders", Plugin: "broken", Use: c.use})
			if err != nil {
				t.Fatal(err)
			}
			g := allocate.NewGuard(allocate.GuardConfig{Identity: s.Identity(), Needs: s.Needs()})
			if d := g.Decide(view, ask(sound)); d.Reason != nil || len(d.Mine) != 4 {
				t.Fatalf("a sound answer was refused: %+v", d)
			}
			grown := view
			grown.Members = []string{"c1", "c2", "c3"}
			d := g.Decide(grown, ask(s))
			if !d.Kept || !slices.Equal(d.Mine, all) || allocate.RuleOf(d.Reason) != c.rule || c.rule != allocate.RuleUnstable && !strings.Contains(d.Reason.Error(), c.text) {
				t.Errorf("kept %v, own %v, reason %v; want rule %s and %q", d.Kept, d.Mine, d.Reason, c.rule, c.text)
			}
		})
	}
	// The process comes back after the death, with every strategy's config.
	ctx := within(t, 2*time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		owner, err := sound.Solve(ctx, allocatetest.Input(t, all, []string{"c1"}))
		if err == nil {
			if !slices.Equal(owner, []int32{0, 0, 0, 0}) {
				t.Errorf("answered %v after the other strategy killed the process", owner)
			}
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("the process did not come back: %v", err)
		}
	}
}
