package plugintool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
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
// started too, and its handlers' configs are held against its schemas. Every entry is listed; the error joins what is
// wrong with them.
func List(ctx context.Context, c *config.Config, ask bool) ([]Entry, error) {
	entries := make([]Entry, len(c.Plugins))
	var errs []error
	for i := range c.Plugins {
		p := &c.Plugins[i]
		e := &entries[i]
		*e = Entry{Name: p.Name, Binary: p.Command[0], Handlers: []string{}, Strategies: []string{}}
		e.users(c)
		err := e.look(p)
		if err == nil && ask {
			err = e.start(ctx, c, p)
		}
		if err != nil {
			e.Error = err.Error()
			if bad := (*config.InvalidError)(nil); !errors.As(err, &bad) { // which names its place
				err = fmt.Errorf("plugin %s: %w", p.Name, err)
			}
			errs = append(errs, err)
		}
	}
	return entries, errors.Join(errs...)
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

// look finds and hashes the file.
func (e *Entry) look(p *config.Plugin) error {
	path, err := exec.LookPath(p.Command[0])
	if err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("%w; build or install it, or name another under command", err))
	}
	e.Binary = path
	if e.Checksum, err = checksum(path); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	if p.Checksum != "" && p.Checksum != e.Checksum {
		return exitcode.With(exitcode.Environment, fmt.Errorf("the file has checksum %s and the config wants %s", e.Checksum, p.Checksum))
	}
	return nil
}

func checksum(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func (e *Entry) start(ctx context.Context, c *config.Config, p *config.Plugin) error {
	d, err := Describe(ctx, Plugin{Command: p.Command, Env: p.Env, TLSOff: p.TLS == "off"})
	if err != nil {
		return err
	}
	e.Version, e.Components = d.Version, d.Components
	var problems []config.Problem
	for i := range c.Handlers {
		h := &c.Handlers[i]
		if h.Plugin != p.Name {
			continue
		}
		found, err := against(d, h)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return &config.InvalidError{Problems: problems}
	}
	return nil
}

func against(d Description, h *config.Handler) ([]config.Problem, error) {
	if schema, ok := schemaOf(d.Components, h.Use); ok {
		return h.Config.Check([]byte(schema)) //nolint:wrapcheck // names the schema
	}
	names := make([]string, len(d.Components))
	for i, comp := range d.Components {
		names[i] = comp.Name
	}
	return nil, exitcode.With(exitcode.Usage, fmt.Errorf("handler %s: no component is %q; it offers %s", h.Name, h.Use, strings.Join(names, ", ")))
}

// schemaOf is the config schema of the component that use names; "" names the only one.
func schemaOf(components []Component, use string) (RawJSON, bool) {
	for _, c := range components {
		if c.Name == use || use == "" && len(components) == 1 {
			return c.Schema, true
		}
	}
	return "", false
}

// Redact returns loaded with what the schemas of started plugins call secret hidden where it is shown.
func Redact(loaded *config.Loaded, entries []Entry) *config.Loaded {
	for i := range loaded.Config.Handlers {
		h := &loaded.Config.Handlers[i]
		for j := range entries {
			if entries[j].Name != h.Plugin {
				continue
			}
			if schema, ok := schemaOf(entries[j].Components, h.Use); ok {
				loaded = loaded.Redact(h.Config, []byte(schema))
			}
		}
	}
	return loaded
}
