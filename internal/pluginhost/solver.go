package pluginhost

import (
	"context"

	"github.com/streamd/streamd/sdk/pluginv1"
)

// OpenStrategy opens the strategy that was configured (Configure) under config.Instance. It waits until a process has it
// in force, or ctx ends, and then says why; a component that is no strategy is an error at once. config.Config is what
// the instance was configured with. Any of the plugin's instances answers: they compute the same.
func (h *Host) OpenStrategy(ctx context.Context, config StrategyConfig) (*Strategy, error) {
	return OpenStrategy(ctx, config, &solverHost{host: h, instance: config.Instance})
}

// solverHost finds the process of a configured strategy.
type solverHost struct {
	host     *Host
	instance string
}

// Acquire implements SolverHost.
func (s *solverHost) Acquire(ctx context.Context) (SolverProcess, error) {
	var process SolverProcess
	err := s.host.acquire(ctx, s.instance, false, pluginv1.Component_KIND_STRATEGY, func(g *generation) error {
		process = g.solver(s.instance)
		return nil
	})
	return process, err
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
