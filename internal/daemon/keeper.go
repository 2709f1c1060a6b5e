package daemon

import (
	"sync/atomic"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/uses"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// keeper keeps what a component's schema calls secret out of the log: it learns the values of a config before the
// component gets them, since a plugin may log its config at once. Safe for concurrent use.
type keeper struct {
	learn  func(secrets []string)
	wanted atomic.Pointer[config.Config] // whose components are being configured
}

// described is told of every process that comes up, before it is configured.
func (k *keeper) described(plugin string, about *pluginv1.DescribeResponse) {
	c := k.wanted.Load()
	if c == nil {
		return // streamd's own strategies come up first, and have no secrets
	}
	for _, u := range uses.Of(c) {
		if u.Plugin == plugin {
			k.of(u, about)
		}
	}
}

// written is where the config that is wanted has a key of a plugin; "" when it has not.
func (k *keeper) written(plugin, key string) string {
	c := k.wanted.Load()
	if c == nil {
		return ""
	}
	p := findPlugin(c, plugin)
	switch {
	case p == nil:
		return ""
	case key == "command":
		return p.Written.Value("command", "0").String()
	}
	return p.Written.Value(key).String()
}

// of learns the secrets of one use.
func (k *keeper) of(u uses.Use, about *pluginv1.DescribeResponse) {
	if c, ok := u.Component(about.GetComponents()); ok {
		k.learn(u.Config.Secrets([]byte(c.GetConfigSchema())))
	}
}
