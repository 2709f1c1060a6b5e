package pluginhost

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk/pluginv1"
)

// PluginStatus is what can be told of a plugin.
type PluginStatus struct {
	Name      string
	Version   string // of a ready process; "" before there was one
	Checksum  string
	SwapError string // why the last new version was taken back; "" = it was not
	Processes []ProcessStatus
	Handlers  []HandlerStatus
}

// ProcessStatus is one process that is kept running.
type ProcessStatus struct {
	State         string // absent, probing, starting, configuring, ready, draining, stopped, backoff, failed
	Since         time.Time
	PID           int // 0 = no process
	Generation    uint64
	Solo          bool // where suspects of a crash are tried
	Restarts      int
	StartFailures int       // in a row
	Exits         int       // within the breaker's window
	BreakerOpen   bool      // tried again at most a minute apart
	NextTry       time.Time // zero = none is waited for
	LastError     string    // of the last failed try, with the process's last lines
	LastErrorAt   time.Time

	Memory          int64 // bytes, its children included
	MemoryLimit     int64 // 0 = none
	MemoryMechanism string
	LogLines        uint64
	LogDropped      uint64 // lines that the rate limit left out
	Violations      uint64 // lanes closed for broken protocol
	Lanes           []LaneStatus
}

// LaneStatus is one lane.
type LaneStatus struct {
	Handler, Stream string
	Shard           int
	Since           time.Time
	InFlight        int // records sent and unanswered
	Credits         int // records that may be sent
	Duplicates      uint64
	Draining        bool
	// DrySince is set while the plugin gives no credit though it has nothing to do.
	DrySince time.Time
}

// HandlerStatus is one handler's config.
type HandlerStatus struct {
	Name, Use   string
	ConfigHash  string
	Error       string // why it is not in force; "" = it is, or no process is ready
	Diagnostics []Diagnostic
}

// Status tells about all plugins, sorted by name.
func (h *Host) Status() []PluginStatus {
	h.mu.Lock()
	type entry struct {
		fleet *fleet
		err   error
	}
	entries := map[string]entry{}
	for name, p := range h.plugins {
		entries[name] = entry{p.current, p.swapErr}
	}
	h.mu.Unlock()
	out := make([]PluginStatus, 0, len(entries))
	for name, e := range entries {
		st := PluginStatus{Name: name}
		if e.err != nil {
			st.SwapError = e.err.Error()
		}
		if e.fleet != nil {
			e.fleet.describe(&st)
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b PluginStatus) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (f *fleet) describe(st *PluginStatus) {
	for _, s := range f.all() {
		p, g := s.describe()
		st.Processes = append(st.Processes, p)
		if g == nil {
			continue
		}
		info := g.laneInfo("")
		st.Version, st.Checksum = info.Version, info.Checksum
		if st.Handlers == nil {
			st.Handlers = g.handlers()
		}
	}
}

func (s *slot) describe() (ProcessStatus, *generation) {
	s.mu.Lock()
	status, g := s.status, s.gen
	p := ProcessStatus{
		State: status.State.String(), Since: status.Since, Generation: status.Generation, Solo: s.solo,
		Restarts: status.Restarts, StartFailures: status.StartFailures, Exits: status.Exits, BreakerOpen: status.Open,
		NextTry: status.NextTry, LastError: s.lastErr, LastErrorAt: s.lastAt, MemoryLimit: s.fleet.spec.Memory,
	}
	s.mu.Unlock()
	if g == nil {
		return p, nil
	}
	p.PID, p.Memory, p.MemoryMechanism = g.pid(), g.rss.Load(), string(g.mechanism())
	p.LogLines, p.LogDropped = g.pump.Counts()
	p.Violations = g.violations.Load()
	for _, l := range g.openLanes() {
		p.Lanes = append(p.Lanes, l.status())
	}
	slices.SortFunc(p.Lanes, func(a, b LaneStatus) int {
		if c := strings.Compare(a.Stream, b.Stream); c != 0 {
			return c
		}
		return a.Shard - b.Shard
	})
	return p, g
}

func (l *Lane) status() LaneStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LaneStatus{
		Handler: l.spec.Handler, Stream: l.spec.Stream, Shard: l.spec.Shard, Since: l.since, InFlight: l.ledger.records,
		Credits: l.ledger.credits, Duplicates: l.ledger.duplicates, Draining: l.draining, DrySince: l.dry,
	}
}

func (g *generation) handlers() []HandlerStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []HandlerStatus
	for name, c := range g.configs {
		st := HandlerStatus{Name: name, Use: c.spec.Use, ConfigHash: c.hash, Diagnostics: c.diagnostics}
		if c.err != nil {
			st.Error = c.err.Error()
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b HandlerStatus) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Describe returns what a plugin says about itself: its version, components and their JSON Schemas. It waits for a process
// that is up.
func (h *Host) Describe(ctx context.Context, name string) (*pluginv1.DescribeResponse, error) {
	for {
		changed := h.changed.wait()
		f := h.fleet(name)
		if f == nil {
			return nil, unknownPlugin(name)
		}
		for _, s := range f.slots {
			if g := s.live(); g != nil {
				return g.about, nil
			}
		}
		if err := h.await(ctx, changed, false); err != nil {
			return nil, unmet("plugin "+name+" is not ready", f.waitsFor(), err)
		}
	}
}
