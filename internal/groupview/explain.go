package groupview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk"
)

// explain gives each queue its state, and a reason where it does not move.
func (r *reader) explain() {
	silent := 0
	for _, m := range r.out.Members {
		if m.Silent != "" {
			silent++
		}
	}
	for _, q := range slices.SortedFunc(maps.Keys(r.queues), sdk.Queue.Compare) {
		v := r.queues[q]
		v.State, v.Why = r.state(v, silent)
		r.out.Queues = append(r.out.Queues, *v)
	}
	if silent > 0 {
		r.note("%d of %d members did not tell what they own (307): owners and in flight are incomplete", silent, len(r.out.Members))
	}
}

func (r *reader) state(v *Queue, silent int) (state, why string) {
	switch {
	case len(v.Owners) > 1 && r.out.Model != modelBroadcasting:
		return StateOverlap, "members " + strings.Join(v.Owners, " and ") + " both say they own it: messages may be handled twice"
	case len(v.Owners) > 0:
		return r.ownedState(v)
	case len(r.out.Members) == 0 && r.asked:
		return StateUnowned, "no member of the group is online"
	case silent > 0 || !r.asked:
		return StateUnknown, "a member or broker that did not answer may own it"
	}
	for i := range r.out.Members {
		m := &r.out.Members[i]
		if pq := m.queue(sdk.Queue{Topic: v.Topic, Broker: v.Broker, ID: v.ID}); pq != nil && pq.State == stateWaiting {
			return StateUnowned, "member " + m.ClientID + " takes it over: " + m.holdOf(sdk.Queue{Topic: v.Topic, Broker: v.Broker, ID: v.ID})
		}
	}
	return StateUnowned, "no member has it: a rebalance is under way, or the strategy leaves it uncovered"
}

const (
	modelBroadcasting = "BROADCASTING"
	stateWaiting      = "waiting" // of a queue in runtime.PeerQueue
)

// stallAfter is how old an unhandled message must be, with its owner doing nothing, to be called held. Java clients look
// at a queue every 30 s at the latest (long poll 20 s and the pull's own time-out).
const stallAfter = 30 * time.Second

func (r *reader) ownedState(v *Queue) (state, why string) {
	q := sdk.Queue{Topic: v.Topic, Broker: v.Broker, ID: v.ID}
	for i := range r.out.Members {
		m := &r.out.Members[i]
		if !slices.Contains(v.Owners, m.ClientID) {
			continue
		}
		pq := m.queue(q)
		if pq != nil && pq.State == StateDraining {
			return StateDraining, "its owner gives it up and waits for what is in flight"
		}
		if pq != nil && pq.Hold != nil {
			v.Hold = string(pq.Hold.Kind)
		}
		if hold := m.holdOf(q); hold != "" {
			return StateHeld, hold
		}
	}
	switch {
	case v.Lag == 0 && v.InFlight <= 0:
		return StateIdle, ""
	case v.InFlight > 0 && v.OldestAge > stallAfter && v.Committed >= 0:
		return StateActive, fmt.Sprintf("the message at offset %d is unhandled for %s", v.Committed, v.OldestAge.Round(time.Second))
	case v.InFlight == 0 && v.Lag > 0 && v.OldestAge > stallAfter:
		return StateHeld, "its owner pulls nothing; look at the owner's log"
	}
	return StateActive, ""
}
