package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// configured is what became of one handler's config in one generation.
type configured struct {
	spec        HandlerSpec
	hash        string
	kind        pluginv1.Component_Kind
	unordered   string          // handlers: why it cannot keep order; empty: it can
	needs       *pluginv1.Needs // strategies
	diagnostics []Diagnostic
	err         error // why it is not in force; nil: it is
}

// errRefused is wrapped by the error of a config that the plugin does not take.
var errRefused = errors.New("the plugin refuses its config")

// try puts a handler's config to the process, and changes nothing here. It never ends the process: one handler's bad config
// must not stop the others. The caller has the instance's lock.
func (g *generation) try(ctx context.Context, spec HandlerSpec) *configured {
	c := &configured{spec: spec, hash: spec.hash()}
	c.err = g.judge(ctx, spec.Name, c, false)
	return c
}

// adopt makes an outcome the one of its handler. The caller has the instance's lock.
func (g *generation) adopt(c *configured) {
	g.mu.Lock()
	old := g.configs[c.spec.Name]
	g.configs[c.spec.Name] = c
	g.mu.Unlock()
	if c.err != nil && (old == nil || old.err == nil || old.err.Error() != c.err.Error()) { // it is tried again and again
		g.logger.Warn("a handler's config is not in force; its streams wait, and it is tried again", "handler", c.spec.Name, "error", c.err)
	}
	if old != nil && old.err == nil && old.hash != c.hash && c.err == nil {
		// Lanes keep the instance they were opened with: they end in peace, and the engine opens new ones.
		stale := slices.DeleteFunc(g.openLanes(), func(l *Lane) bool { return l.spec.Handler != c.spec.Name || l.info.ConfigHash == c.hash })
		g.host.work.Go(func() { g.drain(context.Background(), stale) })
	}
}

// config is the outcome of a handler's config in this process; nil = it was not given one.
func (g *generation) config(handler string) *configured {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.configs[handler]
}

// lockInstance keeps two from configuring one instance at a time.
func (g *generation) lockInstance(name string) (unlock func()) {
	l := g.instance(name)
	l.Lock()
	return l.Unlock
}

func (g *generation) instance(name string) *sync.Mutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.instances[name]
	if l == nil {
		l = &sync.Mutex{}
		g.instances[name] = l
	}
	return l
}

// judge has the process build an instance from a config, which a dry run does not keep. c takes what it says; the error is why
// it does not take it.
func (g *generation) judge(ctx context.Context, instance string, c *configured, dryRun bool) error {
	component, err := g.component(c.spec)
	if err != nil {
		return err
	}
	c.kind, c.unordered = component.GetKind(), component.GetUnordered()
	ctx, cancel := context.WithTimeoutCause(ctx, g.host.timing.Configure, Waited(g.host.timing.Configure))
	defer cancel()
	answer, err := g.api.Configure(ctx, &pluginv1.ConfigureRequest{
		Instance: instance, Component: component.GetName(), ConfigJson: c.spec.config(), DryRun: dryRun,
	})
	if err != nil {
		return fmt.Errorf("configuring %s of plugin %s: %w", component.GetName(), g.name, g.unanswered(ctx, err))
	}
	c.needs = answer.GetNeeds()
	if c.needs == nil {
		c.needs = component.GetNeeds()
	}
	var faults []string
	for _, d := range answer.GetDiagnostics() {
		out := Diagnostic{Warning: d.GetSeverity() == pluginv1.Diagnostic_SEVERITY_WARNING, Pointer: d.GetPointer(), Text: g.host.redact(d.GetText()), Hint: g.host.redact(d.GetHint())}
		c.diagnostics = append(c.diagnostics, out)
		if !out.Warning {
			faults = append(faults, out.String())
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", errRefused, strings.Join(faults, "; "))
	}
	return nil
}

// component finds what a handler uses.
func (g *generation) component(spec HandlerSpec) (*pluginv1.Component, error) {
	g.mu.Lock()
	components := g.about.GetComponents()
	g.mu.Unlock()
	return Choose(components, spec)
}

// ready tells whether a handler's config is in force, and if not, why.
func (g *generation) ready(handler string, kind pluginv1.Component_Kind) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.configs[handler]
	switch {
	case c == nil:
		return fmt.Errorf("plugin %s was not given the config of %s yet", g.name, handler)
	case c.err != nil:
		return c.err
	case c.kind != kind:
		return fmt.Errorf("%w: %s of plugin %s is a %s, and is used as a %s", errKind, handler, g.name, kindName(c.kind), kindName(kind))
	}
	return nil
}

// errKind is wrapped by the error of a component that is used as what it is not.
var errKind = errors.New("wrong kind of component")

// errUnordered is wrapped by the error of a handler that does not keep the order that its stream wants.
var errUnordered = errors.New("the handler does not keep order")

// keepsOrder is an error when a handler declares that it cannot keep order.
func (g *generation) keepsOrder(handler string) error {
	if c := g.config(handler); c != nil && c.unordered != "" {
		return fmt.Errorf("%w (%s says plugin %s); write order: none in its streams, or name another handler", errUnordered, c.unordered, g.name)
	}
	return nil
}

func kindName(k pluginv1.Component_Kind) string {
	switch k {
	case pluginv1.Component_KIND_HANDLER:
		return "handler"
	case pluginv1.Component_KIND_STRATEGY:
		return "strategy"
	default:
		return "component of unknown kind"
	}
}

// introduce asks the new process what it is and gives it the configs of its handlers. On an error the process is ended.
func (g *generation) introduce(ctx context.Context) error {
	if err := g.describe(ctx); err != nil {
		g.stop(frame.Lost{Cause: frame.CauseStopped, Text: err.Error()}) //nolint:contextcheck // bounded by its ladder
		return err
	}
	var all sync.WaitGroup // at once: one that takes its time must not hold up the others
	for _, spec := range g.fleet.handlers() {
		all.Go(func() { g.sync(ctx, spec.Name) })
	}
	all.Wait()
	return nil
}

// retryConfigs tries refused configs again while the process lives: what a config needs (a database) may come later.
func (g *generation) retryConfigs() {
	const first, longest = time.Second, 30 * time.Second
	pause := first
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-g.dead:
			return
		}
		refused := g.refused()
		pause = min(2*pause, longest)
		if len(refused) == 0 {
			pause = first
		}
		for _, c := range refused {
			if g.again(context.Background(), c) {
				g.host.changed.broadcast()
			}
		}
		timer.Reset(pause)
	}
}

// again tries a refused config once more, unless another has taken its place. It tells whether it is in force now.
func (g *generation) again(ctx context.Context, refused *configured) bool {
	unlock := g.lockInstance(refused.spec.Name)
	defer unlock()
	if g.config(refused.spec.Name) != refused {
		return false
	}
	c := g.try(ctx, refused.spec)
	if g.config(refused.spec.Name) != refused { // forgotten meanwhile
		return false
	}
	g.adopt(c) //nolint:contextcheck // lanes drain beyond the request
	return c.err == nil
}

func (g *generation) refused() []*configured {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*configured
	for _, c := range g.configs {
		if c.err != nil && g.fate == nil {
			all = append(all, c)
		}
	}
	return all
}

// outcome tells why a handler's config is not in force; nil when it is.
func (g *generation) outcome(handler string) error {
	if c := g.config(handler); c != nil {
		return c.err
	}
	return errRefused
}
