package pluginhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/sdk/pluginv1"
)

// OpenStrategy opens the strategy that was configured under instance, as Use of a plugin. It waits until a process has
// taken the config, or ctx ends; a config that the plugin refuses and a component of another kind are errors at once.
// config is as for the package's OpenStrategy; its Config is what the instance was configured with.
func (h *Host) OpenStrategy(ctx context.Context, plugin string, config StrategyConfig) (*Strategy, error) {
	return OpenStrategy(ctx, config, &solverHost{host: h, plugin: plugin, instance: config.Instance})
}

// solverHost finds the process of a configured strategy among a plugin's instances: any answers the same.
type solverHost struct {
	host             *Host
	plugin, instance string
}

// Acquire implements SolverHost.
func (s *solverHost) Acquire(ctx context.Context) (SolverProcess, error) {
	for {
		changed := s.host.changed.wait()
		process, err := s.look()
		if err == nil || errors.Is(err, errKind) || errors.Is(err, errRefused) {
			return process, err
		}
		select {
		case <-changed:
		case <-s.host.quit:
			return SolverProcess{}, errClosed
		case <-ctx.Done():
			return SolverProcess{}, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// look returns the first process that took the config, or why there is none.
func (s *solverHost) look() (SolverProcess, error) {
	f := s.host.fleet(s.plugin)
	if f == nil {
		return SolverProcess{}, unknownPlugin(s.plugin)
	}
	var reason error
	for _, slot := range f.slots {
		g := slot.live()
		if g == nil {
			reason = errors.New(slot.why(s.host.now()))
			continue
		}
		if err := g.ready(s.instance, pluginv1.Component_KIND_STRATEGY); err != nil {
			reason = err
			continue
		}
		return g.solver(s.instance), nil
	}
	return SolverProcess{}, reason
}

// solver is the generation as one that answers for a configured strategy.
func (g *generation) solver(instance string) SolverProcess {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := SolverProcess{
		Client: g.api, Plugin: g.name, Version: g.about.GetVersion(), Checksum: g.checksum, Generation: g.id,
		Exited: g.dead, Explain: g.explain,
	}
	if c := g.configs[instance]; c != nil {
		p.Needs = c.needs
	}
	return p
}
