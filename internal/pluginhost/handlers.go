package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Configure gives a plugin a handler's config and waits until the plugin has judged it. The diagnostics point into it.
//
// A handler that is new here has it from then on, whatever comes of it: when ctx ends before a process is ready it is given
// to each one that comes up; refused, which is not an error of Configure, it is tried again from time to time, and Open
// says so. A handler that has a config keeps it, in every process, unless every ready process takes the new one: a refusal
// is an error then, and leaves no trace.
func (h *Host) Configure(ctx context.Context, spec HandlerSpec) ([]Diagnostic, error) {
	old, had := h.addHandler(spec)
	switch {
	case had && old.hash() == spec.hash() && old.Plugin == spec.Plugin:
		return h.diagnostics(spec), nil
	case had:
		return h.reconfigure(ctx, spec, old)
	}
	outcome, err := h.configureAll(ctx, spec)
	switch {
	case err != nil:
		return nil, fmt.Errorf("configuring %s: %w", spec.Name, err)
	case outcome.err != nil && len(outcome.diagnostics) == 0:
		return nil, fmt.Errorf("configuring %s: %w", spec.Name, outcome.err)
	}
	return outcome.diagnostics, nil
}

// Check has a plugin judge a config that is nobody's, and waits for a process that can. The process keeps nothing of it. One
// of before dry runs keeps an instance, under a name that no handler can have and only the next check takes. The error is a
// plugin that gives no answer, or does not offer the component.
func (h *Host) Check(ctx context.Context, spec HandlerSpec) ([]Diagnostic, error) {
	processes, err := h.awaitLive(ctx, spec.Plugin)
	if err != nil {
		return nil, fmt.Errorf("checking the config of %s: %w", spec.Name, err)
	}
	c := &configured{spec: spec}
	if err := processes[0].judge(ctx, "check of "+spec.Name, c, true); err != nil && len(c.diagnostics) == 0 {
		return nil, fmt.Errorf("checking the config of %s: %w", spec.Name, err)
	}
	return c.diagnostics, nil
}

// reconfigure tries a changed config in every process before it is anybody's.
func (h *Host) reconfigure(ctx context.Context, spec, old HandlerSpec) ([]Diagnostic, error) {
	processes, err := h.awaitLive(ctx, spec.Plugin)
	if err != nil {
		return nil, fmt.Errorf("configuring %s: the earlier config stays: %w", spec.Name, err)
	}
	var said []Diagnostic
	tried := make([]*configured, len(processes))
	for i, g := range processes {
		unlock := g.lockInstance(spec.Name)
		defer unlock() // all of them, until the outcome is known
		tried[i] = g.try(ctx, spec)
		said = tried[i].diagnostics
		if err = tried[i].err; err != nil {
			took := processes[:i]
			if !errors.Is(err, errRefused) { // no answer: who knows
				took = processes[:i+1]
			}
			takeBack(context.WithoutCancel(ctx), took, old)
			return said, fmt.Errorf("configuring %s: the earlier config stays: %w", spec.Name, err)
		}
	}
	h.setHandler(spec)
	for i, g := range processes {
		g.adopt(tried[i]) //nolint:contextcheck // lanes drain beyond the request
	}
	h.settle(spec, old) //nolint:contextcheck // processes catch up beyond the request
	return said, nil
}

// takeBack gives processes that have taken a config, which another one refused, the one that they had. By the contract the
// one that refused it has kept its instance.
func takeBack(ctx context.Context, processes []*generation, old HandlerSpec) {
	for _, g := range processes {
		before := g.config(old.Name)
		if before == nil || before.err != nil {
			continue
		}
		if again := g.try(ctx, before.spec); again.err != nil {
			again.err = fmt.Errorf("taking its earlier config again: %w", again.err)
			g.adopt(again) //nolint:contextcheck // lanes drain beyond the request
		}
	}
}

// settle gives a config in force to processes that came up meanwhile, and takes the handler from a plugin it has left.
func (h *Host) settle(spec, old HandlerSpec) {
	for _, g := range h.live(spec.Plugin) {
		h.work.Go(func() { g.sync(context.Background(), spec.Name) })
	}
	if old.Plugin != spec.Plugin {
		h.forget(old)
	}
	h.changed.broadcast()
}

// Restore makes a handler's config the one that it had before a change that is taken back. It returns when every ready
// process has it; what they say of it they have said before.
func (h *Host) Restore(ctx context.Context, spec HandlerSpec) {
	changed, had := h.setHandler(spec)
	var all sync.WaitGroup
	for _, g := range h.live(spec.Plugin) {
		all.Go(func() { g.sync(ctx, spec.Name) })
	}
	all.Wait()
	if had && changed.Plugin != spec.Plugin {
		h.forget(changed)
	}
	h.changed.broadcast()
}

// diagnostics returns what a ready process said about a config that it has; nil when none is ready.
func (h *Host) diagnostics(spec HandlerSpec) []Diagnostic {
	f := h.fleet(spec.Plugin)
	if f == nil {
		return nil
	}
	for _, s := range f.slots {
		if g := s.live(); g != nil {
			g.mu.Lock()
			c := g.configs[spec.Name]
			g.mu.Unlock()
			if c != nil && c.hash == spec.hash() {
				return c.diagnostics
			}
		}
	}
	return nil
}

// Unconfigure forgets a handler. Its lanes drain; the process keeps the instance until its end.
func (h *Host) Unconfigure(name string) {
	h.mu.Lock()
	spec, ok := h.handlers[name]
	delete(h.handlers, name)
	h.mu.Unlock()
	if ok {
		for _, g := range h.live(spec.Plugin) {
			lanes := slices.DeleteFunc(g.openLanes(), func(l *Lane) bool { return l.spec.Handler != name })
			h.work.Go(func() { g.drain(context.Background(), lanes) })
		}
		h.forget(spec)
	}
	h.changed.broadcast()
}

// forget takes a handler from the processes of a plugin that it is not of any more.
func (h *Host) forget(spec HandlerSpec) {
	for _, g := range h.live(spec.Plugin) {
		l := g.instance(spec.Name)
		if l.TryLock() {
			g.forget(spec.Name, l)
			continue
		}
		h.work.Go(func() { // it is being configured
			l.Lock()
			g.forget(spec.Name, l)
		})
	}
}

func (g *generation) forget(handler string, locked *sync.Mutex) {
	defer locked.Unlock()
	if slices.ContainsFunc(g.fleet.handlers(), func(s HandlerSpec) bool { return s.Name == handler }) {
		return // it is back
	}
	g.mu.Lock()
	delete(g.configs, handler)
	g.mu.Unlock()
	g.host.changed.broadcast()
}

// addHandler takes a spec in unless there is one of its name.
func (h *Host) addHandler(spec HandlerSpec) (old HandlerSpec, had bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, had = h.handlers[spec.Name]; !had {
		h.handlers[spec.Name] = spec
	}
	return old, had
}

func (h *Host) setHandler(spec HandlerSpec) (old HandlerSpec, had bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, had = h.handlers[spec.Name]
	h.handlers[spec.Name] = spec
	return old, had
}

func (h *Host) handlersOf(plugin string) []HandlerSpec {
	h.mu.Lock()
	defer h.mu.Unlock()
	var specs []HandlerSpec
	for _, spec := range h.handlers {
		if spec.Plugin == plugin {
			specs = append(specs, spec)
		}
	}
	slices.SortFunc(specs, func(a, b HandlerSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// configureAll gives a config to every ready process; it waits for one.
func (h *Host) configureAll(ctx context.Context, spec HandlerSpec) (*configured, error) {
	processes, err := h.awaitLive(ctx, spec.Plugin)
	if err != nil {
		return nil, err
	}
	var outcome *configured
	for _, g := range processes {
		if c := g.sync(ctx, spec.Name); c != nil && (outcome == nil || outcome.err == nil) {
			outcome = c
		}
	}
	h.changed.broadcast()
	if outcome == nil {
		return nil, errors.New("it was taken out again")
	}
	return outcome, nil
}

// sync gives the process the config that a handler has by now, unless it has it. It returns what became of it; nil when
// there is no such handler.
func (g *generation) sync(ctx context.Context, handler string) *configured {
	unlock := g.lockInstance(handler)
	defer unlock()
	specs := g.fleet.handlers()
	i := slices.IndexFunc(specs, func(s HandlerSpec) bool { return s.Name == handler })
	if i < 0 {
		return nil
	}
	c := g.config(handler)
	if c == nil || c.hash != specs[i].hash() {
		c = g.try(ctx, specs[i])
		g.adopt(c) //nolint:contextcheck // lanes drain beyond the request
	}
	return c
}

// catchUp gives a process that has just become ready the configs that changed while it came up: from here on it is among
// those that a change goes to.
func (g *generation) catchUp(ctx context.Context) {
	for _, spec := range g.fleet.handlers() {
		g.sync(ctx, spec.Name)
	}
	g.host.changed.broadcast()
}

// live are the ready processes of a plugin.
func (h *Host) live(plugin string) (processes []*generation) {
	f := h.fleet(plugin)
	if f == nil {
		return nil
	}
	for _, s := range f.all() {
		if g := s.live(); g != nil {
			processes = append(processes, g)
		}
	}
	return processes
}

// awaitLive waits for one.
func (h *Host) awaitLive(ctx context.Context, plugin string) ([]*generation, error) {
	for {
		changed := h.changed.wait()
		f := h.fleet(plugin)
		if f == nil {
			return nil, unknownPlugin(plugin)
		}
		if processes := h.live(plugin); len(processes) > 0 {
			return processes, nil
		}
		if err := h.await(ctx, changed, false); err != nil {
			return nil, unmet("not ready", f.waitsFor(), err)
		}
	}
}
