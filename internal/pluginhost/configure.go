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
	needs       *pluginv1.Needs // strategies
	diagnostics []Diagnostic
	err         error // why it is not in force; nil: it is
}

// errRefused is wrapped by the error of a config that the plugin does not take.
var errRefused = errors.New("the plugin refuses its config")

// configure gives a handler's config to the process and remembers the outcome. It never ends the process: one handler's
// bad config must not stop the others.
func (g *generation) configure(ctx context.Context, spec HandlerSpec) *configured {
	c := &configured{spec: spec, hash: spec.hash()}
	c.err = g.tryConfigure(ctx, c)
	if c.err != nil {
		g.logger.Warn("a handler's config is not in force", "handler", spec.Name, "error", c.err)
	}
	g.mu.Lock()
	old := g.configs[spec.Name]
	g.configs[spec.Name] = c
	g.mu.Unlock()
	if old != nil && old.err == nil && old.hash != c.hash && c.err == nil {
		// Lanes keep the instance they were opened with: they end in peace, and the engine opens new ones.
		stale := slices.DeleteFunc(g.openLanes(), func(l *Lane) bool { return l.spec.Handler != spec.Name || l.info.ConfigHash == c.hash })
		g.host.work.Go(func() { g.drain(context.Background(), stale) }) //nolint:contextcheck // lanes drain beyond the request
	}
	return c
}

func (g *generation) tryConfigure(ctx context.Context, c *configured) error {
	component, err := g.component(c.spec)
	if err != nil {
		return err
	}
	c.kind = component.GetKind()
	ctx, cancel := context.WithTimeout(ctx, g.host.timing.Configure)
	defer cancel()
	answer, err := g.api.Configure(ctx, &pluginv1.ConfigureRequest{
		Instance: c.spec.Name, Component: component.GetName(), ConfigJson: c.spec.config(),
	})
	if err != nil {
		return fmt.Errorf("configuring %s of plugin %s: %w", component.GetName(), g.name, g.explain(err))
	}
	c.needs = answer.GetNeeds()
	if c.needs == nil {
		c.needs = component.GetNeeds()
	}
	var faults []string
	for _, d := range answer.GetDiagnostics() {
		out := Diagnostic{Warning: d.GetSeverity() == pluginv1.Diagnostic_SEVERITY_WARNING, Pointer: d.GetPointer(), Text: d.GetText(), Hint: d.GetHint()}
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
	names := make([]string, 0, len(components))
	for _, c := range components {
		if c.GetName() == spec.Use {
			return c, nil
		}
		names = append(names, c.GetName())
	}
	offers := strings.Join(names, ", ")
	switch {
	case len(components) == 0:
		return nil, fmt.Errorf("plugin %s offers no component", g.name)
	case spec.Use == "" && len(components) == 1:
		return components[0], nil
	case spec.Use == "":
		return nil, fmt.Errorf("plugin %s offers several components (%s); name one of them with use", g.name, offers)
	}
	return nil, fmt.Errorf("plugin %s offers no component %q; it offers %s", g.name, spec.Use, offers)
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
		all.Go(func() { g.configure(ctx, spec) })
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
		for _, spec := range refused {
			if g.configure(context.Background(), spec).err == nil {
				g.host.changed.broadcast()
			}
		}
		timer.Reset(pause)
	}
}

func (g *generation) refused() []HandlerSpec {
	g.mu.Lock()
	defer g.mu.Unlock()
	var specs []HandlerSpec
	for _, c := range g.configs {
		if c.err != nil && g.fate == nil {
			specs = append(specs, c.spec)
		}
	}
	return specs
}

// said returns what the plugin said of a handler's config.
func (g *generation) said(handler string) []Diagnostic {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.configs[handler]; c != nil {
		return c.diagnostics
	}
	return nil
}

// outcome tells why a handler's config is not in force; nil when it is.
func (g *generation) outcome(handler string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.configs[handler]; c != nil {
		return c.err
	}
	return errRefused
}
