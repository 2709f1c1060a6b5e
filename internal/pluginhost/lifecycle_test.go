package pluginhost_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
)

// Automatic TLS is the default, and carries lanes as well.
func TestTLS_isTheDefault(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := spec(t, "acme", "ok")
	s.TLSOff = false
	b.apply(s)
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("a")
	l.acked(1)
	sockets, err := filepath.Glob(filepath.Join(b.run, "h-*", "g*", "*", "*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	for dir := filepath.Dir(sockets[0]); dir != b.run; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v, %v; want 0700", dir, info.Mode(), err)
		}
	}
	conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Invoke(within(t, 2*time.Second), "/streamd.plugin.v1.Plugin/Health", nil, nil); err == nil {
		t.Error("a stranger without a certificate was served")
	}
}

// A plugin without any of go-plugin's own services is served and ended without a warning; with TLS it is refused by name.
func TestBare_isTolerated(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := spec(t, "acme", "bare")
	b.apply(s)
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("a", "b")
	l.acked(2)
	s.TLSOff = false
	err := b.host.Apply(within(t, patience), s)
	if err == nil {
		t.Fatal("swapped to TLS")
	}
	contains(t, err.Error(), "sent no certificate", "tls: off")
	pid := l.Info().PID
	if err := b.host.Remove("acme"); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("it lives")
	}
}

// The environment is what the config gives and a short list; nothing else of the host's.
func TestEnvironment_isAnAllowList(t *testing.T) {
	t.Setenv("STREAMD_SECRET_KEY", "hush")
	t.Setenv("FOO", "1")
	b := newBench(t, nil)
	s := spec(t, "acme", "environment")
	s.Env = map[string]string{"Db_Url": "postgres://x"}
	b.apply(s)
	eventually(t, "the plugin tells its environment", func() bool { return b.logs.Has("ENV ") })
	for line := range strings.Lines(b.logs.String()) {
		if !strings.Contains(line, "ENV ") {
			continue
		}
		contains(t, line, "Db_Url=postgres://x", "PATH=", "STREAMD_PAGE_FD=3")
		if strings.Contains(line, "STREAMD_SECRET_KEY") || strings.Contains(line, "FOO=") {
			t.Errorf("the host's environment leaks: %s", line)
		}
	}
}

// The checksum is checked at each start: a binary that was replaced does not run after a crash.
func TestChecksum_atEachStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "acme")
	copyFile(t, faulty(t), path)
	b := newBench(t, nil)
	s := spec(t, "acme", "ok")
	s.Command[0] = path
	b.apply(s)
	l := b.open(laneSpec("acme"))
	sum := l.Info().Checksum
	s.Checksum = sum
	if err := b.host.Apply(within(t, patience), s); err != nil {
		t.Fatalf("swapping to the same binary with its checksum: %v", err)
	}
	l.until(frame.EventDrained)
	l = b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	replaced := filepath.Join(t.TempDir(), "new")
	copyFile(t, faulty(t), replaced)
	f, err := os.OpenFile(replaced, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Rename(replaced, path)); err != nil {
		t.Fatal(err)
	}
	l.send("exit")
	l.lost()
	eventually(t, "the start is refused", func() bool { return strings.Contains(b.process("acme").LastError, "the config asks for "+sum) })
	if p := b.process("acme"); p.PID != 0 || p.BreakerOpen {
		t.Errorf("%+v", p)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, to, data, 0o755)
}

// Lanes are spread over the instances, and one's crash leaves the others'.
func TestInstances_shareTheLanes(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := spec(t, "acme", "ok")
	s.Instances = 2
	b.apply(s)
	eventually(t, "both are ready", func() bool {
		p := b.host.Status()[0].Processes
		return p[0].State == "ready" && p[1].State == "ready"
	})
	lanes, pids := []*lane{}, map[int]int{}
	for range 4 {
		l := b.open(laneSpec("acme"))
		l.until(frame.EventCredit)
		lanes = append(lanes, l)
		pids[l.Info().PID]++
	}
	if len(pids) != 2 {
		t.Errorf("lanes by process: %v, want two each", pids)
	}
	crashed := lanes[0].Info().PID
	lanes[0].send("exit")
	for i, l := range lanes {
		if l.Info().PID == crashed {
			l.lost()
			lanes[i] = b.open(laneSpec("acme"))
			lanes[i].until(frame.EventCredit)
		}
	}
	// The new process gets its share back: lanes of the other one end in peace, and are opened anew.
	for range 600 { // a busy machine takes its time
		pids := map[int]int{}
		for i, l := range lanes {
			select {
			case e := <-l.Events():
				if e.Kind == frame.EventDrained {
					lanes[i] = b.open(laneSpec("acme"))
					lanes[i].until(frame.EventCredit)
				}
			case <-time.After(50 * time.Millisecond):
			}
			pids[lanes[i].Info().PID]++
		}
		if len(pids) == 2 && pids[lanes[0].Info().PID] == 2 {
			return
		}
	}
	t.Error("the lanes of the process that crashed did not come back to it")
}

// A swap under load loses nothing and repeats nothing: the old lanes drain, and the new version is there before.
func TestSwap_losesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("a", "b", "c")
	next := spec(t, "acme", "bombs")
	swapped := make(chan error, 1)
	go func() { swapped <- b.host.Apply(context.WithoutCancel(t.Context()), next) }()
	if _, acks := l.until(frame.EventDrained); acks != 3 {
		t.Errorf("%d of 3 acks before the old lane ended", acks)
	}
	start := time.Now()
	again := b.open(laneSpec("acme"))
	t.Logf("lane of the new version after %s", time.Since(start).Round(100*time.Microsecond))
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if again.Info().Generation <= l.Info().Generation {
		t.Error("the old version answers")
	}
	eventually(t, "the old process ends", func() bool { return gone(l.Info().PID) })
}

// A new version that does not come up leaves the old one alone.
func TestSwap_keepsTheOldVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	err := b.host.Apply(within(t, patience), spec(t, "acme", "exits"))
	if err == nil {
		t.Fatal("swapped")
	}
	contains(t, err.Error(), "the old version goes on", "no license found")
	contains(t, b.host.Status()[0].SwapError, "no license found")
	l.send("a")
	l.acked(1)
}

// A new version whose breaker opens on probation is taken back, though the old file is gone.
func TestSwap_rollsBackOnProbation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "acme")
	copyFile(t, faulty(t), path)
	b := newBench(t, func(c *pluginhost.Config) {
		c.Timing.Policy.MinPause, c.Timing.Policy.MaxPause = time.Millisecond, 5*time.Millisecond
		c.Timing.Policy.Healthy, c.Timing.Policy.Window = time.Minute, 2*time.Minute
		c.Timing.Policy.Exits, c.Timing.Policy.HalfOpen = 2, time.Minute
	})
	old := spec(t, "acme", "ok")
	old.Command[0] = path
	b.apply(old)
	next := spec(t, "acme", "bombs")
	if err := b.host.Apply(within(t, patience), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := b.open(laneSpec("acme"))
		l.until(frame.EventCredit)
		l.send("exit")
		l.lost()
	}
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("a")
	l.acked(1)
	contains(t, b.host.Status()[0].SwapError, "ended too often", "exit status 7")
}

// A version and the config that only it takes come into force together; neither alone would be taken.
func TestSwap_takesItsConfigsAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	next := spec(t, "acme", "wants-bad")
	var refused *pluginhost.RefusedError
	if err := b.host.Apply(within(t, patience), next); !errors.As(err, &refused) || refused.Handler != "acme" || refused.Diagnostics[0].Pointer != "/bad" {
		t.Fatalf("the version without its config: %v", err)
	}
	l.send("a")
	l.acked(1)
	with := pluginhost.HandlerSpec{Name: "acme", Plugin: "acme", Use: "main", Config: []byte(`{"bad":1}`)}
	if err := b.host.Apply(within(t, patience), next, with); err != nil {
		t.Fatal(err)
	}
	l.until(frame.EventDrained)
	again := b.open(laneSpec("acme"))
	again.until(frame.EventCredit)
	if again.Info().ConfigHash == l.Info().ConfigHash {
		t.Error("the old config is in force")
	}
	if said, err := b.host.Configure(within(t, patience), with); err != nil || len(said) > 0 {
		t.Errorf("the config that is in force, once more: %v, %v", said, err)
	}
	again.send("b")
	again.acked(1)
}

// A refused config names its place; the earlier one stays in force, and other handlers of the plugin are served.
func TestConfigure_diagnosticsPointIntoTheConfig(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	bad := pluginhost.HandlerSpec{Name: "billing", Plugin: "acme", Use: "main", Config: []byte(`{"bad":1}`)}
	got, err := b.host.Configure(within(t, patience), bad)
	if err != nil || len(got) != 1 || got[0].Pointer != "/bad" || got[0].String() != "/bad: is not known; remove it" {
		t.Fatalf("%v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.host.Open(ctx, laneSpec("billing")); err == nil || !strings.Contains(err.Error(), "/bad: is not known") {
		t.Errorf("opening a refused handler: %v", err)
	}
	good := bad
	good.Config = []byte(`{"currency":"EUR"}`)
	if got, err := b.host.Configure(within(t, patience), good); err == nil && len(got) > 0 {
		t.Errorf("%v", got)
	}
	l := b.open(laneSpec("billing"))
	l.until(frame.EventCredit)
	if _, err := b.host.Configure(within(t, patience), bad); err == nil || !strings.Contains(err.Error(), "the earlier config stays") {
		t.Errorf("replacing a good config by a bad one: %v", err)
	}
	l.send("a")
	l.acked(1)
	other := good
	other.Config = []byte(`{"currency":"USD"}`)
	if _, err := b.host.Configure(within(t, patience), other); err != nil {
		t.Fatal(err)
	}
	l.until(frame.EventDrained) // the instance of the old config
	if again := b.open(laneSpec("billing")); again.Info().ConfigHash == l.Info().ConfigHash {
		t.Error("the old config is in force")
	}
}

func TestOpen_wrongNamesAreErrorsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	for name, h := range map[string]pluginhost.HandlerSpec{
		"is a strategy, and is used as a handler": {Name: "kind", Plugin: "acme", Use: "rule"},
		"there is no handler nobody":              {Name: "unused", Plugin: "acme", Use: "main"},
	} {
		if _, err := b.host.Configure(within(t, patience), h); err != nil {
			t.Fatal(err)
		}
		handler := h.Name
		if handler == "unused" {
			handler = "nobody"
		}
		if _, err := b.host.Open(t.Context(), laneSpec(handler)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	for use, want := range map[string]string{"": "offers several components (handler main, strategy rule); name one of them", "x": `no component "x"; it offers handler main, strategy rule`} {
		if _, err := b.host.Configure(within(t, patience), pluginhost.HandlerSpec{Name: "h" + use, Plugin: "acme", Use: use}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Twenty starts and stops leave no process, no descriptor and no file; goleak watches the goroutines.
func TestCycles_leakNothing(t *testing.T) {
	b := newBench(t, nil)
	s := spec(t, "acme", "ok")
	cycle := func() int {
		b.apply(s)
		l := b.open(laneSpec("acme"))
		l.until(frame.EventCredit)
		l.send("a")
		l.acked(1)
		go func() {
			for range l.Events() { // an engine reads to the end
			}
		}()
		if err := b.host.Remove("acme"); err != nil {
			t.Fatal(err)
		}
		b.host.Unconfigure("acme")
		return l.Info().PID
	}
	cycle()
	before := descriptors(t)
	for range 20 {
		if pid := cycle(); !gone(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	eventually(t, "descriptors are closed", func() bool { return descriptors(t) <= before+2 })
	if left, err := filepath.Glob(filepath.Join(b.run, "h-*", "g*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A crash while the process is idle is noticed at once.
func TestCrash_isNoticedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *pluginhost.Config) { c.Timing.Health = time.Hour }) // nothing else would notice
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	start := time.Now()
	if err := syscall.Kill(l.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost, _ := l.lost()
	t.Logf("noticed after %s", time.Since(start).Round(100*time.Microsecond))
	contains(t, lost.Text, "ended by signal 9 (killed)", "memory")
}

// Spans that a plugin exports come out with its name, whatever it claims.
func TestTraces_carryThePluginsName(t *testing.T) {
	t.Parallel()
	got := make(chan []*trace.ResourceSpans, 1)
	b := newBench(t, func(c *pluginhost.Config) {
		c.Traces = func(_ context.Context, spans []*trace.ResourceSpans) error { got <- spans; return nil }
	})
	b.apply(spec(t, "acme", "environment"))
	sockets, err := filepath.Glob(filepath.Join(b.run, "h-*", "otlp-*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	eventually(t, "the plugin is told", func() bool { return b.logs.Has("STREAMD_OTLP_SOCKET=" + sockets[0]) })
	conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := tracecollector.NewTraceServiceClient(conn)
	export := func(n int) (*tracecollector.ExportTraceServiceResponse, error) {
		return client.Export(within(t, patience), &tracecollector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
			ScopeSpans: []*trace.ScopeSpans{{Spans: make([]*trace.Span, n)}},
		}}})
	}
	if _, err := export(2); err != nil {
		t.Fatal(err)
	}
	attributes := (<-got)[0].GetResource().GetAttributes()
	if len(attributes) != 1 || attributes[0].GetKey() != "streamd.plugin" || attributes[0].GetValue().GetStringValue() != "acme" {
		t.Errorf("attributes %v", attributes)
	}
	answer, err := export(25_000)
	if err != nil || answer.GetPartialSuccess().GetRejectedSpans() != 25_000 {
		t.Errorf("a flood: %v, %v", answer, err)
	}
}

// Whoever closes the host may close what takes the spans next: nobody is in there any more.
func TestTraces_endWithTheHost(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	var left atomic.Bool
	b := newBench(t, func(c *pluginhost.Config) {
		c.Traces = func(ctx context.Context, _ []*trace.ResourceSpans) error {
			close(entered)
			<-ctx.Done() // the host closes; it takes a while to be seen
			<-time.After(100 * time.Millisecond)
			left.Store(true)
			return nil
		}
	})
	b.apply(spec(t, "acme", "ok"))
	sockets, err := filepath.Glob(filepath.Join(b.run, "h-*", "otlp-*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exported := make(chan error, 1)
	go func() {
		_, err := tracecollector.NewTraceServiceClient(conn).Export(context.WithoutCancel(t.Context()), &tracecollector.ExportTraceServiceRequest{})
		exported <- err
	}()
	select {
	case <-entered:
	case <-time.After(patience):
		t.Fatal("the spans do not come")
	}
	if err := b.host.Close(); err != nil {
		t.Error(err)
	}
	if !left.Load() {
		t.Error("the host has closed, and spans are still being taken")
	}
	if err := <-exported; err == nil {
		t.Error("an export that the host cut off is told as taken")
	}
}

// A lane that is stopped by the engine ends with its cause, and the process goes on.
func TestLane_abort(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	l.until(frame.EventCredit)
	l.send("hang")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 records unanswered") {
		t.Errorf("draining what hangs: %v", err)
	}
	l.Abort(io.ErrClosedPipe)
	lost, _ := l.lost()
	if lost.Cause != frame.CauseStopped || len(lost.Suspects) != 0 {
		t.Errorf("%+v", lost)
	}
	contains(t, lost.Text, io.ErrClosedPipe.Error())
	again := b.open(laneSpec("acme"))
	if again.Info().PID != l.Info().PID {
		t.Error("the process was replaced")
	}
	if err := again.Send(again.batch(string(bytes.Repeat([]byte("x"), 33<<20)))); err == nil || !strings.Contains(err.Error(), "takes at most 33554432") {
		t.Errorf("a frame that the plugin does not take: %v", err)
	}
}
