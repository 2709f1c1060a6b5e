package plugintool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Allocation is a question to a strategy: a built-in one, or a plugin's.
type Allocation struct {
	Strategy string // a built-in one's name; for a plugin its component, with or without the plugin's name before a slash
	Plugin   *Plugin
	Config   config.Raw
	Question allocate.Question
	// AllowUncovered takes an answer of a partial strategy, as allocation.allow_uncovered does.
	AllowUncovered bool
}

// AllocationReport is the judged answer.
type AllocationReport struct {
	Strategy  string           `json:"strategy"`
	Accepted  bool             `json:"accepted"`
	Reason    string           `json:"reason,omitempty"` // why it was not accepted
	Owners    []AllocatedQueue `json:"owners"`
	Uncovered []string         `json:"uncovered,omitempty"`
}

// AllocatedQueue is one queue with its owner.
type AllocatedQueue struct {
	Queue string `json:"queue"` // broker/id
	Owner string `json:"owner"` // client id; empty = nobody, or not computed
}

// ReadQuestion reads a question as a log line or "group status" prints it.
func ReadQuestion(r io.Reader) (q allocate.Question, err error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("there is none; give it on standard input or in a file")
		}
		return q, exitcode.With(exitcode.Usage, fmt.Errorf("reading the question: %w; it looks like "+
			`{"group":"g","topic":"T","self":"c1","members":["c1","c2"],"queues":["broker-a/0","broker-a/1"]}`, err))
	}
	return q, nil
}

// Allocate asks a strategy as the engine does, every check included, and reports what the engine would make of the answer.
func Allocate(ctx context.Context, a Allocation) (*AllocationReport, error) {
	view, err := a.Question.View()
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	if a.Plugin == nil {
		if err := a.checkBuiltin(); err != nil {
			return nil, err
		}
		s, err := allocate.New(a.Strategy, a.Config.JSON())
		if err != nil {
			return nil, exitcode.With(exitcode.Usage, fmt.Errorf("%w; for a plugin's strategy give its binary with --plugin", err))
		}
		return a.decide(view, s.Needs(), s.Allocate), nil
	}
	b, about, err := open(ctx, *a.Plugin)
	if err != nil {
		return nil, err
	}
	report, err := a.ask(ctx, b, about, view)
	return report, errors.Join(err, b.host.Close())
}

// checkBuiltin holds the config of a built-in strategy against its schema.
func (a *Allocation) checkBuiltin() error {
	for _, spec := range firstparty.Specs() {
		if spec.Name == a.Strategy {
			return checkSchema(a.Config, spec.Schema)
		}
	}
	return nil // the strategy's own error says which there are
}

// checkSchema returns all faults of a config at once.
func checkSchema(conf config.Raw, schema []byte) error {
	problems, err := conf.Check(schema)
	if err == nil && len(problems) > 0 {
		err = &config.InvalidError{Problems: problems}
	}
	return err //nolint:wrapcheck // says what is wrong, and where
}

func (a *Allocation) ask(ctx context.Context, b *bench, about *pluginv1.DescribeResponse, view allocate.View) (*AllocationReport, error) {
	use := component(a.Strategy)
	c := chosen(about, use)
	if c == nil {
		return nil, exitcode.With(exitcode.Usage, fmt.Errorf("plugin %s offers no strategy %q; it offers %s", b.name, use, cmp.Or(offered(describe(about)), "nothing")))
	}
	if err := checkSchema(a.Config, []byte(c.GetConfigSchema())); err != nil {
		return nil, err
	}
	diagnostics, err := b.host.Configure(ctx, pluginhost.HandlerSpec{Name: benchHandler, Plugin: b.name, Use: use, Config: a.Config.JSON()})
	if err != nil {
		return nil, err //nolint:wrapcheck // the host says which component, and why
	}
	var problems []config.Problem
	for _, d := range diagnostics {
		if !d.Warning {
			problems = append(problems, a.Config.Diagnose(d.Pointer, d.Text, d.Hint))
		}
	}
	if len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	s, err := b.host.OpenStrategy(ctx, pluginhost.StrategyConfig{Instance: benchHandler, Name: a.Strategy, Config: a.Config.JSON()})
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	return a.decide(view, s.Needs(), func(in allocate.Input) ([]int32, error) { return s.Solve(ctx, in) }), nil
}

func (a *Allocation) decide(view allocate.View, needs allocate.Needs, ask allocate.Ask) *AllocationReport {
	g := allocate.NewGuard(allocate.GuardConfig{Identity: allocate.Identity{Strategy: a.Strategy}, Needs: needs, AllowUncovered: a.AllowUncovered})
	d := g.Decide(view, ask)
	r := &AllocationReport{Strategy: a.Strategy, Accepted: !d.Kept, Owners: []AllocatedQueue{}}
	if d.Reason != nil {
		r.Reason = d.Reason.Error()
	}
	for i, owner := range d.Owner {
		q := d.Input.Queues[i]
		o := AllocatedQueue{Queue: fmt.Sprintf("%s/%d", q.Broker, q.ID)}
		if owner >= 0 {
			o.Owner = d.Input.Members[owner].ClientID
		}
		r.Owners = append(r.Owners, o)
	}
	for _, q := range d.Uncovered {
		r.Uncovered = append(r.Uncovered, fmt.Sprintf("%s/%d", q.Broker, q.ID))
	}
	return r
}

// component takes the plugin's name from plugin/component.
func component(strategy string) string {
	for i := len(strategy) - 1; i >= 0; i-- {
		if strategy[i] == '/' {
			return strategy[i+1:]
		}
	}
	return strategy
}

func offered(d Description) (names string) {
	for i, c := range d.Components {
		if i > 0 {
			names += ", "
		}
		names += c.Kind + " " + c.Name
	}
	return names
}

// Text writes a report for people.
func (r *AllocationReport) Text(w io.Writer) error {
	for _, o := range r.Owners {
		if o.Owner == "" {
			o.Owner = "-"
		}
		fmt.Fprintf(w, "%s\t%s\n", o.Queue, o.Owner)
	}
	word := "accepted"
	if !r.Accepted {
		word = "not accepted: " + r.Reason
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n", r.Strategy, word); err != nil {
		return fmt.Errorf("writing the allocation: %w", err)
	}
	return nil
}

// Err is set when the answer would not be applied.
func (r *AllocationReport) Err() error {
	if r.Accepted {
		return nil
	}
	return exitcode.With(exitcode.Runtime, errors.New("the answer would not be applied: the last verified share stays"))
}
