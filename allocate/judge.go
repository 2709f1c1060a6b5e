package allocate

import (
	"errors"
	"fmt"
	"slices"
)

// judge asks, checks and asks again. With an *InvalidError it returns the answer at fault, for the digest.
func (g *Guard) judge(state *topicState, in Input, hash string, ask Ask) ([]int32, error) {
	answer, err := g.ask(in, ask)
	if err != nil {
		return answer, err
	}
	if known, ok := state.known.get(hash); ok {
		if known != hashAnswer(answer) {
			g.distrust = g.named(&InvalidError{Rule: RuleUnstable, Detail: "it answered the same question differently before"})
			return nil, g.distrust
		}
		return answer, nil
	}
	if g.distrust != nil {
		return nil, g.distrust
	}
	if err := g.askAgain(in, answer, ask); err != nil {
		return nil, err
	}
	state.known.put(hash, hashAnswer(answer))
	return answer, nil
}

// askAgain repeats the question after another one: a strategy that remembers shows itself.
func (g *Guard) askAgain(in Input, first []int32, ask Ask) error {
	if _, err := safely(ask, another(in)); RuleOf(err) == RuleTimeout || RuleOf(err) == RuleCrash {
		return err // no point in waiting for the same again; that it refuses a made-up question is no fault
	}
	second, err := g.ask(in, ask)
	if err != nil {
		return err
	}
	for i := range first {
		if first[i] == second[i] {
			continue
		}
		e := &InvalidError{Rule: RuleUnstable, Queue: in.Queues[i], Members: []string{nameOf(in, first[i])}}
		g.distrust = g.named(e)
		return g.distrust
	}
	return nil
}

func (g *Guard) ask(in Input, ask Ask) ([]int32, error) {
	answer, err := safely(ask, in)
	if err != nil {
		return nil, g.named(err)
	}
	return answer, g.check(in, answer, g.config.Needs)
}

// check is Check under the operator's rule: what may be uncovered by design needs his consent.
func (g *Guard) check(in Input, answer []int32, needs Needs) error {
	if needs.Partial && !g.config.AllowUncovered {
		if needs.PerMember && slices.Contains(answer, NotComputed) {
			return g.named(&InvalidError{
				Rule: RuleUncovered, Queue: in.Queues[slices.Index(answer, NotComputed)],
				Detail: "as far as can be told: the strategy leaves queues uncovered by design",
			})
		}
		needs.Partial = false
	}
	return g.named(Check(in, answer, needs))
}

// named puts the strategy's name into an error that has none.
func (g *Guard) named(err error) error {
	if invalid, ok := errors.AsType[*InvalidError](err); ok && invalid.Strategy == "" {
		named := *invalid
		named.Strategy = g.config.Identity.Strategy
		return &named
	}
	return err
}

// safely asks with a copy of the question, so that nobody can change ours, and turns a panic into a refusal.
func safely(ask Ask, in Input) (answer []int32, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = nil, &AskError{Kind: RuleRefused, Err: fmt.Errorf("panic: %v", r)}
		}
	}()
	in.Queues, in.Members, in.Previous = slices.Clone(in.Queues), slices.Clone(in.Members), slices.Clone(in.Previous)
	return ask(in)
}

// another makes a question that is like in, but not in.
func another(in Input) Input {
	out := in
	switch {
	case len(in.Members) > 1:
		gone := (in.Self + 1) % len(in.Members)
		out.Members = slices.Delete(slices.Clone(in.Members), gone, gone+1)
		if gone < in.Self {
			out.Self--
		}
		out.Previous = nil
	case len(in.Queues) > 1:
		out.Queues = in.Queues[:len(in.Queues)-1]
		out.Previous = nil
	default:
		more := in.Queues[0]
		more.ID++
		out.Queues = []Queue{in.Queues[0], more}
		out.Previous = nil
	}
	return out
}

func nameOf(in Input, owner int32) string {
	if owner >= 0 && int(owner) < len(in.Members) {
		return in.Members[owner].ClientID
	}
	return "nobody"
}

// maxKnown bounds how many answers are remembered per topic: a group seldom comes back to an older membership.
const maxKnown = 64

// answers remembers the hash of the answer to each question, the oldest forgotten first.
type answers struct {
	byInput map[string]string
	order   []string
}

func (a *answers) get(input string) (string, bool) {
	h, ok := a.byInput[input]
	return h, ok
}

func (a *answers) put(input, answer string) {
	if a.byInput == nil {
		a.byInput = map[string]string{}
	}
	if len(a.order) == maxKnown {
		delete(a.byInput, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
	a.byInput[input] = answer
	a.order = append(a.order, input)
}

func hashAnswer(owner []int32) string {
	h := newHasher()
	for _, o := range owner {
		h.number(int(o))
	}
	return h.short()
}
