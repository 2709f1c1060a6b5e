package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/streamd/streamd/runtime/internal/queue"
)

// State is where a Runtime stands.
type State string

// The states. A start that fails leads back to StateCreated with everything released.
const (
	StateCreated  State = "created"
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateStopping State = "stopping"
	StateStopped  State = "stopped"
)

// ErrState means that a call does not fit the state.
var ErrState = errors.New("not possible in this state")

// Runtime runs streams. Its methods may be called from any goroutine; Start, Apply and Stop take turns.
type Runtime struct {
	turn   chan struct{} // held by Start, Apply and Stop
	budget *queue.Budget
	going  []*stream // whoever has the turn may use it: what an Apply that was given up has told to end

	mu      sync.Mutex // held for memory work only
	cfg     Config
	state   State
	streams map[string]*stream
}

// New checks cfg, all of it, and does no I/O.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("checking the engine's config: %w", err)
	}
	r := &Runtime{
		turn: make(chan struct{}, 1), cfg: cfg, state: StateCreated, streams: map[string]*stream{},
		budget: queue.NewBudget("the process", cfg.Memory, nil),
	}
	return r, nil
}

func (r *Runtime) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Runtime) done() { <-r.turn }

// move changes the state if it is one of from.
func (r *Runtime) move(to State, from ...State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(from, r.state) {
		return fmt.Errorf("%w: the engine is %s", ErrState, r.state)
	}
	r.state = to
	return nil
}

// State returns the present state.
func (r *Runtime) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Start joins every stream's group. A broker or plugin that is away is no failure: the stream waits for it and Status
// says so. What no waiting can mend (a group joined twice, a config that the broker refuses) fails the start: everything
// is released, and Start may be called again.
func (r *Runtime) Start(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return fmt.Errorf("starting the engine: %w", err)
	}
	defer r.done()
	if err := r.move(StateStarting, StateCreated); err != nil {
		return fmt.Errorf("starting the engine: %w", err)
	}
	r.mu.Lock()
	cfg := r.cfg
	r.mu.Unlock()
	started, err := r.startAll(ctx, cfg, cfg.Streams)
	if err != nil {
		_ = r.move(StateCreated, StateStarting) // cannot fail: the turn is ours
		return fmt.Errorf("starting the engine: %w", err)
	}
	r.mu.Lock()
	for _, s := range started {
		r.streams[s.name] = s
	}
	r.mu.Unlock()
	return r.move(StateRunning, StateStarting)
}

// startAll starts streams in parallel: all of them, or none.
func (r *Runtime) startAll(ctx context.Context, cfg Config, configs []StreamConfig) ([]*stream, error) {
	all := make([]*stream, len(configs))
	errs := make([]error, len(configs))
	var wg sync.WaitGroup
	for i := range configs {
		all[i] = newStream(cfg, configs[i], r.budget)
		wg.Go(func() { errs[i] = all[i].start(ctx) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return all, nil
	}
	for i, s := range all {
		if errs[i] == nil {
			wg.Go(func() { _ = s.stop(ctx) }) // the start's error counts
		}
	}
	wg.Wait()
	return nil, err
}

// Stop drains: pulling ends, what is at handlers is waited for, offsets are committed and confirmed, groups are left.
// When ctx ends first, what is left is cut off: it is delivered again after the next start. The error names what was
// left or not confirmed.
func (r *Runtime) Stop(ctx context.Context) error {
	r.turn <- struct{}{} // whoever has the turn is bounded by its own context
	defer r.done()
	if err := r.move(StateStopping, StateRunning, StateCreated); err != nil {
		return fmt.Errorf("stopping the engine: %w", err)
	}
	r.mu.Lock()
	streams := slices.Collect(maps.Values(r.streams)) // they stay in the status while they drain
	r.mu.Unlock()
	for _, s := range r.going {
		if !slices.Contains(streams, s) { // one that came has its name
			streams = append(streams, s)
		}
	}
	r.going = nil
	err := stopAll(ctx, streams)
	r.mu.Lock()
	r.streams = map[string]*stream{}
	r.mu.Unlock()
	_ = r.move(StateStopped, StateStopping) // cannot fail: the turn is ours
	return err
}

func stopAll(ctx context.Context, streams []*stream) error {
	errs := make([]error, 0, len(streams))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range streams {
		wg.Go(func() {
			if err := s.stop(ctx); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Apply changes the running streams to those of cfg; its other fields must be those that New was given, except Memory.
// The whole config is checked first; nothing changes when it is wrong. Streams that are the same do not notice. A stream
// that keeps its broker and group keeps its membership; its new lanes open before the old ones drain. Others are stopped
// and started: a new one starts before an old one stops, unless it takes the old one's group. When one of them cannot
// start, the rest goes on as before: what had to stop for it is started again.
//
// Once all have started the new config is in force: what a stream that goes cannot bring to its end is logged, delivered
// again, and no error. When ctx ends while one drains, Apply says so, and Stop has to follow, which waits for it.
func (r *Runtime) Apply(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return fmt.Errorf("checking the engine's new config: %w", err)
	}
	if err := r.take(ctx); err != nil {
		return fmt.Errorf("changing the engine's config: %w", err)
	}
	defer r.done()
	r.mu.Lock()
	state, running := r.state, r.streams
	r.mu.Unlock()
	if state == StateCreated {
		r.adopt(cfg)
		return nil
	}
	if state != StateRunning {
		return fmt.Errorf("changing the engine's config: %w: the engine is %s", ErrState, state)
	}
	p := planOf(running, cfg)
	if err := p.checkChanged(ctx); err != nil {
		return fmt.Errorf("changing the engine's config: %w", err)
	}
	started, err := r.startNew(ctx, cfg, p)
	if err != nil {
		return fmt.Errorf("changing the engine's config: %w", err)
	}
	for s, c := range p.change {
		s.apply(c) //nolint:contextcheck // what starts here outlives the reload
	}
	r.mu.Lock()
	for _, s := range started {
		r.streams[s.name] = s
	}
	r.mu.Unlock()
	r.adopt(cfg)
	if err := r.drain(ctx, slices.Collect(maps.Values(p.last))); err != nil {
		return fmt.Errorf("waiting for streams that the new config does not have: %w", err)
	}
	r.forgetExcept(p.last, started)
	return nil
}

// drain ends streams that nobody wants any more. It cuts nothing off: when ctx ends first, they are left to Stop.
func (r *Runtime) drain(ctx context.Context, gone []*stream) error {
	for _, s := range gone {
		s.member.stop()
	}
	for _, s := range gone {
		select {
		case <-s.member.done:
		case <-ctx.Done():
			r.going = append(r.going, gone...)
			return context.Cause(ctx)
		}
	}
	if err := stopAll(ctx, gone); err != nil {
		r.cfg.Logger.Warn("a stream that the new config does not have did not stop cleanly", "error", err.Error())
	}
	return nil
}

// startNew starts what the running streams do not have: first what needs nothing of theirs, then what takes over a group.
// When that fails, all is as it was before.
func (r *Runtime) startNew(ctx context.Context, cfg Config, p plan) ([]*stream, error) {
	started, err := r.startAll(ctx, cfg, p.start)
	if err != nil || len(p.takers) == 0 {
		return started, err
	}
	if err := stopAll(ctx, slices.Collect(maps.Values(p.first))); err != nil {
		cfg.Logger.Warn("a replaced stream did not stop cleanly", "error", err.Error())
	}
	takers, err := r.startAll(ctx, cfg, p.takers)
	if err == nil {
		r.forget(p.first)
		return append(started, takers...), nil
	}
	ctx = context.WithoutCancel(ctx) // nothing less may run than before, however long the caller waits
	errs := []error{err, stopAll(ctx, started)}
	for name, s := range p.first {
		errs = append(errs, r.startAgain(ctx, name, *s.config()))
	}
	return nil, errors.Join(errs...)
}

// startAgain brings back a stream that was stopped for one that could not take its place.
func (r *Runtime) startAgain(ctx context.Context, name string, c StreamConfig) error {
	r.mu.Lock()
	cfg := r.cfg
	r.mu.Unlock()
	back, err := r.startAll(ctx, cfg, []StreamConfig{c})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		delete(r.streams, name)
		return fmt.Errorf("starting again what ran before: %w", err)
	}
	r.streams[name] = back[0]
	return nil
}

func (r *Runtime) adopt(cfg Config) {
	r.mu.Lock()
	r.cfg = cfg
	r.mu.Unlock()
	r.budget.SetLimit(cfg.Memory)
}

func (r *Runtime) forget(gone map[string]*stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range gone {
		delete(r.streams, name)
	}
}

// forgetExcept drops streams that ended, but not one of the same name that took their place.
func (r *Runtime) forgetExcept(gone map[string]*stream, started []*stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range gone {
		if r.streams[name] == s && !slices.Contains(started, s) {
			delete(r.streams, name)
		}
	}
}

// plan is what Apply does.
type plan struct {
	start  []StreamConfig     // streams of groups that nobody has
	first  map[string]*stream // to stop before takers start, which take their groups
	takers []StreamConfig
	last   map[string]*stream // to stop after everything has started
	change map[*stream]StreamConfig
}

func planOf(running map[string]*stream, cfg Config) plan {
	p := plan{first: map[string]*stream{}, last: map[string]*stream{}, change: map[*stream]StreamConfig{}}
	wanted := map[string]bool{}
	groups := map[string]int{} // places in fresh
	var fresh []StreamConfig
	for i := range cfg.Streams {
		c := cfg.Streams[i]
		s := running[c.Name]
		same := s != nil && s.config().Broker == c.Broker && s.config().Group == c.Group && s.config().Broadcasting == c.Broadcasting
		switch {
		case same && s.config().equal(&c):
			wanted[c.Name] = true
		case same:
			wanted[c.Name] = true
			p.change[s] = c
		default:
			groups[groupKey(&c)] = len(fresh)
			fresh = append(fresh, c)
		}
	}
	taken := map[int]bool{}
	for name, s := range running {
		i, takes := groups[groupKey(s.config())]
		switch {
		case wanted[name]:
		case takes:
			p.first[name], taken[i] = s, true
		default:
			p.last[name] = s
		}
	}
	for i := range fresh {
		if taken[i] {
			p.takers = append(p.takers, fresh[i])
		} else {
			p.start = append(p.start, fresh[i])
		}
	}
	return p
}

func groupKey(c *StreamConfig) string { return c.Broker + "\x00" + c.Group }

// ResetOffset begins a queue of a stream anew at offset, as a reset by an operator does: the way out of a held queue.
func (r *Runtime) ResetOffset(stream string, q Queue, offset int64) error {
	r.mu.Lock()
	s := r.streams[stream]
	r.mu.Unlock()
	if s == nil {
		return fmt.Errorf("resetting %s: no stream %q runs here", q, stream)
	}
	if !s.member.reset(q, offset) {
		return fmt.Errorf("resetting %s: stream %q does not own it here; ask its owner", q, stream)
	}
	return nil
}
