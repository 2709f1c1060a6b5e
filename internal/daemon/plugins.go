package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/uses"
)

// How long a reload, and the start, wait for plugins to come up and judge their configs. At the start a plugin that is
// not there must not keep the other streams waiting.
const (
	judgeReload = 15 * time.Second
	judgeStart  = 5 * time.Second
)

// pluginSet brings the plugin host to what a config says, and back when the config turns out to be bad.
type pluginSet struct {
	host     *pluginhost.Host
	log      *slog.Logger
	patience time.Duration // of a reload
	keeper
}

// startOwn starts streamd's own binary as the plugin of the built-in strategies.
func (s *pluginSet) startOwn(ctx context.Context, executable string) error {
	return s.host.Apply(ctx, pluginhost.PluginSpec{ //nolint:wrapcheck // the host says which plugin, and why
		Name: firstparty.PluginName, Command: []string{executable, "serve-plugin", "allocate"},
	})
}

// start applies everything and gives the plugins some time to judge their configs. A use that does not fit what its plugin
// offers, a config that breaks its component's schema, and one that a strategy refuses, are a *config.InvalidError. What a
// handler refuses for other reasons (it may need a database that comes later), and a plugin that is not there, are logged
// and tried again by the host: only their own streams wait.
func (s *pluginSet) start(ctx context.Context, c *config.Config) error {
	s.wanted.Store(c)
	for i := range c.Plugins {
		if err := s.host.Apply(ctx, pluginSpec(&c.Plugins[i])); err != nil {
			return fmt.Errorf("starting plugin %s: %w", c.Plugins[i].Name, err)
		}
	}
	silent, err := s.judgeAll(ctx, uses.Of(c))
	if err != nil {
		return err
	}
	err = s.each(uses.Of(c), func(u uses.Use) ([]config.Problem, error) {
		limited, cancel := context.WithTimeoutCause(ctx, judgeStart, pluginhost.Waited(judgeStart))
		defer cancel()
		failed, down := silent[u.Name]
		if down {
			cancel() // the host has to know of it; whoever did not answer is not waited for again
		}
		if u.Strategy() {
			s.waits(ctx, nil, failed)
			return nil, nil
		}
		bad, err := s.configure(limited, u)
		s.waits(ctx, bad, cmp.Or(failed, err))
		return nil, nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) //nolint:wrapcheck // why the start ends
	}
	return err
}

// judgeAll judges uses side by side. silent are those whose plugin gave no answer, and why.
func (s *pluginSet) judgeAll(ctx context.Context, all []uses.Use) (silent map[string]error, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, judgeStart, pluginhost.Waited(judgeStart))
	defer cancel()
	var mu sync.Mutex
	silent = map[string]error{}
	return silent, s.each(all, func(u uses.Use) ([]config.Problem, error) {
		bad, err := s.judge(ctx, u)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			silent[u.Name] = err
		}
		return bad, nil
	})
}

// waits tells of what is tried again.
func (s *pluginSet) waits(ctx context.Context, bad []config.Problem, err error) {
	for _, p := range bad {
		s.log.Error("a plugin refuses a config; its streams wait, and it is tried again", "problem", p.String())
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("a plugin is not ready; its streams wait, and it is tried again", "error", err)
	}
}

// each calls f for all uses side by side. What is wrong with configs comes first, as a *config.InvalidError.
func (s *pluginSet) each(all []uses.Use, f func(uses.Use) ([]config.Problem, error)) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		bad  []config.Problem
		errs []error
	)
	for _, u := range all {
		wg.Go(func() {
			problems, err := f(u)
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
	return errors.Join(errs...)
}

// judged waits for the plugins of uses, whose faults are told once, however many use them, and judges each use.
func (s *pluginSet) judged(ctx context.Context, all []uses.Use) error {
	var firsts []uses.Use
	for _, u := range all {
		if !slices.ContainsFunc(firsts, func(f uses.Use) bool { return f.Plugin == u.Plugin }) {
			firsts = append(firsts, u)
		}
	}
	err := s.each(firsts, func(u uses.Use) ([]config.Problem, error) {
		_, err := s.host.Describe(ctx, u.Plugin)
		return nil, err //nolint:wrapcheck // says which plugin
	})
	if err != nil {
		return err
	}
	return s.each(all, func(u uses.Use) ([]config.Problem, error) { return s.judge(ctx, u) })
}

// judge holds a use against what its plugin says, and changes nothing: the component and its kind, the schema of its config,
// and for a strategy, which holds nothing, the strategy's own word.
func (s *pluginSet) judge(ctx context.Context, u uses.Use) ([]config.Problem, error) {
	about, err := s.host.Describe(ctx, u.Plugin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	s.of(u, about)
	bad, err := u.Check(about.GetComponents())
	if err != nil || len(bad) > 0 || !u.Strategy() {
		return bad, err //nolint:wrapcheck // names the use and its schema
	}
	said, err := s.host.Check(ctx, u.HandlerSpec)
	return s.refused(u, said), err //nolint:wrapcheck // the host says which use, and why
}

// configure gives a handler its config; the errors among what it says of it are returned, each at its place.
func (s *pluginSet) configure(ctx context.Context, u uses.Use) ([]config.Problem, error) {
	said, err := s.host.Configure(ctx, u.HandlerSpec)
	bad := s.refused(u, said)
	if len(bad) > 0 {
		return bad, nil
	}
	return nil, err //nolint:wrapcheck // the host says which handler, and why
}

func (s *pluginSet) refused(u uses.Use, said []pluginhost.Diagnostic) []config.Problem {
	bad, warnings := u.Refused(said)
	for _, p := range warnings {
		s.log.Warn("a plugin says of its config", "problem", p.String())
	}
	return bad
}

// change brings the host from old to c, and returns what takes all of it back. When it fails it has taken back what it
// did, and the host is as it was. Whatever can be found out without changing anything is found out before.
func (s *pluginSet) change(ctx context.Context, c, old *config.Config) (undo func(context.Context), err error) {
	s.wanted.Store(c)
	t := &transition{set: s}
	t.later(func(context.Context) {
		s.wanted.Store(old)
		// Those of streams that the engine has started before it refused another.
		s.dropStrategies(old, c) //nolint:contextcheck // draining has its own limit
	})
	if err := t.forward(ctx, c, old); err != nil {
		if ctx.Err() == nil { // else streamd stops: its drain is not to wait for old versions that come up again
			t.back(context.WithoutCancel(ctx))
		}
		return nil, err
	}
	return t.back, nil
}

// transition is one way from a config to another, as far as it has come.
type transition struct {
	set  *pluginSet
	undo []func(context.Context)
}

func (t *transition) later(f func(context.Context)) { t.undo = append(t.undo, f) }

// back takes back what was done, the last first.
func (t *transition) back(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, judgeReload, pluginhost.Waited(judgeReload))
	defer cancel()
	for _, f := range slices.Backward(t.undo) {
		f(ctx)
	}
	t.undo = nil
}

func (t *transition) forward(ctx context.Context, c, old *config.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.set.patience, pluginhost.Waited(t.set.patience))
	defer cancel()
	var known, others []uses.Use // to be judged: of plugins that stay as they are, and of those that come or change
	var changed []uses.Use       // to be configured anew
	before := uses.Of(old)
	for _, u := range uses.Of(c) {
		was, had := uses.Find(before, u.Name)
		same, stays := had && was.Same(u), samePlugin(findPlugin(c, u.Plugin), findPlugin(old, u.Plugin))
		switch {
		case same && (len(u.Ordered) == 0 || stays && u.OrderedAs(was)):
			continue
		case stays:
			known = append(known, u)
		default:
			others = append(others, u)
		}
		if !same && !u.Strategy() {
			changed = append(changed, u)
		}
	}
	if err := t.set.judged(ctx, known); err != nil {
		return err
	}
	for i := range c.Plugins {
		if err := t.plugin(ctx, c, old, &c.Plugins[i]); err != nil {
			return err
		}
	}
	if err := t.set.judged(ctx, others); err != nil {
		return err
	}
	for _, u := range changed {
		was, had := uses.Find(before, u.Name)
		switch {
		case !had:
			t.later(func(context.Context) { t.set.host.Unconfigure(u.Name) }) //nolint:contextcheck // draining has its own limit
		case was.Plugin != u.Plugin || samePlugin(findPlugin(c, u.Plugin), findPlugin(old, u.Plugin)): // else it goes back with its plugin
			t.later(func(ctx context.Context) { t.set.host.Restore(ctx, was.HandlerSpec) })
		}
	}
	return t.set.each(changed, func(u uses.Use) ([]config.Problem, error) { return t.set.configure(ctx, u) })
}

// plugin brings one plugin to its new spec, with the configs that change with it: a new version may take them, and the old
// one not.
func (t *transition) plugin(ctx context.Context, c, old *config.Config, p *config.Plugin) error {
	host, was := t.set.host, findPlugin(old, p.Name)
	if samePlugin(was, p) {
		return nil
	}
	next, before := changedTogether(c, old, p.Name)
	if err := host.Apply(ctx, pluginSpec(p), next...); err != nil {
		return placed(c, err)
	}
	t.later(func(ctx context.Context) {
		var err error
		if was == nil {
			err = host.Remove(p.Name)
		} else {
			err = host.Apply(ctx, pluginSpec(was), before...)
		}
		if err != nil {
			t.set.log.Error("taking back a plugin of a config that was refused", "plugin", p.Name, "error", err)
		}
	})
	return nil
}

// changedTogether are the configs that c changes of a plugin's uses, and what they are in old.
func changedTogether(c, old *config.Config, plugin string) (next, before []pluginhost.HandlerSpec) {
	olds := uses.Of(old)
	for _, u := range uses.Of(c) {
		if was, ok := uses.Find(olds, u.Name); ok && u.Plugin == plugin && was.Plugin == plugin && !was.Same(u) {
			next, before = append(next, u.HandlerSpec), append(before, was.HandlerSpec)
		}
	}
	return next, before
}

// placed finds what a plugin refuses in the files.
func placed(c *config.Config, err error) error {
	var refused *pluginhost.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	u, ok := uses.Find(uses.Of(c), refused.Handler)
	if !ok {
		return err
	}
	bad, _ := u.Refused(refused.Diagnostics)
	if len(bad) == 0 {
		return err
	}
	for i := range bad {
		bad[i] = bad[i].By("the new version of plugin " + u.Plugin)
	}
	return &config.InvalidError{Problems: bad}
}

// drop takes out what c does not have and old had. It comes last: what ran goes on until its place is taken.
func (s *pluginSet) drop(c, old *config.Config) {
	for i := range old.Handlers {
		name := old.Handlers[i].Name
		if !slices.ContainsFunc(c.Handlers, func(h config.Handler) bool { return h.Name == name }) {
			s.host.Unconfigure(name)
		}
	}
	s.dropStrategies(c, old)
	for i := range old.Plugins {
		if name := old.Plugins[i].Name; findPlugin(c, name) == nil {
			if err := s.host.Remove(name); err != nil {
				s.log.Warn("removing a plugin", "plugin", name, "error", err)
			}
		}
	}
}

// dropStrategies takes out the strategies of streams that c does not have and old had. A stream that stays has one, a plugin's or
// streamd's own.
func (s *pluginSet) dropStrategies(c, old *config.Config) {
	for i := range old.Streams {
		name := old.Streams[i].Name
		if !slices.ContainsFunc(c.Streams, func(st config.Stream) bool { return st.Name == name }) {
			s.host.Unconfigure(uses.StrategyInstance(name))
		}
	}
}

func findPlugin(c *config.Config, name string) *config.Plugin {
	for i := range c.Plugins {
		if c.Plugins[i].Name == name {
			return &c.Plugins[i]
		}
	}
	return nil
}

func samePlugin(a, b *config.Plugin) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Written, y.Written = config.Entry{}, config.Entry{}
	return reflect.DeepEqual(x, y)
}
