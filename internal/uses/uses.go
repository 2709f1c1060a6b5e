// Package uses knows where a config uses components of plugins: handlers, and the strategies of streams. It says what is
// wrong with a use, at its place in the files, as far as the plugin's own description tells; what only the component
// itself can judge is put to it by the caller. The daemon and the commands that check a config share it, so that what one
// takes the other takes.
package uses

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Use is one configured use of a plugin's component.
type Use struct {
	pluginhost.HandlerSpec
	Config  config.Raw
	Ordered []Ordered // handlers: the streams that keep an order, as the config lists them
	what    string    // for people
}

// Ordered is a stream that keeps an order.
type Ordered struct {
	Stream, Order string
	Where         config.Position // of its order
}

// StrategyInstance is the name under which a stream's strategy is configured with the plugin host.
func StrategyInstance(stream string) string { return "allocation of " + stream }

// OfHandler is the use of an entry under handlers:.
func OfHandler(h *config.Handler) Use {
	return Use{
		HandlerSpec: pluginhost.HandlerSpec{Name: h.Name, Plugin: h.Plugin, Use: h.Use, Kind: pluginv1.Component_KIND_HANDLER, Config: h.Config.JSON()},
		Config:      h.Config, what: "handler " + h.Name,
	}
}

// OfStrategy is the use of a stream's strategy; false when it is one of streamd's own.
func OfStrategy(s *config.Stream) (Use, bool) {
	a := &s.Allocation
	return Use{
		HandlerSpec: pluginhost.HandlerSpec{
			Name: StrategyInstance(s.Name), Plugin: a.Plugin, Use: a.Use, Kind: pluginv1.Component_KIND_STRATEGY, Config: a.Config.JSON(),
		},
		Config: a.Config, what: "the allocation of stream " + s.Name,
	}, a.Plugin != ""
}

// Of lists all uses: handlers first, each as the config lists them. A nil config has none.
func Of(c *config.Config) []Use {
	if c == nil {
		return nil
	}
	all := make([]Use, 0, len(c.Handlers))
	for i := range c.Handlers {
		u := OfHandler(&c.Handlers[i])
		u.Ordered = orderedBy(c, u.Name)
		all = append(all, u)
	}
	for i := range c.Streams {
		if u, ok := OfStrategy(&c.Streams[i]); ok {
			all = append(all, u)
		}
	}
	return all
}

func orderedBy(c *config.Config, handler string) (all []Ordered) {
	for i := range c.Streams {
		if s := &c.Streams[i]; s.Handler == handler && s.Ordered() {
			all = append(all, Ordered{s.Name, s.Order, s.Written.Locate("order")})
		}
	}
	return all
}

// Find is the use of an instance's name.
func Find(all []Use, instance string) (Use, bool) {
	i := slices.IndexFunc(all, func(u Use) bool { return u.Name == instance })
	if i < 0 {
		return Use{}, false
	}
	return all[i], true
}

// Same tells whether two uses of a name put the same to a plugin.
func (u Use) Same(other Use) bool {
	return u.Name == other.Name && u.Plugin == other.Plugin && u.Use == other.Use && u.Config.Equal(other.Config)
}

// OrderedAs tells whether every stream that keeps an order with u kept one with before.
func (u Use) OrderedAs(before Use) bool {
	for _, o := range u.Ordered {
		if !slices.ContainsFunc(before.Ordered, func(b Ordered) bool { return b.Stream == o.Stream }) {
			return false
		}
	}
	return true
}

// Strategy tells whether it is a stream's strategy.
func (u Use) Strategy() bool { return u.Kind == pluginv1.Component_KIND_STRATEGY }

// String names the use and its plugin for people.
func (u Use) String() string {
	if u.Use == "" {
		return fmt.Sprintf("%s (plugin %s)", u.what, u.Plugin)
	}
	return fmt.Sprintf("%s (%s of plugin %s)", u.what, u.Use, u.Plugin)
}

// Component is the one that is meant. Left out, it is the only one of its kind.
func (u Use) Component(components []*pluginv1.Component) (*pluginv1.Component, bool) {
	c, err := pluginhost.Choose(components, u.HandlerSpec)
	return c, err == nil
}

// Check holds a use against what its plugin offers: the component, its kind, whether it keeps the order that streams want, and
// the schema of its config. err is a schema that cannot be used: the plugin's fault.
func (u Use) Check(components []*pluginv1.Component) ([]config.Problem, error) {
	c, err := pluginhost.Choose(components, u.HandlerSpec)
	if err != nil {
		p := config.Problem{Where: u.Config.LocateEntry("use"), What: err.Error(), Try: u.offers(components)}
		return []config.Problem{p.By(u.String())}, nil //nolint:nilerr // the error is the problem
	}
	found, err := u.Config.Check([]byte(c.GetConfigSchema()))
	if err != nil {
		return nil, fmt.Errorf("%s: the config schema of %s: %w", u, c.GetName(), err)
	}
	for i := range found {
		found[i] = found[i].By(u.String())
	}
	if why := c.GetUnordered(); why != "" {
		for _, o := range u.Ordered {
			found = append(found, config.Problem{
				Where: o.Where, What: fmt.Sprintf("stream %s has order: %s, and %s does not keep order: %s", o.Stream, o.Order, u, why),
				Try: "order: none, or a handler that keeps order",
			})
		}
	}
	return found, nil
}

// offers are the components that could be used here.
func (u Use) offers(components []*pluginv1.Component) string {
	var names []string
	for _, c := range components {
		if c.GetKind() == u.Kind {
			names = append(names, "use: "+c.GetName())
		}
	}
	if len(names) == 0 {
		return "another plugin"
	}
	return strings.Join(names, ", or ")
}

// Said places what the component itself says of its config.
func (u Use) Said(d pluginhost.Diagnostic) config.Problem {
	return u.Config.Diagnose(d.Pointer, d.Text, d.Hint).By(u.String())
}

// Refused are the errors among what a component says, each at its place; the warnings are returned as well.
func (u Use) Refused(said []pluginhost.Diagnostic) (bad, warnings []config.Problem) {
	for _, d := range said {
		if d.Warning {
			warnings = append(warnings, u.Said(d))
		} else {
			bad = append(bad, u.Said(d))
		}
	}
	return bad, warnings
}
