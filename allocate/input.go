package allocate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnusableView means that a member cannot tell what belongs to it: there is no member list, its own id is missing in
// it or stands there twice, or there are no queues. Nothing was asked and the strategy is not to blame.
// (RocketMQ's own strategies give up every queue when the own id is missing; consumer-semantics.md 2.2, 2.12 D2.1.)
var ErrUnusableView = errors.New("unusable view of the group")

// View is what a member sees of a topic and its group, as it came from the brokers: in any order.
type View struct {
	Group, Topic string
	Self         string   // own client id
	Queues       []Queue  // readable queues of the topic; empty = unknown
	Members      []string // client ids as a broker lists them; empty = unknown
	// Previous tells who owned a queue before, by client id. Nil = unknown. Only a strategy that needs it gets it.
	Previous map[Queue]string
}

// NewInput makes the question of a view: sorted queues, sorted members without repeats. A member other than self that
// is listed twice counts once. The error is, or wraps, ErrUnusableView.
func NewInput(v View) (Input, error) {
	if len(v.Queues) == 0 {
		return Input{}, fmt.Errorf("%w: no queues of topic %s are known", ErrUnusableView, v.Topic)
	}
	if len(v.Members) == 0 {
		return Input{}, fmt.Errorf("%w: no members of group %s are known", ErrUnusableView, v.Group)
	}
	if err := checkSelf(v); err != nil {
		return Input{}, err
	}
	in := Input{Group: v.Group, Topic: v.Topic, Queues: slices.Clone(v.Queues)}
	slices.SortFunc(in.Queues, Queue.Compare)
	in.Queues = slices.Compact(in.Queues)
	for _, q := range in.Queues {
		if q.Topic != v.Topic {
			return Input{}, fmt.Errorf("%w: queue %s does not belong to topic %s", ErrUnusableView, q, v.Topic)
		}
	}
	ids := slices.Clone(v.Members)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	in.Members = make([]Member, len(ids))
	for i, id := range ids {
		in.Members[i] = ParseMember(id)
	}
	in.Self, _ = slices.BinarySearch(ids, v.Self)
	in.Previous = previousOwners(v, in.Queues, ids)
	return in, nil
}

func checkSelf(v View) error {
	count := 0
	for _, id := range v.Members {
		if id == v.Self {
			count++
		}
	}
	switch {
	case v.Self == "":
		return fmt.Errorf("%w: own client id is empty", ErrUnusableView)
	case count == 0:
		return fmt.Errorf("%w: own id %s is not among the %d members of group %s that the broker lists; it appears with the next heartbeat, "+
			"if it stays missing check that this member can reach every broker of topic %s", ErrUnusableView, v.Self, len(v.Members), v.Group, v.Topic)
	case count > 1:
		return fmt.Errorf("%w: own id %s stands %d times among the members of group %s: another process uses the same id; "+
			"restart one of them, and give members that share an address unlike names", ErrUnusableView, v.Self, count, v.Group)
	}
	return nil
}

func previousOwners(v View, queues []Queue, ids []string) []int32 {
	if v.Previous == nil {
		return nil
	}
	owners := make([]int32, len(queues))
	for i, q := range queues {
		owners[i] = Uncovered
		if at, found := slices.BinarySearch(ids, v.Previous[q]); found {
			owners[i] = asOwner(at)
		}
	}
	return owners
}

// CheckInput tells whether in is what a strategy may expect: queues and members sorted, unique, not empty, Self in
// range, Previous nil or one entry a queue. NewInput makes such inputs; this is for inputs from elsewhere (a file).
func CheckInput(in Input) error {
	switch {
	case len(in.Queues) == 0:
		return errors.New("input has no queues")
	case len(in.Members) == 0:
		return errors.New("input has no members")
	case in.Self < 0 || in.Self >= len(in.Members):
		return fmt.Errorf("input's self is %d: it must be an index into its %d members", in.Self, len(in.Members))
	case in.Previous != nil && len(in.Previous) != len(in.Queues):
		return fmt.Errorf("input has %d previous owners for %d queues", len(in.Previous), len(in.Queues))
	}
	for i := 1; i < len(in.Queues); i++ {
		if in.Queues[i-1].Compare(in.Queues[i]) >= 0 {
			return fmt.Errorf("input's queues are not sorted and unique: %s stands before %s", in.Queues[i-1], in.Queues[i])
		}
	}
	for i := 1; i < len(in.Members); i++ {
		if strings.Compare(in.Members[i-1].ClientID, in.Members[i].ClientID) >= 0 {
			return fmt.Errorf("input's members are not sorted and unique: %s stands before %s", in.Members[i-1].ClientID, in.Members[i].ClientID)
		}
	}
	return nil
}
