package plugintool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/internal/uses"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Entry is one plugin of a config.
type Entry struct {
	Name       string      `json:"name"`
	Binary     string      `json:"binary"`
	Checksum   string      `json:"checksum,omitempty"` // of the file as it is now
	Handlers   []string    `json:"handlers"`
	Strategies []string    `json:"strategies"` // streams whose strategy it is
	Version    string      `json:"version,omitempty"`
	Components []Component `json:"components,omitempty"` // when it was started
	Error      string      `json:"error,omitempty"`

	about []*pluginv1.Component // as Components
}

// State is a word for people.
func (e *Entry) State() string {
	if e.Error != "" {
		return "failed: " + e.Error
	}
	return "ok"
}

// Users lists who uses the plugin.
func (e *Entry) Users() string {
	users := append([]string{}, e.Handlers...)
	for _, s := range e.Strategies {
		users = append(users, "strategy of "+s)
	}
	if len(users) == 0 {
		return "nobody"
	}
	return strings.Join(users, ", ")
}

// List looks at each plugin of a config: whether its file is there, can be executed, and has the checksum. With ask it is
// started too, and what uses it is held against what it offers: components, schemas of configs, strategies' own word.
// Every entry is listed; the error joins what is wrong with them. What has a place in the files is one *config.InvalidError.
func List(ctx context.Context, c *config.Config, ask bool) ([]Entry, error) {
	entries := make([]Entry, len(c.Plugins))
	var errs []error
	var problems []config.Problem
	for i := range c.Plugins {
		p := &c.Plugins[i]
		e := &entries[i]
		*e = Entry{Name: p.Name, Binary: p.Command[0], Handlers: []string{}, Strategies: []string{}}
		e.users(c)
		found, err := e.look(p)
		if err == nil && len(found) == 0 && ask {
			found, err = e.start(ctx, c, p)
		}
		problems = append(problems, found...)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: %w", p.Name, err))
		}
		if err := errors.Join(err, invalid(found)); err != nil {
			e.Error = err.Error()
		}
	}
	return entries, errors.Join(append(errs, invalid(problems))...)
}

// invalid is a *config.InvalidError with problems in the order of their places; nil without any.
func invalid(problems []config.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b config.Problem) int { return a.Where.Compare(b.Where) })
	return &config.InvalidError{Problems: problems}
}

func (e *Entry) users(c *config.Config) {
	for i := range c.Handlers {
		if c.Handlers[i].Plugin == e.Name {
			e.Handlers = append(e.Handlers, c.Handlers[i].Name)
		}
	}
	for i := range c.Streams {
		if c.Streams[i].Allocation.Plugin == e.Name {
			e.Strategies = append(e.Strategies, c.Streams[i].Name)
		}
	}
}

// look finds, checks and hashes the file as the plugin host would. What is wrong is a problem where its path, or its checksum,
// was written: the file may be mended, and the config be right.
func (e *Entry) look(p *config.Plugin) ([]config.Problem, error) {
	problem := func(key config.Position, err error) []config.Problem {
		found := config.Problem{Where: key, What: err.Error(), Away: true}
		return []config.Problem{found.By("plugin " + p.Name)}
	}
	exe, err := process.Open(p.Command[0], "")
	if err != nil {
		return problem(p.Written.Value("command", "0"), err), nil
	}
	if !strings.ContainsRune(p.Command[0], filepath.Separator) { // found in PATH
		e.Binary = exe.Path
	}
	e.Checksum = exe.Checksum
	if err := exe.Close(); err != nil {
		return nil, fmt.Errorf("hashing %s: %w", exe.Path, err)
	}
	if p.Checksum != "" && p.Checksum != e.Checksum {
		return problem(p.Written.Value("checksum"), fmt.Errorf("%s has checksum %s and the config wants %s; "+
			"put the right file there, or, when you know where this one is from, write its checksum", exe.Path, e.Checksum, p.Checksum)), nil
	}
	return nil, nil
}

// start asks the plugin. What uses it is held against what it offers, and its strategies judge their configs themselves:
// a strategy holds nothing, so building one is no more than a check. A handler may open what it needs when it is built, so
// it is not.
func (e *Entry) start(ctx context.Context, c *config.Config, p *config.Plugin) ([]config.Problem, error) {
	b, about, err := open(ctx, Plugin{Command: p.Command, Env: p.Env, TLSOff: p.TLS == "off", Timeout: p.StartTimeout})
	if err != nil {
		return nil, err
	}
	d := describe(about)
	e.Version, e.Components, e.about = d.Version, d.Components, about.GetComponents()
	var problems []config.Problem
	var errs []error
	for _, u := range uses.Of(c) {
		if u.Plugin != p.Name {
			continue
		}
		found, err := b.judge(ctx, u, about)
		problems = append(problems, found...)
		errs = append(errs, err)
	}
	return problems, errors.Join(append(errs, b.host.Close())...)
}

func (b *bench) judge(ctx context.Context, u uses.Use, about *pluginv1.DescribeResponse) ([]config.Problem, error) {
	found, err := u.Check(about.GetComponents())
	if err != nil || len(found) > 0 || !u.Strategy() {
		return found, err //nolint:wrapcheck // names the use and its schema
	}
	spec := u.HandlerSpec
	spec.Plugin = b.name
	said, err := b.host.Check(ctx, spec)
	found, _ = u.Refused(said)
	return found, err //nolint:wrapcheck // the host says which use, and why
}

// Redact returns loaded with what the schemas of started plugins call secret hidden where it is shown.
func Redact(loaded *config.Loaded, entries []Entry) *config.Loaded {
	for _, u := range uses.Of(loaded.Config) {
		for i := range entries {
			if entries[i].Name != u.Plugin {
				continue
			}
			if c, ok := u.Component(entries[i].about); ok {
				loaded = loaded.Redact(u.Config, []byte(c.GetConfigSchema()))
			}
		}
	}
	return loaded
}
