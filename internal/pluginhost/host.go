package pluginhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/internal/pluginhost/supervisor"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Config is what a Host needs.
type Config struct {
	Logger  *slog.Logger // required
	Lines   *slog.Logger // takes what plugins log; nil = Logger
	Version string       // the host's, told to plugins
	// RunDir is where the private directory for sockets is made; "" = one for this user. Must be short: sockets have
	// paths of at most 107 bytes.
	RunDir string
	// Traces takes what plugins export over OTLP; nil = they are offered no socket.
	Traces TraceSink
	// Limiter holds plugins' memory; nil = a delegated cgroup v2 when there is one, else a watch on their memory.
	Limiter memlimit.Limiter
	Timing  Timing // zero fields = defaults
	// TimeoutName is where people set a plugin's StartTimeout, for errors; "" = start_timeout.
	TimeoutName string
	// CPUWaits tells how long the threads of a process have waited for a processor; nil = process.CPUWaits.
	CPUWaits func(pid int) map[int]time.Duration
	// Written says where people wrote a key of a plugin, command or checksum, for errors: file:line:col; "" = unknown. nil = nobody
	// wrote any. It must not block or call the host.
	Written func(plugin, key string) string
	Clock   func() time.Time // nil = time.Now
	// Described is told what a process offers, before it gets a handler's config or a message; nil = nobody. It must not
	// block or call the host.
	Described func(plugin string, about *pluginv1.DescribeResponse)
	// Redact takes secrets out of what plugins say: last words, verdicts, diagnostics, spans. nil = nothing is taken out. Their
	// log lines go to Lines as they are.
	Redact func(string) string
}

// Timing holds the host's durations and counts.
type Timing struct {
	Policy         supervisor.Policy // restarts and breaker
	Health         time.Duration     // between health checks: 1 s
	HealthDeadline time.Duration     // 500 ms
	Misses         int               // health checks without an answer, and no frame in between, until a process is replaced: 3
	Grace          time.Duration     // beyond a record's deadline, until a silent process is replaced: 5 s
	Dry            time.Duration     // without credit on an idle lane, until the log says so: 30 s
	Memory         time.Duration     // between looks at its memory: 250 ms
	Describe       time.Duration     // 5 s
	Configure      time.Duration     // 60 s
	Drain          time.Duration     // for lanes of a process that is replaced or stopped: 10 s
	Dump           time.Duration     // for a process that hangs to write its stacks and end, until it is killed: 1 s
	SoloIdle       time.Duration     // until an unused solo process is stopped: 30 s
	Look           time.Duration     // between looks at the file of a plugin that waits for its next try: 1 s
	Probation      time.Duration     // in which a new version that trips is taken back: 2 min
}

func (t Timing) withDefaults() Timing {
	if t.Policy == (supervisor.Policy{}) {
		t.Policy = supervisor.DefaultPolicy()
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Health, time.Second},
		{&t.HealthDeadline, 500 * time.Millisecond},
		{&t.Grace, 5 * time.Second},
		{&t.Dry, 30 * time.Second},
		{&t.Memory, 250 * time.Millisecond},
		{&t.Describe, 5 * time.Second},
		{&t.Configure, time.Minute},
		{&t.Drain, 10 * time.Second},
		{&t.Dump, time.Second},
		{&t.SoloIdle, 30 * time.Second},
		{&t.Look, time.Second},
		{&t.Probation, 2 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if t.Misses <= 0 {
		t.Misses = 3
	}
	return t
}

// Host manages plugins. Safe for concurrent use.
type Host struct {
	logger   *slog.Logger
	lines    *slog.Logger // of plugins
	logLevel string       // for plugins: the least level that the logger takes
	version  string
	now      func() time.Time
	timing   Timing
	run      *process.RunDir
	spawner  *process.Spawner
	link     *border.Link
	limiter  memlimit.Limiter

	described   func(plugin string, about *pluginv1.DescribeResponse)
	waits       func(pid int) map[int]time.Duration
	timeoutName string
	written     func(plugin, key string) string // may be nil
	clean       func(string) string             // takes secrets out of a text; nil = nothing

	traces  *traceServers
	changed *notifier
	work    sync.WaitGroup
	quit    chan struct{} // closed by Close: nobody reads events any more

	births, lanes atomic.Uint64
	generations   generations

	mu       sync.Mutex
	plugins  map[string]*plugin
	handlers map[string]HandlerSpec
	closed   bool
}

// plugin is one name under plugins:.
type plugin struct {
	changing sync.Mutex // one change at a time
	current  *fleet     // guarded by Host.mu
	swapErr  error      // why the last swap was taken back; guarded by Host.mu
}

// errClosed says that the host is closed.
var errClosed = errors.New("the plugin host is closed")

// New makes a host and its private directory, and sweeps what dead hosts left.
func New(c Config) (*Host, error) {
	run, err := process.OpenRunDir(c.RunDir)
	if err != nil {
		return nil, fmt.Errorf("preparing the plugin host: %w", err)
	}
	link, err := border.NewLink()
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	h := &Host{
		logger: c.Logger, lines: cmp.Or(c.Lines, c.Logger), logLevel: logLevel(cmp.Or(c.Lines, c.Logger)), version: c.Version, now: c.Clock, timing: c.Timing.withDefaults(), run: run, link: link, limiter: c.Limiter,
		spawner: process.NewSpawner(), changed: newNotifier(), quit: make(chan struct{}), described: c.Described, timeoutName: cmp.Or(c.TimeoutName, "start_timeout"),
		plugins: map[string]*plugin{}, handlers: map[string]HandlerSpec{},
	}
	h.clean, h.written, h.waits = c.Redact, c.Written, c.CPUWaits
	if h.waits == nil {
		h.waits = process.CPUWaits
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.limiter == nil {
		h.limiter = memlimit.Watcher{}
		d, reason := memlimit.Detect()
		if d != nil {
			h.limiter = d
		}
		h.logger.Debug("memory of plugins", "cgroup2", d != nil, "reason", reason)
	}
	h.traces = newTraceServers(h, c.Traces)
	return h, nil
}

// Apply makes a plugin run as the spec says. A new one is started and not waited for. A changed one is swapped: the new
// version is ready before the old one drains; when it does not come up, or ctx ends before, the old one goes on and the
// error says why. The same spec again changes nothing.
//
// with are configs of handlers that belong to the new version: only it is given them, and they are in force when it is.
// A config that it refuses, of these or of those in force, is a *RefusedError.
func (h *Host) Apply(ctx context.Context, spec PluginSpec, with ...HandlerSpec) error {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return err
	}
	p, err := h.lockPlugin(spec.Name)
	if err != nil {
		return err
	}
	defer p.changing.Unlock()
	h.mu.Lock()
	old := p.current
	h.mu.Unlock()
	if old != nil && old.spec.equal(spec) {
		return nil
	}
	if old != nil {
		return h.swap(ctx, p, old, spec, with)
	}
	next, err := h.launch(p, spec)
	if err != nil {
		return err
	}
	next.want()
	return nil
}

// lockPlugin returns the entry of a name, locked for changes.
func (h *Host) lockPlugin(name string) (*plugin, error) {
	for {
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			return nil, errClosed
		}
		p := h.plugins[name]
		if p == nil {
			p = &plugin{}
			h.plugins[name] = p
		}
		h.mu.Unlock()
		p.changing.Lock()
		h.mu.Lock()
		same := h.plugins[name] == p
		h.mu.Unlock()
		if same {
			return p, nil
		}
		p.changing.Unlock() // removed while we waited
	}
}

// launch makes the first fleet of a plugin.
func (h *Host) launch(p *plugin, spec PluginSpec) (*fleet, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	p.current = newFleet(h, spec)
	return p.current, nil
}

// Remove stops a plugin; its lanes drain first. One that is not there is no error.
func (h *Host) Remove(name string) error {
	h.mu.Lock()
	p := h.plugins[name]
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	h.mu.Lock()
	f := p.current
	p.current = nil
	delete(h.plugins, name)
	h.mu.Unlock()
	h.changed.broadcast()
	if f != nil {
		f.retire()
	}
	h.traces.stop(name)
	return nil
}

func (h *Host) fleet(name string) *fleet {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.plugins[name]; p != nil {
		return p.current
	}
	return nil
}

func unknownPlugin(name string) error {
	return fmt.Errorf("there is no plugin %s; add it to the list of plugins", name)
}

// Close drains and stops all plugins, removes the private directory and ends every goroutine. Events of lanes that nobody
// takes are dropped.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	names := make([]string, 0, len(h.plugins))
	for name := range h.plugins {
		names = append(names, name)
	}
	h.mu.Unlock()
	h.changed.broadcast() // a swap under way gives up
	var all sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		all.Go(func() { errs[i] = h.Remove(name) })
	}
	all.Wait()
	close(h.quit)
	h.traces.close()
	h.work.Wait()
	h.spawner.Close()
	return errors.Join(append(errs, h.run.Close())...)
}

// stopping tells whether Close was called.
func (h *Host) stopping() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *Host) nextLane() uint64 { return h.lanes.Add(1) }

// generations numbers the starts of each plugin's processes, from 1. A plugin that is removed and comes back counts on. The
// zero value is ready.
type generations struct {
	mu   sync.Mutex
	last map[string]uint64
}

func (g *generations) next(plugin string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[string]uint64{}
	}
	g.last[plugin]++
	return g.last[plugin]
}

// logLevel is the least level that a logger takes, in the word that plugins read.
func logLevel(logger *slog.Logger) string {
	for _, l := range []struct {
		level slog.Level
		word  string
	}{{slog.LevelDebug, "debug"}, {slog.LevelInfo, "info"}, {slog.LevelWarn, "warn"}} {
		if logger.Enabled(context.Background(), l.level) {
			return l.word
		}
	}
	return "error"
}
