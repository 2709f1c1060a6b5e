package grouprelease

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

// Place is a queue as an operator names it: without its topic.
type Place struct {
	Broker string // broker name, not an address
	ID     int32
}

// String is BROKER/ID.
func (p Place) String() string { return fmt.Sprintf("%s/%d", p.Broker, p.ID) }

// ParsePlace reads BROKER/ID.
func ParsePlace(s string) (Place, error) {
	broker, number, ok := strings.Cut(s, "/")
	id, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || id < 0 || broker == "" {
		return Place{}, fmt.Errorf("%q is no queue; write BROKER/ID, such as broker-a/3", s)
	}
	return Place{broker, int32(id)}, nil
}

// Held is a queue that waits for a position.
type Held struct {
	Queue sdk.Queue
	Owner string // client id of the member that holds it
	Hold  string // kind of the hold
}

// UnseenError says that queues may be held that are not chosen, because a part of the group could not be seen.
type UnseenError struct {
	Group  string
	Gaps   []groupview.Gap
	Chosen int // how many queues were
}

// Error says what could not be seen. Why is in the notes of the group.
func (e *UnseenError) Error() string {
	var what []string
	for _, g := range e.Gaps {
		what = append(what, g.What)
	}
	text := "whether a queue of group %s is held for want of a position is not known: %s could not be seen"
	if e.Chosen > 0 {
		text = "whether another queue of group %s is held for want of a position is not known: %s could not be seen"
	}
	return fmt.Sprintf(text, e.Group, strings.Join(what, ", "))
}

// Unwrap gives the reasons.
func (e *UnseenError) Unwrap() []error {
	var errs []error
	for _, g := range e.Gaps {
		errs = append(errs, g.Err)
	}
	return errs
}

// Unseen tells whether chosen may lack queues of a group, or of a topic of it, that are held: an *UnseenError, or nil.
func Unseen(g *groupview.Group, topic string, chosen []Held) error {
	gaps := slices.DeleteFunc(slices.Clone(g.Gaps), func(gap groupview.Gap) bool { return topic != "" && gap.Topic != "" && gap.Topic != topic })
	if len(gaps) == 0 {
		return nil
	}
	return &UnseenError{g.Group, gaps, len(chosen)}
}

// Choose picks the queues of a group that are held for want of a position: all, those of a topic, or those at places. None
// at all is no error unless a topic or a place was named; what is named and not held so is an error that says what it is
// instead. So is a broadcasting group, whose offsets no broker stores. What could not be seen is not taken for not held: it
// is an error where it was named, and Unseen tells of it elsewhere.
func Choose(g *groupview.Group, topic string, places []Place) ([]Held, error) {
	if g.Model == "BROADCASTING" {
		return nil, fmt.Errorf("group %s is broadcasting: each member keeps its own offsets in a file, and none of a broker's is taken; see docs/broadcasting.md", g.Group)
	}
	queues := slices.DeleteFunc(slices.Clone(g.Queues), func(q groupview.Queue) bool { return topic != "" && q.Topic != topic })
	unseen := Unseen(g, topic, nil)
	if topic != "" && len(queues) == 0 {
		if unseen != nil {
			return nil, unseen
		}
		return nil, fmt.Errorf("group %s has no topic %s", g.Group, topic)
	}
	if len(places) > 0 {
		return named(g.Group, queues, places, unseen)
	}
	held := heldOf(queues)
	if topic != "" && len(held) == 0 && unseen == nil {
		return nil, fmt.Errorf("no queue of topic %s is held for want of a position: %s", topic, tally(queues))
	}
	return held, nil
}

// named picks the queues at places; unseen is why one may not be found.
func named(group string, queues []groupview.Queue, places []Place, unseen error) ([]Held, error) {
	var (
		chosen []Held
		errs   []error
		blind  bool
	)
	for i, p := range places {
		if slices.Contains(places[:i], p) {
			continue
		}
		there := slices.DeleteFunc(slices.Clone(queues), func(q groupview.Queue) bool { return q.Broker != p.Broker || q.ID != p.ID })
		held := heldOf(there)
		switch {
		case len(there) == 0 && unseen != nil || slices.ContainsFunc(there, unknown) && len(held) == 0:
			errs, blind = append(errs, fmt.Errorf("whether queue %s is held for want of a position is not known", p)), true
		case len(there) == 0:
			errs = append(errs, fmt.Errorf("group %s has no queue %s", group, p))
		case len(held) == 0:
			for _, q := range there {
				errs = append(errs, fmt.Errorf("queue %s is not held for want of a position: it is %s%s", queueOf(&q), state(&q), why(&q)))
			}
		case len(held) > 1:
			errs = append(errs, fmt.Errorf("queue %s is held in more than one topic, %s and %s: name one with --topic", p, held[0].Queue.Topic, held[1].Queue.Topic))
		default:
			chosen = append(chosen, held[0])
		}
	}
	if blind {
		errs = append(errs, unseen)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return chosen, nil
}

// unknown tells that nobody who was heard owns a queue, and not everybody was heard.
func unknown(q groupview.Queue) bool { return q.State == groupview.StateUnknown }

func heldOf(queues []groupview.Queue) []Held {
	var held []Held
	for i := range queues {
		if q := &queues[i]; q.State == groupview.StateHeld && wants(runtime.HoldKind(q.Hold)) {
			held = append(held, Held{queueOf(q), q.Owners[0], q.Hold})
		}
	}
	return held
}

// wants tells that a hold ends with a position that the operator chooses.
func wants(kind runtime.HoldKind) bool {
	return kind == runtime.HoldOffsetsLost || kind == runtime.HoldOutOfRange
}

func queueOf(q *groupview.Queue) sdk.Queue {
	return sdk.Queue{Topic: q.Topic, Broker: q.Broker, ID: q.ID}
}

// state is a queue's state in a sentence.
func state(q *groupview.Queue) string {
	if q.State == groupview.StateHeld && q.Hold != "" {
		return "held for " + q.Hold
	}
	return q.State
}

func why(q *groupview.Queue) string {
	if q.Why == "" {
		return ""
	}
	return " (" + q.Why + ")"
}

// tally counts queues by state.
func tally(queues []groupview.Queue) string {
	counts := map[string]int{}
	for i := range queues {
		counts[state(&queues[i])]++
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
	}
	return strings.Join(parts, ", ")
}
