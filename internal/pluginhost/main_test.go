package pluginhost_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
)

// The plugins that misbehave, and that use the SDK: each built once for all tests.
var (
	faulties = plugin{pkg: "./testplugins/faulty"}
	authors  = plugin{pkg: "./testplugins/author"}
)

// plugin is a test plugin.
type plugin struct {
	pkg  string
	once sync.Once
	path string
	err  error
}

func (p *plugin) get(t *testing.T) string {
	t.Helper()
	p.once.Do(func() {
		p.path = filepath.Join(scratch, filepath.Base(p.pkg))
		if out, err := exec.Command("go", "build", "-o", p.path, p.pkg).CombinedOutput(); err != nil {
			p.err = fmt.Errorf("building the test plugin: %w: %s", err, out)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}

var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(hostMode) != "" {
		runHost()
		return
	}
	dir, err := os.MkdirTemp("", "ph")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := 1
	goleak.VerifyTestMain(m, goleak.Cleanup(func(c int) { code = c; _ = os.RemoveAll(dir); os.Exit(code) }))
}

func faulty(t *testing.T) string {
	t.Helper()
	return faulties.get(t)
}

type bench struct {
	t    *testing.T
	host *pluginhost.Host
	logs *logtest.Log
	run  string
}

// patience bounds every wait: a slow machine must not fail a test.
const patience = 2 * time.Minute

// quick makes what takes seconds in production take less, where a test waits for it, and gives time to what would only come
// of a slow machine: a process that is taken for a frozen one, a drain or a dump of stacks that is cut off.
func quick() pluginhost.Timing {
	return pluginhost.Timing{
		Health: 300 * time.Millisecond, HealthDeadline: 5 * time.Second, Grace: 300 * time.Millisecond, Dump: 30 * time.Second,
		Describe: 30 * time.Second,
		Memory:   50 * time.Millisecond, Drain: 30 * time.Second, Dry: 50 * time.Millisecond, SoloIdle: 300 * time.Millisecond,
	}
}

func newBench(t *testing.T, change func(*pluginhost.Config)) *bench {
	t.Helper()
	run, err := os.MkdirTemp(scratch, "r") //nolint:usetesting // the name of a test makes the path of a socket too long
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, logs: &logtest.Log{}, run: run}
	config := pluginhost.Config{
		Logger:  slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Version: "test", RunDir: run, Timing: quick(),
		Limiter: memlimit.Watcher{}, // wherever the tests run: hosts side by side would meet in one delegated cgroup
	}
	if change != nil {
		change(&config)
	}
	if b.host, err = pluginhost.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.host.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
		if left, err := filepath.Glob(filepath.Join(run, "*")); err != nil || len(left) > 0 {
			t.Errorf("left in the run directory: %v, %v", left, err)
		}
		if t.Failed() {
			t.Logf("the host's log:\n%s", b.logs)
		}
	})
	return b
}

// writeProgram keeps other tests from forking meanwhile: their children would have the file open for writing until they
// execute, and what is open for writing cannot be executed (ETXTBSY).
func writeProgram(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// spec is a plugin in one of the modes of testplugins/faulty.
func spec(t *testing.T, name, mode string) pluginhost.PluginSpec {
	t.Helper()
	return pluginhost.PluginSpec{Name: name, Command: []string{faulty(t), mode}, TLSOff: true}
}

// apply starts a plugin and configures a handler of the same name on it.
func (b *bench) apply(s pluginhost.PluginSpec) {
	b.t.Helper()
	if err := b.host.Apply(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.host.Configure(within(b.t, patience), pluginhost.HandlerSpec{Name: s.Name, Plugin: s.Name, Use: "main"}); err != nil {
		b.t.Fatal(err)
	}
}

func laneSpec(handler string) frame.LaneSpec {
	return frame.LaneSpec{Handler: handler, Stream: "orders", Concurrency: 4, Credits: 64, Deadline: time.Minute}
}

func (b *bench) open(s frame.LaneSpec) *lane {
	b.t.Helper()
	l, err := b.host.Open(within(b.t, patience), s)
	if err != nil {
		b.t.Fatal(err)
	}
	return &lane{b, l, 0}
}

// lane drives a lane as an engine does.
type lane struct {
	*bench
	*pluginhost.Lane
	seq uint64
}

func (l *lane) batch(bodies ...string) *frame.Batch {
	var build frame.Builder
	for i, body := range bodies {
		build.Append(&frame.Record{Topic: "Orders", ID: fmt.Sprint(i), Body: []byte(body)})
	}
	l.seq++
	return &frame.Batch{Seq: l.seq, Budget: time.Minute, Records: *build.Records()}
}

func (l *lane) send(bodies ...string) uint64 {
	l.t.Helper()
	batch := l.batch(bodies...)
	if err := l.Send(batch); err != nil {
		l.t.Fatalf("sending: %v", err)
	}
	return batch.Seq
}

func (l *lane) event() frame.Event {
	l.t.Helper()
	select {
	case e, ok := <-l.Events():
		if !ok {
			l.t.Fatal("the events have ended")
		}
		return e
	case <-time.After(patience):
		l.t.Fatal("no event")
	}
	return frame.Event{}
}

// until reads events to the first of a kind, and counts the acks on the way.
func (l *lane) until(kind frame.EventKind) (e frame.Event, acks int) {
	l.t.Helper()
	for {
		e = l.event()
		if e.Kind == frame.EventResults {
			for i := 1; i < len(e.Results.AckRuns); i += 2 {
				acks += int(e.Results.AckRuns[i])
			}
		}
		if e.Kind == kind {
			return e, acks
		}
		if e.Kind == frame.EventLost {
			l.t.Fatalf("lane lost: %+v", *e.Lost)
		}
	}
}

// acked waits for n acks.
func (l *lane) acked(n int) {
	l.t.Helper()
	for got := 0; got < n; {
		_, acks := l.until(frame.EventResults)
		got += acks
	}
}

func (l *lane) lost() (frame.Lost, int) {
	l.t.Helper()
	e, acks := l.until(frame.EventLost)
	if _, open := <-l.Events(); open {
		l.t.Error("events come after the last one")
	}
	return *e.Lost, acks
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
}

func (b *bench) process(name string) pluginhost.ProcessStatus {
	b.t.Helper()
	for _, p := range b.host.Status() {
		if p.Name == name && len(p.Processes) > 0 {
			return p.Processes[0]
		}
	}
	b.t.Fatalf("no process of %s", name)
	return pluginhost.ProcessStatus{}
}

// eventually polls a condition that nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%s: not in %s", what, patience)
		}
	}
}
