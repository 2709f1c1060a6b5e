package allocate

import "fmt"

// Check judges a whole answer of a strategy: one entry per queue, each a known member; Uncovered only when needs say
// Partial; NotComputed only when they say PerMember. (That a queue has at most one owner is in the answer's form.)
// The error is an *InvalidError about the first queue at fault.
func Check(in Input, answer []int32, needs Needs) error {
	if len(answer) != len(in.Queues) {
		return &InvalidError{Rule: RuleLength, Detail: fmt.Sprintf("%d entries for %d queues", len(answer), len(in.Queues))}
	}
	var first *InvalidError
	for i, owner := range answer {
		rule := ruleOfOwner(owner, len(in.Members), needs)
		switch {
		case rule == "":
		case first == nil:
			first = &InvalidError{Rule: rule, Queue: in.Queues[i]}
			if rule == RuleUnknownMember {
				first.Detail = fmt.Sprintf("index %d of %d members", owner, len(in.Members))
			}
		case first.Rule == rule:
			first.More++
		}
	}
	if first != nil {
		return first
	}
	return nil
}

func ruleOfOwner(owner int32, members int, needs Needs) Rule {
	switch {
	case owner >= 0 && int(owner) < members:
		return ""
	case owner == Uncovered && needs.Partial:
		return ""
	case owner == Uncovered:
		return RuleUncovered
	case owner == NotComputed && needs.PerMember:
		return ""
	case owner == NotComputed:
		return RuleNotComputed
	default:
		return RuleUnknownMember
	}
}

// MaxWholeMap is how many pairs of member and queue a per-member strategy computes to be checked as a whole map.
const MaxWholeMap = 1_000_000

// sampleSize is how many members besides the own one are asked when the whole map would be too much.
const sampleSize = 8

// Asked returns the indexes of the members whose shares a per-member strategy has to compute for in, sorted: all of
// them up to MaxWholeMap, else in.Self and a sample. Members with other places in the list sample others, so that
// together they see most of the map.
func Asked(in Input) []int {
	n := len(in.Members)
	if n*len(in.Queues) <= MaxWholeMap || n <= sampleSize+1 {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	chosen := make(map[int]bool, sampleSize+1)
	asked := make([]int, 0, sampleSize+1)
	for k := range sampleSize + 1 {
		chosen[(in.Self+k*n/(sampleSize+1))%n] = true
	}
	for i := range n {
		if chosen[i] {
			asked = append(asked, i)
		}
	}
	return asked
}

// CheckShares judges what single members claim and makes it one answer: asked[k] is the member that claims shares[k].
// Queues of members that were not asked become NotComputed. When all were asked every queue needs an owner unless needs
// say Partial. The error is an *InvalidError.
func CheckShares(in Input, asked []int, shares [][]Queue, needs Needs) ([]int32, error) {
	index := make(map[Queue]int, len(in.Queues))
	for i, q := range in.Queues {
		index[q] = i
	}
	owner := make([]int32, len(in.Queues))
	for i := range owner {
		owner[i] = NotComputed
	}
	for k, member := range asked {
		if err := claim(in, owner, index, member, shares[k]); err != nil {
			return nil, err
		}
	}
	if len(asked) < len(in.Members) {
		return owner, nil
	}
	for i, o := range owner {
		if o == NotComputed {
			owner[i] = Uncovered
		}
	}
	return owner, Check(in, owner, needs)
}

func claim(in Input, owner []int32, index map[Queue]int, member int, share []Queue) error {
	id := in.Members[member].ClientID
	for _, q := range share {
		i, known := index[q]
		switch {
		case !known:
			return &InvalidError{Rule: RuleForeignQueue, Queue: q, Members: []string{id}}
		case owner[i] == asOwner(member):
			return &InvalidError{Rule: RuleRepeated, Queue: q, Members: []string{id}}
		case owner[i] >= 0:
			return &InvalidError{Rule: RuleTwoOwners, Queue: q, Members: []string{in.Members[owner[i]].ClientID, id}}
		}
		owner[i] = asOwner(member)
	}
	return nil
}
