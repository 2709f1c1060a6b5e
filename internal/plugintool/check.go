package plugintool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Finding is one thing that was checked.
type Finding struct {
	What  string `json:"what"`
	Error string `json:"error,omitempty"` // "" = it is as it should be
	cause error
}

// CheckReport is what Check found. It ends at the first thing that makes the rest pointless.
type CheckReport struct {
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// note adds a finding and tells whether it was good.
func (r *CheckReport) note(what string, err error) bool {
	f := Finding{What: what, cause: err}
	if err != nil {
		f.Error, r.OK = err.Error(), false
	}
	r.Findings = append(r.Findings, f)
	return err == nil
}

// Err joins what is wrong; nil = nothing.
func (r *CheckReport) Err() error {
	var errs []error
	for _, f := range r.Findings {
		switch bad := (*config.InvalidError)(nil); {
		case f.cause == nil:
		case errors.As(f.cause, &bad): // which names its place
			errs = append(errs, f.cause)
		default:
			errs = append(errs, fmt.Errorf("%s: %w", f.What, f.cause))
		}
	}
	return errors.Join(errs...)
}

// Text writes a line a finding.
func (r *CheckReport) Text(w io.Writer) error {
	for _, f := range r.Findings {
		word := "ok    "
		if f.cause != nil {
			word = "failed"
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", word, f.What); err != nil {
			return fmt.Errorf("writing the findings: %w", err)
		}
	}
	return nil
}

// Check starts a plugin and goes through what streamd will ask of it: handshake, description, schemas, config, a lane that
// opens and drains, a stop. With use "" and several components only the description is checked.
func Check(ctx context.Context, p Plugin, use string, conf config.Raw) *CheckReport {
	r := &CheckReport{OK: true, Findings: []Finding{}}
	b, about, err := open(ctx, p)
	if !r.note("it starts, shakes hands and describes itself", err) {
		return r
	}
	r.components(about)
	if c := chosen(about, use); c != nil {
		r.configured(ctx, b, c, conf)
	} else if use != "" {
		r.note("it offers "+use, exitcode.With(exitcode.Usage, errors.New("it offers no component of this name")))
	}
	r.note("it stops", b.host.Close())
	return r
}

func (r *CheckReport) components(about *pluginv1.DescribeResponse) {
	var err error
	if len(about.GetComponents()) == 0 {
		err = errNoComponents
	}
	r.note("it offers components", err)
	for _, c := range about.GetComponents() {
		_, err := config.Raw{}.Check([]byte(c.GetConfigSchema()))
		r.note("the config schema of "+c.GetName()+" can be used", err)
	}
}

var errNoComponents = errors.New("it offers none; pass at least one to serve.Main")

func chosen(about *pluginv1.DescribeResponse, use string) *pluginv1.Component {
	for _, c := range about.GetComponents() {
		if c.GetName() == use || use == "" && len(about.GetComponents()) == 1 {
			return c
		}
	}
	return nil
}

func (r *CheckReport) configured(ctx context.Context, b *bench, c *pluginv1.Component, conf config.Raw) {
	if !r.note("its schema takes the config", inSchema(c, conf)) {
		return
	}
	_, err := b.configure(ctx, c.GetName(), conf)
	if !r.note("it takes the config", err) || c.GetKind() != pluginv1.Component_KIND_HANDLER {
		return
	}
	t := &Trial{Deadline: laneTimeout}
	lane, err := b.lane(ctx, t)
	if err == nil {
		err = credited(ctx, lane)
		err = errors.Join(err, drain(ctx, lane))
	}
	r.note("a lane opens, grants credit and drains", err)
}

// inSchema holds a config against a component's schema. What breaks it is a *config.InvalidError, each fault at its place.
func inSchema(c *pluginv1.Component, conf config.Raw) error {
	problems, err := conf.Check([]byte(c.GetConfigSchema()))
	if err == nil && len(problems) > 0 {
		err = &config.InvalidError{Problems: problems}
	}
	return err
}

// configure gives a component its config. What it refuses is a *config.InvalidError, each fault at its place in the file;
// its warnings are returned.
func (b *bench) configure(ctx context.Context, use string, conf config.Raw) (warnings []string, err error) {
	said, err := b.host.Configure(ctx, pluginhost.HandlerSpec{Name: benchHandler, Plugin: b.name, Use: use, Config: conf.JSON()})
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	var bad config.InvalidError
	for _, d := range said {
		p := conf.Diagnose(d.Pointer, d.Text, d.Hint)
		if d.Warning {
			warnings = append(warnings, p.String())
		} else {
			bad.Problems = append(bad.Problems, p)
		}
	}
	if len(bad.Problems) > 0 {
		return warnings, &bad
	}
	return warnings, nil
}

var errNoCredit = errors.New("it grants no credit: no message could be sent to it")

// credited waits for the first credit.
func credited(ctx context.Context, lane *pluginhost.Lane) error {
	ctx, cancel := context.WithTimeout(ctx, laneTimeout)
	defer cancel()
	for {
		select {
		case e, more := <-lane.Events():
			switch {
			case more && e.Kind == frame.EventCredit && e.Credits > 0:
				return nil
			case !more:
				return errNoCredit
			case e.Kind == frame.EventLost:
				return errors.New(e.Lost.Text)
			}
		case <-ctx.Done():
			return errNoCredit
		}
	}
}

// ReadConfig reads a component's config from a YAML or JSON file, with positions; "" is an empty one.
func ReadConfig(path string) (config.Raw, error) {
	if path == "" {
		return config.Raw{}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return config.Raw{}, exitcode.With(exitcode.Environment, fmt.Errorf("reading the config: %w", err))
	}
	return config.ParseRaw(path, text)
}
