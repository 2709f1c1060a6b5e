package firstparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/runtime"
)

// PluginName is the name under which the daemon registers the re-executed binary with the plugin host.
const PluginName = "streamd-allocate"

// openDeadline bounds how long a question waits for a process that was not there when the strategy was opened.
const openDeadline = 2 * time.Second

// holdOff is how long a process that gave no answer is left alone: a rebalance asks several times for each topic and
// must not wait for each.
const holdOff = 10 * time.Second

// Strategies opens strategies: those of plugins as they are, the built-in ones with the in-process answer behind them.
type Strategies struct {
	plugins runtime.Strategies
	log     *slog.Logger
}

// NewStrategies makes Strategies over the plugin host, which knows PluginName.
func NewStrategies(plugins runtime.Strategies, log *slog.Logger) *Strategies {
	return &Strategies{plugins: plugins, log: log}
}

// Open opens what spec names. A built-in strategy is ready at once, whatever its process does; a wrong name or config is
// an error.
func (s *Strategies) Open(ctx context.Context, spec runtime.StrategySpec) (runtime.Strategy, error) {
	if spec.Plugin != "" {
		return s.plugins.Open(ctx, spec) //nolint:wrapcheck // the engine names the strategy, and the host its process
	}
	local, err := allocate.New(spec.Name, spec.Config)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", spec.Stream, err)
	}
	process := spec
	process.Name, process.Plugin, process.Use = "", PluginName, spec.Name
	return &builtin{
		local: local,
		identity: allocate.Identity{
			Strategy: spec.Name, Version: allocate.BuiltinVersion, Config: allocate.HashConfig(spec.Config),
		},
		open: func(ctx context.Context) (runtime.Strategy, error) { return s.plugins.Open(ctx, process) },
		log:  s.log.With("stream", spec.Stream, "strategy", spec.Name),
	}, nil
}

// builtin is one built-in strategy: a process that answers, and the same code here for when it does not.
type builtin struct {
	local    allocate.Strategy
	identity allocate.Identity
	open     func(context.Context) (runtime.Strategy, error)
	log      *slog.Logger

	mu      sync.Mutex
	process runtime.Strategy // nil until it could be opened
	cause   error            // why the last answer was computed here; nil = the process gave it
	until   time.Time        // not asked before
	closed  bool
}

func (b *builtin) Name() string                { return b.identity.Strategy }
func (b *builtin) Needs() allocate.Needs       { return b.local.Needs() }
func (b *builtin) Identity() allocate.Identity { return b.identity }

// Solve asks the process, and computes here when the process gives no answer. What the process answers, an error of the
// strategy included, stands.
func (b *builtin) Solve(ctx context.Context, in allocate.Input) ([]int32, error) {
	owner, err := b.ask(ctx, in)
	switch {
	case err == nil:
		return owner, nil
	case errors.Is(ctx.Err(), context.Canceled): // a deadline that has passed still leaves time to compute here
		return nil, fmt.Errorf("asking strategy %s: %w", b.Name(), ctx.Err())
	case !noAnswer(err):
		return nil, err
	}
	owner, err = b.local.Allocate(in)
	if err != nil {
		return nil, &allocate.AskError{Kind: allocate.RuleRefused, Err: err}
	}
	return owner, nil
}

// errHeldOff means that the process gave no answer a moment ago.
var errHeldOff = &allocate.AskError{Kind: allocate.RuleCrash, Err: errors.New("it gave no answer a moment ago")}

func (b *builtin) ask(ctx context.Context, in allocate.Input) ([]int32, error) {
	if b.heldOff() {
		return nil, errHeldOff
	}
	process, err := b.opened(ctx)
	if err != nil {
		err = &allocate.AskError{Kind: allocate.RuleCrash, Err: err}
		b.note(err)
		return nil, err
	}
	owner, err := process.Solve(ctx, in)
	b.note(err)
	return owner, err
}

func (b *builtin) heldOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

// note remembers how the process did, and logs the change from one way to the other, not each question.
func (b *builtin) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.cause
	b.cause = nil
	if noAnswer(err) {
		b.cause, b.until = err, time.Now().Add(holdOff)
	}
	switch {
	case before == nil && b.cause != nil:
		b.log.Warn("strategy is computed in process: its own process gives no answer", "error", err)
	case before != nil && b.cause == nil:
		b.log.Info("strategy is computed by its process again")
	}
}

func (b *builtin) opened(ctx context.Context) (runtime.Strategy, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("strategy is closed")
	}
	if b.process != nil {
		return b.process, nil
	}
	bounded, cancel := context.WithTimeout(ctx, openDeadline)
	defer cancel()
	process, err := b.open(bounded)
	if err != nil {
		return nil, err
	}
	b.process = process
	return process, nil
}

// noAnswer tells a process that is gone or slow from a strategy that says no.
func noAnswer(err error) bool {
	rule := allocate.RuleOf(err)
	return rule == allocate.RuleCrash || rule == allocate.RuleTimeout
}

// Close closes the process's side.
func (b *builtin) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.process == nil {
		return nil
	}
	process := b.process
	b.process = nil
	if err := process.Close(); err != nil {
		return fmt.Errorf("closing strategy %s: %w", b.Name(), err)
	}
	return nil
}
