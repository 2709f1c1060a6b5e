package daemon

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/internal/uses"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// lanes gives the engine the plugin host's lanes.
type lanes struct{ host *pluginhost.Host }

// Open implements runtime.Handlers.
func (l lanes) Open(ctx context.Context, spec frame.LaneSpec) (runtime.Lane, error) {
	lane, err := l.host.Open(ctx, spec)
	if err != nil {
		return nil, err //nolint:wrapcheck // the host says which handler, and why
	}
	return lane, nil
}

// strategies gives the engine strategies that run in plugin processes.
type strategies struct{ host *pluginhost.Host }

// Open implements runtime.Strategies.
func (s strategies) Open(ctx context.Context, spec runtime.StrategySpec) (runtime.Strategy, error) {
	instance := uses.StrategyInstance(spec.Stream)
	diagnostics, err := s.host.Configure(ctx, pluginhost.HandlerSpec{
		Name: instance, Plugin: spec.Plugin, Use: spec.Use, Kind: pluginv1.Component_KIND_STRATEGY, Config: spec.Config,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the host says which instance, and why
	}
	for _, d := range diagnostics {
		if !d.Warning {
			return nil, &refusedError{instance, d}
		}
	}
	strategy, err := s.host.OpenStrategy(ctx, pluginhost.StrategyConfig{
		Instance: instance, Name: strings.TrimSuffix(spec.Plugin+"/"+spec.Use, "/"), Config: spec.Config,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	return strategy, nil
}

// refusedError is a strategy's word against its config.
type refusedError struct {
	instance string
	said     pluginhost.Diagnostic
}

func (e *refusedError) Error() string {
	return "the plugin refuses the config of the " + e.instance + ": " + e.said.String()
}

// member is a broker whose groups tell other members, and "streamd group status", about the plugins here.
type member struct {
	runtime.Broker
	plugins func() []groupview.Plugin
}

// Join implements runtime.Broker.
func (m member) Join(ctx context.Context, spec rocketmq.GroupSpec) error {
	if engine := spec.RunningInfo; engine != nil {
		spec.RunningInfo = func(jstack bool) *wire.ConsumerRunningInfo {
			info := engine(jstack)
			if info == nil {
				return nil
			}
			if info.Properties == nil {
				info.Properties = map[string]string{}
			}
			if list, err := json.Marshal(m.plugins()); err == nil {
				info.Properties[groupview.PropertyPlugins] = string(list)
			}
			return info
		}
	}
	return m.Broker.Join(ctx, spec) //nolint:wrapcheck // the engine says what it did
}

// pluginsOf is what others are told about the plugins here: one entry a process.
func pluginsOf(host *pluginhost.Host) []groupview.Plugin {
	var out []groupview.Plugin
	for _, p := range host.Status() {
		for _, process := range p.Processes {
			if process.Solo && process.PID == 0 {
				continue
			}
			out = append(out, groupview.Plugin{Name: p.Name, PID: process.PID, State: process.State, Version: p.Version})
		}
	}
	return out
}
