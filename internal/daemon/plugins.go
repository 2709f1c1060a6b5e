package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/pluginhost"
)

// How long a reload, and the start, wait for plugins to come up and judge their configs. At the start a plugin that is
// not there must not keep the other streams waiting.
const (
	judgeReload = 15 * time.Second
	judgeStart  = 5 * time.Second
)

// pluginSet brings the plugin host to what a config says, and back when the config turns out to be bad.
type pluginSet struct {
	host *pluginhost.Host
	log  *slog.Logger
	keeper
}

// startOwn starts streamd's own binary as the plugin of the built-in strategies.
func (s *pluginSet) startOwn(ctx context.Context, executable string) error {
	return s.host.Apply(ctx, pluginhost.PluginSpec{ //nolint:wrapcheck // the host says which plugin, and why
		Name: firstparty.PluginName, Command: []string{executable, "serve-plugin", "allocate"},
	})
}

// start applies everything and gives the plugins some time to judge their configs. A config that breaks its component's
// schema is an *config.InvalidError; what a plugin refuses for other reasons, or a plugin that is not there, is logged and
// tried again by the host: only its own streams wait.
func (s *pluginSet) start(ctx context.Context, c *config.Config) error {
	s.wanted.Store(c)
	for i := range c.Plugins {
		if err := s.host.Apply(ctx, pluginSpec(&c.Plugins[i])); err != nil {
			return fmt.Errorf("starting plugin %s: %w", c.Plugins[i].Name, err)
		}
	}
	return s.configure(ctx, c, nil, judgeStart)
}

// configure gives every handler that is not the same in old its config, side by side. Against a running config any
// refusal is an error.
func (s *pluginSet) configure(ctx context.Context, c, old *config.Config, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		bad  []config.Problem
		errs []error
	)
	for i := range c.Handlers {
		h := &c.Handlers[i]
		if before := findHandler(old, h.Name); before != nil && sameHandler(before, h) {
			continue
		}
		wg.Go(func() {
			problems, err := s.configureOne(ctx, h)
			mu.Lock()
			defer mu.Unlock()
			bad = append(bad, problems...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	if len(bad) > 0 {
		slices.SortFunc(bad, func(a, b config.Problem) int { return a.Where.Compare(b.Where) })
		return &config.InvalidError{Problems: bad}
	}
	err := errors.Join(errs...)
	if err != nil && old == nil {
		s.log.Error("a handler is not ready; its streams wait, and it is tried again", "error", err)
		return nil
	}
	return err
}

// configureOne gives one handler its config. What the component's schema says against it is placed in the file.
func (s *pluginSet) configureOne(ctx context.Context, h *config.Handler) ([]config.Problem, error) {
	s.ofRunning(ctx, s.host, h)
	diagnostics, err := s.host.Configure(ctx, handlerSpec(h))
	problems, schemaErr := s.againstSchema(ctx, h)
	if schemaErr != nil {
		s.log.Debug("a config was not held against its schema", "handler", h.Name, "error", schemaErr)
	}
	for _, d := range diagnostics {
		p := h.Config.Diagnose(d.Pointer, "handler "+h.Name+": "+keyed(d), d.Hint)
		switch {
		case d.Warning:
			s.log.Warn("a plugin says of its config", "problem", p.String())
		case len(problems) == 0: // not said by the schema already
			s.log.Error("a plugin refuses its config; its streams wait", "problem", p.String())
			err = errors.Join(err, &config.InvalidError{Problems: []config.Problem{p}})
		}
	}
	return problems, err
}

// againstSchema holds a handler's config against the schema of its component.
func (s *pluginSet) againstSchema(ctx context.Context, h *config.Handler) ([]config.Problem, error) {
	about, err := s.host.Describe(ctx, h.Plugin)
	if err != nil {
		return nil, err //nolint:wrapcheck // the host says which plugin, and why
	}
	for _, c := range about.GetComponents() {
		if c.GetName() == h.Use || h.Use == "" && len(about.GetComponents()) == 1 {
			return h.Config.Check([]byte(c.GetConfigSchema())) //nolint:wrapcheck // names the schema
		}
	}
	return nil, nil
}

// change brings the host from old to c. When it fails, the host is brought back to old, and the error says why.
func (s *pluginSet) change(ctx context.Context, c, old *config.Config) error {
	err := s.forward(ctx, c, old)
	if err == nil {
		return nil
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), judgeReload)
	defer cancel()
	if undo := s.forward(back, old, c); undo != nil {
		s.log.Error("taking back a config that was refused", "error", undo)
	}
	s.drop(old, c) //nolint:contextcheck // draining has its own limit
	return err
}

func (s *pluginSet) forward(ctx context.Context, c, old *config.Config) error {
	s.wanted.Store(c)
	for i := range c.Plugins {
		p := &c.Plugins[i]
		if j := slices.IndexFunc(old.Plugins, func(o config.Plugin) bool { return o.Name == p.Name }); j >= 0 && reflect.DeepEqual(old.Plugins[j], *p) {
			continue
		}
		if err := s.host.Apply(ctx, pluginSpec(p), changedHandlers(c, old, p.Name)...); err != nil {
			return placed(c, err)
		}
	}
	return s.configure(ctx, c, old, judgeReload)
}

// changedHandlers are the configs that c changes of a plugin's handlers: a new version may take them, and the old one not.
func changedHandlers(c, old *config.Config, plugin string) (specs []pluginhost.HandlerSpec) {
	for i := range c.Handlers {
		h := &c.Handlers[i]
		if before := findHandler(old, h.Name); h.Plugin == plugin && before != nil && before.Plugin == plugin && !sameHandler(before, h) {
			specs = append(specs, handlerSpec(h))
		}
	}
	return specs
}

// keyed names the key that a plugin speaks of: a missing one has no place of its own in the file.
func keyed(d pluginhost.Diagnostic) string {
	if d.Pointer == "" {
		return d.Text
	}
	return strings.ReplaceAll(strings.TrimPrefix(d.Pointer, "/"), "/", ".") + ": " + d.Text
}

// placed finds what a plugin refuses in the files.
func placed(c *config.Config, err error) error {
	var refused *pluginhost.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	h := findHandler(c, refused.Handler)
	if h == nil || len(refused.Diagnostics) == 0 {
		return err
	}
	var problems []config.Problem
	for _, d := range refused.Diagnostics {
		if !d.Warning {
			problems = append(problems, h.Config.Diagnose(d.Pointer, "handler "+h.Name+", by the new version of plugin "+h.Plugin+": "+keyed(d), d.Hint))
		}
	}
	return &config.InvalidError{Problems: problems}
}

// drop takes out what c does not have and old had. It comes last: what ran goes on until its place is taken.
func (s *pluginSet) drop(c, old *config.Config) {
	for i := range old.Handlers {
		if findHandler(c, old.Handlers[i].Name) == nil {
			s.host.Unconfigure(old.Handlers[i].Name)
		}
	}
	for i := range old.Plugins {
		name := old.Plugins[i].Name
		if !slices.ContainsFunc(c.Plugins, func(p config.Plugin) bool { return p.Name == name }) {
			if err := s.host.Remove(name); err != nil {
				s.log.Warn("removing a plugin", "plugin", name, "error", err)
			}
		}
	}
}

func findHandler(c *config.Config, name string) *config.Handler {
	if c == nil {
		return nil
	}
	for i := range c.Handlers {
		if c.Handlers[i].Name == name {
			return &c.Handlers[i]
		}
	}
	return nil
}

func sameHandler(a, b *config.Handler) bool {
	return a.Plugin == b.Plugin && a.Use == b.Use && a.Config.Equal(b.Config)
}
