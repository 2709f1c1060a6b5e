package allocate

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Rule names what an answer broke, or why there is none. Rules travel in digests, so they are stable.
type Rule string

// The rules of the check, and the ways in which a strategy fails to answer.
const (
	RuleLength        Rule = "length"         // not one entry per queue
	RuleUnknownMember Rule = "unknown_member" // an owner that is no index into the members
	RuleUncovered     Rule = "uncovered"      // a queue without owner, by a strategy that promises to cover
	RuleNotComputed   Rule = "not_computed"   // a queue left out although it had to be computed
	RuleTwoOwners     Rule = "two_owners"     // a queue claimed by two members
	RuleRepeated      Rule = "repeated"       // a queue claimed twice by one member
	RuleForeignQueue  Rule = "foreign_queue"  // a queue that was not asked about
	RuleUnstable      Rule = "unstable"       // the same question was answered in two ways
	RuleRefused       Rule = "refused"        // the strategy answered with an error, or panicked
	RuleTimeout       Rule = "timeout"        // no answer within the deadline
	RuleCrash         Rule = "crash"          // the process died or could not be reached
)

// InvalidError is an answer that must not be applied. It names the queue, the members and the rule, and says what to do.
type InvalidError struct {
	Strategy string
	Rule     Rule
	Queue    Queue    // zero when the rule is not about one queue
	Members  []string // client ids that the rule is about
	Detail   string
	More     int // further queues that break the same rule
}

// Error is one line for the operator and the author.
func (e *InvalidError) Error() string {
	var b strings.Builder
	if e.Strategy != "" {
		fmt.Fprintf(&b, "strategy %s: ", e.Strategy)
	}
	b.WriteString(e.what())
	if e.Detail != "" {
		fmt.Fprintf(&b, " (%s)", e.Detail)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, ", and %d more", e.More)
	}
	b.WriteString("; ")
	b.WriteString(e.Rule.advice())
	return b.String()
}

func (e *InvalidError) what() string {
	who := strings.Join(e.Members, " and ")
	switch e.Rule {
	case RuleTwoOwners:
		return fmt.Sprintf("queue %s has two owners: %s", e.Queue, who)
	case RuleRepeated:
		return fmt.Sprintf("queue %s stands twice in the share of %s", e.Queue, who)
	case RuleForeignQueue:
		return fmt.Sprintf("queue %s in the share of %s was not asked about", e.Queue, who)
	case RuleUncovered:
		return fmt.Sprintf("queue %s has no owner", e.Queue)
	case RuleNotComputed:
		return fmt.Sprintf("queue %s was not computed", e.Queue)
	case RuleUnknownMember:
		return fmt.Sprintf("queue %s is given to a member that does not exist", e.Queue)
	case RuleUnstable:
		return fmt.Sprintf("queue %s went to %s when asked first, and elsewhere when asked the same again", e.Queue, who)
	default:
		return "answer breaks the rule " + string(e.Rule)
	}
}

// advice tells the author or the operator what to do about a broken rule.
func (r Rule) advice() string {
	switch r {
	case RuleTwoOwners:
		return "every member must compute from the sorted queues and client ids alone, so that the shares fit together"
	case RuleRepeated, RuleForeignQueue:
		return "a share holds only queues of the question, each once"
	case RuleUncovered:
		return "every queue needs an owner, or nobody reads it: cover it, or declare Needs.Partial and set allow_uncovered: true on the stream"
	case RuleNotComputed:
		return "answer for every queue; only a strategy that declares Needs.PerMember may leave other members' queues out"
	case RuleUnknownMember:
		return "an owner is an index into the members of the question"
	case RuleUnstable:
		return "a strategy is a pure function: no state, clock, randomness or map order; it is not used for new questions until the plugin or its config is replaced"
	case RuleLength:
		return "answer with exactly one entry per queue of the question"
	default:
		return "see the plugin's log"
	}
}

// AskError says why a strategy gave no answer: RuleRefused, RuleTimeout or RuleCrash.
type AskError struct {
	Kind Rule
	Err  error
}

// Error tells the kind and the cause.
func (e *AskError) Error() string {
	switch e.Kind {
	case RuleTimeout:
		return fmt.Sprintf("strategy did not answer in time: %v", e.Err)
	case RuleCrash:
		return fmt.Sprintf("strategy's process is gone or out of reach: %v", e.Err)
	default:
		return fmt.Sprintf("strategy refused the question: %v", e.Err)
	}
}

// Unwrap returns the cause.
func (e *AskError) Unwrap() error { return e.Err }

// RuleOf classifies the reason of a Decision: the broken rule, or how the strategy failed to answer. It is empty for a
// nil error, for ErrUnusableView, for a *MixedGroupError and for a question that the caller gave up: they say nothing
// against the strategy.
func RuleOf(err error) Rule {
	if err == nil || errors.Is(err, ErrUnusableView) || errors.Is(err, context.Canceled) {
		return ""
	}
	if _, mixed := errors.AsType[*MixedGroupError](err); mixed {
		return ""
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid.Rule
	}
	if ask, ok := errors.AsType[*AskError](err); ok {
		return ask.Kind
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return RuleTimeout
	}
	return RuleRefused
}
