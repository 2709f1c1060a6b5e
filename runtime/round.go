package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// round looks at every topic of a group: its queues, the group's members, the share that the strategy gives. It belongs
// to the round's goroutine; only replaceStrategy and sooner are called from elsewhere.
type round struct {
	m        *member
	strategy Strategy
	guard    *allocate.Guard
	reason   error             // why the strategy is not open
	told     map[string]string // by topic: the alarm that was logged last
	asked    map[string]bool   // members asked in this round what they run
	retries  retries
	names    []string      // the topics of the last round
	hurry    chan struct{} // room for one: another round is wanted

	mu       sync.Mutex // guards what follows; held for memory work only
	stale    bool       // the strategy's config changed
	left     bool       // the group was left
	kinds    map[string]allocate.Peer
	neighbor int
	polling  bool
}

func newRound(m *member) *round {
	return &round{m: m, kinds: map[string]allocate.Peer{}, told: map[string]string{}, asked: map[string]bool{}, retries: retries{brokers: map[string]*groupRetries{}}, hurry: make(chan struct{}, 1)}
}

const (
	openLimit  = 15 * time.Second // for a strategy's process
	solveLimit = 5 * time.Second  // for its answer
	askLimit   = 5 * time.Second  // for a broker's
)

func (r *round) replaceStrategy() {
	r.mu.Lock()
	r.stale = true
	r.mu.Unlock()
}

// renounce tells that the group is left: what was verified before is nobody's share here any more.
func (r *round) renounce() {
	r.mu.Lock()
	r.left = true
	r.mu.Unlock()
}

// forgetShares forgets the verified shares of topics that are not subscribed any more, and all of them after a leave. Others
// have those queues since: when a first view after that is unusable, no share stays.
func (r *round) forgetShares(names []string) {
	r.mu.Lock()
	left := r.left
	r.left = false
	r.mu.Unlock()
	for _, topic := range r.names {
		if r.guard != nil && (left || !slices.Contains(names, topic)) {
			r.guard.Forget(topic)
		}
	}
	r.names = names
}

func (r *round) close() {
	if r.strategy != nil {
		if err := r.strategy.Close(); err != nil {
			r.m.s.log.Warn("closing the strategy", "error", err.Error())
		}
		r.strategy = nil
	}
}

// run is one round. Topics that are decided while brokers of others are silent go to part as well.
func (r *round) run(ctx context.Context, part func([]group.Topic)) []group.Topic {
	clear(r.asked)
	r.unhurried()
	c := r.m.s.config()
	if !c.Broadcasting {
		r.open(ctx)
	}
	names := make([]string, 0, len(c.Subscriptions)+1)
	for _, sub := range c.Subscriptions {
		names = append(names, sub.Topic)
	}
	if !c.Broadcasting {
		names = append(names, wire.RetryTopic(c.Group))
	}
	r.forgetShares(names)
	topics := r.decideAll(ctx, c, names, part)
	r.m.forgetMembers(topics)
	r.introduceAgain(ctx, topics)
	return topics
}

// open opens the strategy, anew after a change of its config: the new one before the old one is closed.
func (r *round) open(ctx context.Context) {
	r.mu.Lock()
	stale := r.stale
	r.mu.Unlock()
	if r.strategy != nil && !stale {
		return
	}
	c := r.m.s.config()
	next, err := r.openStrategy(ctx, c)
	r.reason = err
	if err != nil {
		r.m.s.log.Warn("strategy is not available, the present share stays", "error", err.Error())
		return
	}
	r.close()
	r.strategy = next
	r.mu.Lock()
	r.stale = false
	r.mu.Unlock()
	gc := allocate.GuardConfig{Identity: next.Identity(), Needs: next.Needs(), AllowUncovered: c.AllowUncovered}
	if r.guard == nil {
		r.guard = allocate.NewGuard(gc)
	} else {
		r.guard.Replace(gc)
	}
}

// openStrategy opens the strategy's process. A built-in one is computed here when there is none: it is the same code.
func (r *round) openStrategy(ctx context.Context, c *StreamConfig) (Strategy, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	var failed error
	if r.m.s.rt.Strategies != nil {
		s, err := r.m.s.rt.Strategies.Open(ctx, c.Strategy)
		if err == nil {
			return s, nil
		}
		failed = fmt.Errorf("opening strategy %s: %w", strategyName(c.Strategy), err)
	}
	if c.Strategy.Name == "" {
		return nil, errors.Join(errors.New("no process for the strategy"), failed)
	}
	local, err := newLocalStrategy(c.Strategy)
	return local, errors.Join(err, ifError(err, failed))
}

func ifError(err, failed error) error {
	if err == nil {
		return nil
	}
	return failed
}

func strategyName(s StrategySpec) string {
	if s.Name != "" {
		return s.Name
	}
	return strings.TrimSuffix(s.Plugin+"/"+s.Use, "/")
}

// topic decides this member's share of one topic.
func (r *round) topic(ctx context.Context, c *StreamConfig, s *sight) group.Topic {
	t := group.Topic{Name: s.topic, Hold: s.hold}
	switch {
	case c.Broadcasting:
		return r.all(s)
	case r.guard == nil:
		t.Hold = Hold{Kind: queue.HoldStrategy, Text: r.reason.Error()}
		return t
	case s.hold.Held():
		return t
	case len(s.queues) == 0:
		t.Known = true // a topic that has none
		return t
	}
	ctx, cancel := context.WithTimeout(ctx, 3*askLimit)
	defer cancel()
	if missing := r.m.awaited(s.topic, s.members); len(missing) > 0 {
		t.Hold = Hold{Kind: queue.HoldMembersUnknown, Text: fmt.Sprintf("a broker that has only just come back does not list %s, which belonged to the group before: it is waited for, up to %s",
			strings.Join(missing, ", "), returnGrace)}
		return t
	}
	r.m.noteMembers(s.topic, s.members)
	view := allocate.View{Group: c.Group, Topic: s.topic, Self: r.m.s.broker.ClientID(), Queues: s.queues, Members: s.members}
	var absent []string
	if !wire.IsRetryTopic(s.topic) {
		view.Members, absent = r.m.views.divide(s.topic, view.Self, s.members)
	}
	d := r.decide(ctx, c, view)
	r.m.noteDecision(s.topic, d, absent)
	r.alarm(s.topic, d)
	t.Known, t.Mine = true, d.Mine
	if d.Kept {
		t.Hold = Hold{Kind: queue.HoldStrategy, Text: d.Reason.Error()}
		if errors.Is(d.Reason, allocate.ErrUnusableView) {
			t.Hold.Kind = queue.HoldMembersUnknown
		}
		if again := d.Reproduce(); again != "" {
			t.Hold.Text += "; to see it again: " + again
		}
	}
	return t
}

// alarm logs that the strategy's answer is not what is applied, once for each reason, and that it is again.
func (r *round) alarm(topic string, d allocate.Decision) {
	why := d.Fallback
	if d.Reason != nil {
		why += ": " + d.Reason.Error()
	}
	if r.told[topic] == why {
		return
	}
	r.told[topic] = why
	log := r.m.s.log.With("topic", topic, "strategy", strategyName(r.m.s.config().Strategy))
	switch {
	case d.Reason == nil:
		log.Info("the strategy's answer is applied again")
	case d.Fallback != "":
		log.Warn("a fallback divides the queues in the strategy's place", "fallback", d.Fallback, "error", d.Reason.Error(), "again", d.Reproduce())
	default:
		log.Warn("the strategy's answer is not applied, the last verified share stays", "error", d.Reason.Error(), "again", d.Reproduce())
	}
}

// decide asks the strategy, unless who else is in the group forbids it.
func (r *round) decide(ctx context.Context, c *StreamConfig, view allocate.View) allocate.Decision {
	ask := r.ask(ctx)
	if mixed := r.checkPeers(ctx, view.Members); mixed != nil {
		if fallback, err := allocate.New(mixed.Use, nil); mixed.Use != "" && err == nil {
			return r.guard.UseFallback(view, fallback, mixed)
		}
		ask = func(allocate.Input) ([]int32, error) { return nil, mixed }
	}
	d := r.guard.Decide(view, ask)
	if !d.Kept || d.Digest.Invalid == "" {
		return d
	}
	peers := r.askAll(ctx, view.Members)
	if !allocate.AgreeInvalid(d.Digest, d.Input, peers) {
		return d
	}
	fallback, err := allocate.New(c.Fallback, nil)
	if err != nil {
		return d
	}
	return r.guard.UseFallback(view, fallback, d.Reason)
}

func (r *round) ask(ctx context.Context) allocate.Ask {
	return func(in allocate.Input) ([]int32, error) {
		ctx, cancel := context.WithTimeout(ctx, solveLimit)
		defer cancel()
		answer, err := r.strategy.Solve(ctx, in)
		spec := r.m.s.config().Strategy
		if err == nil || spec.Name == "" {
			return answer, err //nolint:wrapcheck // the guard judges it
		}
		local, lerr := newLocalStrategy(spec)
		if lerr != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		r.m.s.log.Warn("the strategy's process failed, computing here", "strategy", spec.Name, "error", err.Error())
		return local.Solve(ctx, in)
	}
}

// checkPeers asks what the other members run, when the strategy is one that they may not have.
func (r *round) checkPeers(ctx context.Context, members []string) *allocate.MixedGroupError {
	name := r.strategy.Name()
	peers := r.known(members)
	if len(peers) < len(members)-1 && !allocate.JavaExact(name) && slices.ContainsFunc(members, r.unasked) {
		peers = r.askAll(ctx, members) // once a round: the silent ones cost the limit each time
		for _, id := range members {
			r.asked[id] = true
		}
	}
	var mixed *allocate.MixedGroupError
	if err := allocate.CheckPeers(name, peers); errors.As(err, &mixed) {
		return mixed
	}
	return nil
}

func (r *round) unasked(id string) bool { return !r.asked[id] }

// localStrategy computes a built-in strategy in this process.
type localStrategy struct {
	allocate.Strategy
	spec StrategySpec
}

func newLocalStrategy(spec StrategySpec) (*localStrategy, error) {
	s, err := allocate.New(spec.Name, spec.Config)
	if err != nil {
		return nil, fmt.Errorf("making strategy %s: %w", spec.Name, err)
	}
	return &localStrategy{Strategy: s, spec: spec}, nil
}

// Identity implements Strategy.
func (l *localStrategy) Identity() allocate.Identity {
	return allocate.Identity{Strategy: l.spec.Name, Version: allocate.BuiltinVersion, Config: allocate.HashConfig(l.spec.Config)}
}

// Solve implements Strategy.
func (l *localStrategy) Solve(_ context.Context, in allocate.Input) ([]int32, error) {
	return l.Allocate(in) //nolint:wrapcheck // the guard judges it
}

// Close implements Strategy.
func (l *localStrategy) Close() error { return nil }
