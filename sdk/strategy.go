package sdk

// Member is one member of a group with what its client id says of it.
type Member struct {
	ClientID   string
	Attributes map[string]string // from the id: ip@pid#nanos@zone=a,weight=2; nil when it carries none
}

// StrategyInput is one question to a strategy: who owns which queue of one topic. A strategy must not change it.
type StrategyInput struct {
	Group, Topic string
	Self         int      // index into Members of the member that asks
	Queues       []Queue  // of one topic, sorted by Queue.Compare, unique, never empty
	Members      []Member // sorted by client id as plain bytes, unique, never empty
	Previous     []int32  // owner per queue before, an index into Members or Uncovered; nil = unknown
}

// What a strategy may answer for a queue besides an index of a member.
const (
	Uncovered   int32 = -1 // nobody owns it: only from a strategy that declares Needs.Partial
	NotComputed int32 = -2 // another member's queue that a per-member strategy was not asked about
)

// Strategy divides the queues of a topic among all members at once. It is a pure function: the same input gives the
// same answer in every process, whatever was asked before. It keeps no state, reads no clock, uses no randomness and
// no map's order; streamd asks twice and refuses a strategy that answers differently.
//
// Calls may come concurrently.
type Strategy interface {
	Name() string
	Needs() Needs
	// Allocate returns one entry for each of in.Queues: the index in in.Members of the owner, or Uncovered.
	Allocate(in StrategyInput) ([]int32, error)
}

// MemberStrategy is the smallest contract for a strategy: the share of one member. Every member computes alone, so the
// shares fit together only if the answer is a pure function of the four arguments; streamd asks for the other members
// too, and refuses answers in which a queue has two owners or none.
//
// A MemberStrategy that leaves queues uncovered by design, or reads attributes, has a method Needs() Needs.
// Calls may come concurrently.
type MemberStrategy interface {
	Name() string
	// Allocate returns the queues that self owns. queues and members (client ids) are sorted, unique and not empty;
	// self is one of members. The slices belong to the caller.
	Allocate(group, self string, queues []Queue, members []string) ([]Queue, error)
}
