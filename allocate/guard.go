package allocate

import (
	"errors"
	"fmt"
	"slices"
)

// Ask puts one question to a strategy, in another process or in this one. It is bounded in time by its maker. Errors
// are best an *AskError or an *InvalidError; others count as a refusal.
type Ask func(Input) ([]int32, error)

// GuardConfig says what a Guard guards.
type GuardConfig struct {
	Identity Identity
	Needs    Needs
	// AllowUncovered is the operator's allow_uncovered: a partial strategy is applied only with it.
	AllowUncovered bool
}

// Guard decides for each topic of a stream which queues this member owns, and keeps what was verified when a strategy
// fails; see the package's promises. It calls Ask in the calling goroutine: three times for a question that is new,
// once for one it knows. Not safe for concurrent use.
type Guard struct {
	config GuardConfig
	topics map[string]*topicState
	// distrust is why new questions are no longer answered: the strategy changed its mind once.
	distrust error
}

type topicState struct {
	mine  []Queue // verified last
	known answers
	// latched is the input (by hash) for which the group went over to the fallback, which stays so until the input or the
	// strategy changes: a member that recovers alone must not compute otherwise than the rest.
	latched  string
	fallback Strategy
	reason   error
	digest   Digest // of the strategy's own answer
}

// NewGuard makes a Guard that has verified nothing: until a first answer is accepted, Mine is empty.
func NewGuard(config GuardConfig) *Guard {
	return &Guard{config: config, topics: map[string]*topicState{}}
}

// Replace is for a new version or config of the strategy: what was known of the old one's answers is dropped, the
// verified shares stay.
func (g *Guard) Replace(config GuardConfig) {
	g.config, g.distrust = config, nil
	for topic, state := range g.topics {
		g.topics[topic] = &topicState{mine: state.mine}
	}
}

// Forget drops what is known of a topic that is no longer subscribed.
func (g *Guard) Forget(topic string) { delete(g.topics, topic) }

// Decide asks for the share of the view's topic and judges the answer. It never fails: whatever goes wrong is in the
// Decision's Reason, with Kept set.
func (g *Guard) Decide(v View, ask Ask) Decision {
	state := g.state(v.Topic)
	in, err := NewInput(v)
	if err != nil {
		return state.keep(v, Decision{Digest: Digest{Identity: g.config.Identity}, Reason: err})
	}
	if !g.config.Needs.Previous {
		in.Previous = nil
	}
	hash := HashInput(in)
	if state.latched == hash {
		return g.apply(state, v, in, state.fallback, state.reason)
	}
	state.latched = ""
	answer, err := g.judge(state, in, hash, ask)
	state.digest = Digest{Identity: g.config.Identity, Input: hash, Result: HashResult(answer), Invalid: RuleOf(err)}
	d := Decision{Input: in, Digest: state.digest, Reason: err}
	if err != nil {
		return state.keep(v, d)
	}
	return state.accept(answer, d)
}

// UseFallback applies another strategy, computed in process, instead of the configured one, and says why. The caller
// has the reason from AgreeInvalid (after a Decision whose Digest is invalid: then the fallback stays for this input, and
// the Digest stays that of the strategy) or from CheckPeers (the Digest is the fallback's own). The fallback is a
// built-in strategy without config. An answer of the fallback that breaks the check keeps the share as any other.
func (g *Guard) UseFallback(v View, fallback Strategy, reason error) Decision {
	state := g.state(v.Topic)
	in, err := NewInput(v)
	if err != nil {
		return state.keep(v, Decision{Digest: state.digest, Reason: err})
	}
	if !fallback.Needs().Previous {
		in.Previous = nil
	}
	if hash := g.hash(in); state.digest.Invalid != "" && state.digest.Input == hash {
		state.latched, state.fallback, state.reason = hash, fallback, reason
		return g.apply(state, v, in, fallback, reason)
	}
	d := g.apply(state, v, in, fallback, reason)
	// The strategy was not asked: what the others may compare is the fallback's answer.
	d.Digest = Digest{
		Identity: Identity{Strategy: fallback.Name(), Version: BuiltinVersion, Config: HashConfig(nil)},
		Input:    HashInput(in), Result: HashResult(d.Owner),
	}
	return d
}

// hash is the hash of the question as the configured strategy gets it.
func (g *Guard) hash(in Input) string {
	if !g.config.Needs.Previous {
		in.Previous = nil
	}
	return HashInput(in)
}

func (g *Guard) apply(state *topicState, v View, in Input, fallback Strategy, reason error) Decision {
	d := Decision{Input: in, Digest: state.digest, Reason: reason, Fallback: fallback.Name()}
	answer, err := safely(fallback.Allocate, in)
	if err == nil {
		err = g.check(in, answer, fallback.Needs())
	}
	if err != nil {
		d.Fallback, d.Reason = "", errors.Join(reason, fmt.Errorf("computing the fallback %s: %w", fallback.Name(), err))
		return state.keep(v, d)
	}
	return state.accept(answer, d)
}

func (g *Guard) state(topic string) *topicState {
	state := g.topics[topic]
	if state == nil {
		state = &topicState{}
		g.topics[topic] = state
	}
	return state
}

func (s *topicState) accept(answer []int32, d Decision) Decision {
	d.Owner, d.Mine = answer, Share(d.Input, answer, d.Input.Self)
	d.Uncovered = Share(d.Input, answer, int(Uncovered))
	s.mine = d.Mine
	return d
}

// keep answers with the last verified share, less the queues that the view knows to be gone. The share itself is not
// reduced: a queue that comes back while nothing new is verified belongs to whom it belonged.
func (s *topicState) keep(v View, d Decision) Decision {
	d.Kept = true
	if len(v.Queues) == 0 {
		d.Mine = slices.Clone(s.mine)
		return d
	}
	exists := make(map[Queue]bool, len(v.Queues))
	for _, q := range v.Queues {
		exists[q] = true
	}
	for _, q := range s.mine {
		if exists[q] {
			d.Mine = append(d.Mine, q)
		}
	}
	return d
}
