package daemon

import (
	"context"
	"sync/atomic"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// keeper keeps what a component's schema calls secret out of the log: it learns the values of a config before the
// component gets them, since a plugin may log its config at once. Safe for concurrent use.
type keeper struct {
	learn  func(secrets []string)
	wanted atomic.Pointer[config.Config] // whose handlers are being configured
}

// described is told of every process that comes up, before it is configured.
func (k *keeper) described(plugin string, about *pluginv1.DescribeResponse) {
	c := k.wanted.Load()
	if c == nil {
		return // streamd's own strategies come up first, and have no secrets
	}
	for i := range c.Handlers {
		if h := &c.Handlers[i]; h.Plugin == plugin {
			k.of(h, about)
		}
	}
}

// ofRunning learns from a process that is up already; one that comes up later is told by described.
func (k *keeper) ofRunning(ctx context.Context, host *pluginhost.Host, h *config.Handler) {
	now, cancel := context.WithCancel(ctx)
	cancel() // no waiting
	if about, err := host.Describe(now, h.Plugin); err == nil {
		k.of(h, about)
	}
}

func (k *keeper) of(h *config.Handler, about *pluginv1.DescribeResponse) {
	for _, c := range about.GetComponents() {
		if c.GetName() == h.Use || h.Use == "" {
			k.learn(h.Config.Secrets([]byte(c.GetConfigSchema())))
		}
	}
}
