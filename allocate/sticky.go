package allocate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// AttributeWeight is the attribute of a client id (…@weight=2) that says how many shares a member takes; 1 without it,
// 0 = none, at most MaxWeight.
const AttributeWeight = "weight"

// MaxWeight bounds AttributeWeight.
const MaxWeight = 1_000

// NewSticky makes sticky: bounded rendezvous hashing. It needs no shared state and no memory: what stays where it was
// follows from the hash alone.
//
// Promises: with equal weights members differ by at most one queue; when a member joins or leaves, few queues move
// besides those that have to (TestStickyMovement holds the figures). Who gets one queue more differs from topic to
// topic, so many small topics do not all land on the first member (consumer-semantics.md 2.12 D2.5).
//
// How: every (queue, member) has a score from a hash. Each member has a fixed number of seats: its exact share rounded
// down, and the seats left over go to the largest remainders, ties by hash. The best score of all takes its seat, then
// the next best of a queue and a member that are both free, and so on. That is the one stable matching: no queue and
// member prefer each other to what they got (Gale and Shapley), so a change displaces only along chains of better
// scores. Integers only: the same on every architecture.
func NewSticky(NoConfig) (Strategy, error) {
	return &builtin{name: NameSticky, needs: Needs{Attributes: []string{AttributeWeight}}, allocate: sticky}, nil
}

func sticky(in Input) ([]int32, error) {
	weights, err := weightsOf(in.Members)
	if err != nil {
		return nil, err
	}
	m := newMatching(in, seatsOf(in, weights))
	m.run()
	return m.owner, nil
}

func weightsOf(members []Member) ([]int, error) {
	weights := make([]int, len(members))
	total := 0
	for i, m := range members {
		weights[i] = 1
		if text, ok := m.Attributes[AttributeWeight]; ok {
			w, err := strconv.Atoi(text)
			if err != nil || w < 0 || w > MaxWeight {
				return nil, fmt.Errorf("strategy sticky: weight of member %s is %q: it has to be a whole number from 0 to %d", m.ClientID, text, MaxWeight)
			}
			weights[i] = w
		}
		total += weights[i]
	}
	if total == 0 {
		return nil, fmt.Errorf("strategy sticky: all %d members have weight 0: nobody would read", len(members))
	}
	return weights, nil
}

// seatsOf says how many queues each member gets: together exactly len(in.Queues).
func seatsOf(in Input, weights []int) []int {
	total := 0
	for _, w := range weights {
		total += w
	}
	type claim struct {
		member, remainder int
		tie               uint64
	}
	seats := make([]int, len(weights))
	claims := make([]claim, 0, len(weights))
	left := len(in.Queues)
	seed := hashOf(in.Group, in.Topic)
	for i, w := range weights {
		seats[i] = len(in.Queues) * w / total
		left -= seats[i]
		if w > 0 {
			claims = append(claims, claim{i, len(in.Queues) * w % total, mix(seed ^ hashOf(in.Members[i].ClientID))})
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(b.tie, a.tie), cmp.Compare(a.member, b.member))
	})
	for _, c := range claims[:left] {
		seats[c.member]++
	}
	return seats
}
