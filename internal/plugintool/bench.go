package plugintool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Plugin says which binary is meant.
type Plugin struct {
	Command []string
	Env     map[string]string
	TLSOff  bool
	Version string        // the host's
	Timeout time.Duration // for it to come up; 0 = 10 s
	// TimeoutName is where people set Timeout, for errors; "" = the config's start_timeout.
	TimeoutName string
}

const benchHandler = "try"

// bench is a host with one plugin.
type bench struct {
	name  string // under which the host knows the plugin: that of its binary
	host  *pluginhost.Host
	logs  *logBook      // what the plugin logs
	own   *logBook      // what the host does
	again time.Duration // for a process to come up again after a crash
}

// open starts the plugin and waits until it says what it is. Its error tells why it does not come up.
func open(ctx context.Context, p Plugin) (*bench, *pluginv1.DescribeResponse, error) {
	b := &bench{name: nameOf(p.Command), logs: &logBook{from: FromPlugin}, own: &logBook{from: FromStreamd}, again: max(laneTimeout, p.Timeout)}
	host, err := pluginhost.New(pluginhost.Config{Logger: slog.New(b.own), Lines: slog.New(b.logs), Version: p.Version, TimeoutName: p.TimeoutName}) //nolint:contextcheck // the host lives until it is closed
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the host says what it prepared
	}
	b.host = host
	if err := host.Apply(ctx, pluginhost.PluginSpec{Name: b.name, Command: p.Command, Env: p.Env, TLSOff: p.TLSOff, StartTimeout: p.Timeout}); err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	about, err := b.describe(ctx, p.Timeout)
	if err != nil {
		return nil, nil, exitcode.With(exitcode.Environment, errors.Join(err, host.Close()))
	}
	return b, about, nil
}

// nameOf is what people call the plugin that a command starts.
func nameOf(command []string) string {
	if len(command) == 0 || command[0] == "" {
		return "without a command"
	}
	return filepath.Base(command[0])
}

// describe waits for the first process, and gives up at its first failure: the host itself would try for ever.
func (b *bench) describe(ctx context.Context, timeout time.Duration) (*pluginv1.DescribeResponse, error) {
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	timeout += time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, pluginhost.Waited(timeout))
	defer cancel()
	failed, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-failed.Done():
				return
			case <-ticker.C:
				if text := b.lastError(); text != "" {
					stop(errors.New(text))
				}
			}
		}
	}()
	about, err := b.host.Describe(failed, b.name)
	stop(nil)
	<-watch
	if text := b.lastError(); err != nil && text != "" {
		return nil, errors.New(text)
	}
	return about, err //nolint:wrapcheck // the host says what it did
}

func (b *bench) lastError() string {
	for _, p := range b.host.Status() {
		for _, process := range p.Processes {
			if process.LastError != "" {
				return process.LastError
			}
		}
	}
	return ""
}

// Description is what a plugin says of itself.
type Description struct {
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	Features   []string    `json:"features"`
	Components []Component `json:"components"`
}

// Component is one thing a plugin offers.
type Component struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // handler or strategy
	Summary string   `json:"summary,omitempty"`
	Modes   []string `json:"modes,omitempty"`
	// Unordered is why a handler does not keep order; empty: it does.
	Unordered string  `json:"unordered,omitempty"`
	Schema    RawJSON `json:"config_schema,omitempty"`
}

// RawJSON is JSON that is passed on as it is; an empty one is null.
type RawJSON string

// MarshalJSON implements json.Marshaler.
func (r RawJSON) MarshalJSON() ([]byte, error) {
	if r == "" {
		return []byte("null"), nil
	}
	return []byte(r), nil
}

// Describe starts the plugin, asks what it is, and stops it.
func Describe(ctx context.Context, p Plugin) (Description, error) {
	b, about, err := open(ctx, p)
	if err != nil {
		return Description{}, err
	}
	return describe(about), b.host.Close()
}

func describe(about *pluginv1.DescribeResponse) Description {
	d := Description{Name: about.GetName(), Version: about.GetVersion(), Features: about.GetFeatures(), Components: []Component{}}
	for _, c := range about.GetComponents() {
		kind := "handler"
		if c.GetKind() == pluginv1.Component_KIND_STRATEGY {
			kind = "strategy"
		}
		d.Components = append(d.Components, Component{
			Name: c.GetName(), Kind: kind, Summary: c.GetSummary(), Modes: c.GetModes(), Unordered: c.GetUnordered(), Schema: RawJSON(c.GetConfigSchema()),
		})
	}
	return d
}

// Text writes a description for people.
func (d Description) Text(w io.Writer) error {
	if _, err := fmt.Fprintln(w, strings.TrimSpace(d.Name+" "+d.Version)); err != nil {
		return fmt.Errorf("writing the description: %w", err)
	}
	for _, c := range d.Components {
		fmt.Fprintf(w, "\n%s %s", c.Kind, c.Name)
		for _, m := range c.Modes {
			fmt.Fprintf(w, " (%s)", m)
		}
		if c.Summary != "" {
			fmt.Fprintf(w, ": %s", c.Summary)
		}
		if c.Unordered != "" {
			fmt.Fprintf(w, "; not for order: queue or key: %s", c.Unordered)
		}
		fmt.Fprintln(w)
		writeSchema(w, string(c.Schema))
	}
	return nil
}
