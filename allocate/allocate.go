// Package allocate divides the queues of a topic among the members of a group. Pure functions only.
package allocate

import "github.com/streamd/streamd/sdk"

// Queue is the one queue type.
type Queue = sdk.Queue

// Member is one member of a group with what its client id says of it.
type Member struct {
	ClientID   string
	Attributes map[string]string // from the id: ip@pid#nanos@zone=a,weight=2
}

// Input is one question to a strategy. Queues and Members are sorted and unique.
type Input struct {
	Group, Topic string
	Self         int // index into Members
	Queues       []Queue
	Members      []Member
	Previous     []int32 // owner per queue before; nil = unknown
}

// What Allocate may answer for a queue besides an index of a member.
const (
	Uncovered   int32 = -1 // nobody owns it: partial strategies only
	NotComputed int32 = -2 // a per-member strategy did not ask for the others
)

// Needs declares what a strategy reads and promises.
type Needs struct {
	Partial    bool     // may leave queues uncovered by design
	Attributes []string // attributes of members it reads
	Previous   bool     // reads Input.Previous
	PerMember  bool     // computes one member's share at a time
}

// Strategy maps each queue to its owner. It is a pure function: same input, same answer, in every process.
type Strategy interface {
	Name() string
	Needs() Needs
	Allocate(in Input) ([]int32, error) // [i] = index of the member that owns Queues[i]
}
