package allocate

import "github.com/streamd/streamd/sdk"

// The types of a strategy are the author's: one type on both sides of the process border.
type (
	// Queue is the one queue type.
	Queue = sdk.Queue
	// Member is one member of a group with what its client id says of it.
	Member = sdk.Member
	// Input is one question to a strategy. Queues and Members are sorted and unique; NewInput makes one.
	Input = sdk.StrategyInput
	// Needs declares what a strategy reads and promises.
	Needs = sdk.Needs
	// Strategy maps each queue to its owner. It is a pure function: same input, same answer, in every process.
	Strategy = sdk.Strategy
)

// What Allocate may answer for a queue besides an index of a member.
const (
	Uncovered   = sdk.Uncovered
	NotComputed = sdk.NotComputed
)

// Share returns the queues of in that owner gives to member, in the order of in.Queues.
func Share(in Input, owner []int32, member int) []Queue {
	var out []Queue
	for i, o := range owner {
		if int(o) == member && i < len(in.Queues) {
			out = append(out, in.Queues[i])
		}
	}
	return out
}

// asOwner is an index of a member as an answer holds it.
func asOwner(member int) int32 {
	return int32(member)
}
