package group

import (
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

func q(id int32) sdk.Queue { return sdk.Queue{Topic: "T", Broker: "b", ID: id} }

type rig struct {
	c   *Core
	now time.Time
}

func newRig() *rig {
	now := time.Unix(1000, 0)
	return &rig{c: NewCore(now, func() float64 { return 0.5 }, 0), now: now}
}

func (r *rig) step(in Input) (kinds []ActionKind) {
	for _, a := range r.c.Step(r.now, in) {
		kinds = append(kinds, a.Kind)
	}
	return kinds
}

func (r *rig) pass(d time.Duration) *rig {
	r.now = r.now.Add(d)
	return r
}

func known(ids ...int32) Input {
	t := Topic{Name: "T", Known: true}
	for _, id := range ids {
		t.Mine = append(t.Mine, q(id))
	}
	return Input{Kind: InRound, Topics: []Topic{t}}
}

func (r *rig) states() (s []State) {
	for _, e := range r.c.Queues() {
		s = append(s, e.State)
	}
	return s
}

func want(t *testing.T, what string, got, wanted []ActionKind) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: actions %v, want %v", what, got, wanted)
	}
}

func TestOneQueueFromAbsentToReleased(t *testing.T) {
	r := newRig()
	want(t, "start", r.step(Input{}), []ActionKind{ActRound})
	want(t, "round", r.step(known(0)), []ActionKind{ActAskPeers})
	want(t, "nobody has it", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
	first := r.c.Queues()[0].Epoch
	want(t, "a round that changes nothing", r.step(known(0)), nil)
	want(t, "not mine any more", r.step(known()), []ActionKind{ActDrain})
	want(t, "mine again while it drains", r.step(known(0)), nil)
	if got := r.states(); !slices.Equal(got, []State{Draining}) {
		t.Errorf("states %v", got)
	}
	want(t, "released", r.step(Input{Kind: InReleased, Queue: q(0)}), []ActionKind{ActAskPeers})
	want(t, "taken again", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
	if again := r.c.Queues()[0].Epoch; again <= first {
		t.Errorf("epoch %d after %d", again, first)
	}
}

func TestUnknownTopicKeepsItsQueues(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0, 1))
	r.step(Input{Kind: InPeers})
	unknown := Input{Kind: InRound, Topics: []Topic{{Name: "T", Hold: queue.Hold{Kind: queue.HoldMembersUnknown}}}}
	want(t, "nothing is known", r.step(unknown), nil)
	if got := r.states(); !slices.Equal(got, []State{Owned, Owned}) || r.c.Holds()["T"].Kind != queue.HoldMembersUnknown {
		t.Errorf("states %v, holds %v", got, r.c.Holds())
	}
	if next := r.c.Next(); next.Sub(r.now) > UnbalancedAfter {
		t.Errorf("asked again only in %s", next.Sub(r.now))
	}
	want(t, "topic no longer subscribed", r.step(Input{Kind: InRound}), []ActionKind{ActDrain, ActDrain})
}

func TestHandOverWaitsAndGivesUpWaiting(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0))
	held := Input{Kind: InPeers, Holders: map[sdk.Queue]string{q(0): "other"}}
	for range 99 {
		want(t, "held", r.step(held), nil)
		want(t, "asked again", r.pass(askAgain).step(Input{}), []ActionKind{ActAskPeers})
	}
	want(t, "the limit", r.pass(askAgain).step(held), []ActionKind{ActAcquire})
	if got := r.c.Counters().Overlaps; got != 1 {
		t.Errorf("%d overlaps, want 1", got)
	}
}

func TestNotifyAtOnceThenCoalesced(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known())
	r.pass(time.Second)
	want(t, "the first", r.step(Input{Kind: InNotify}), []ActionKind{ActCommit, ActRound})
	r.step(known())
	rounds := 0
	for range 100 {
		r.pass(10 * time.Millisecond)
		for _, k := range r.step(Input{Kind: InNotify}) {
			if k == ActRound {
				rounds++
				r.step(known())
			}
		}
	}
	if rounds < 2 || rounds > 6 {
		t.Errorf("%d rounds for 100 notifies in a second", rounds)
	}
	want(t, "the timer", r.pass(Period+time.Second).step(Input{}), []ActionKind{ActRound})
}

func TestStopDrainsEverythingAndStartsNothing(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0, 1))
	r.step(Input{Kind: InPeers})
	want(t, "stop", r.step(Input{Kind: InStop}), []ActionKind{ActDrain, ActDrain})
	want(t, "a late round", r.step(known(0, 1, 2)), nil)
	r.step(Input{Kind: InReleased, Queue: q(0)})
	if r.c.Empty() {
		t.Error("empty while a queue drains")
	}
	want(t, "the last", r.step(Input{Kind: InReleased, Queue: q(1)}), nil)
	want(t, "time passes", r.pass(time.Hour).step(Input{}), nil)
	if !r.c.Empty() {
		t.Errorf("left: %v", r.c.Queues())
	}
}

// A part of a round decides its topics and leaves the others as they are; a round that is due meanwhile is told once.
func TestPartOfARound(t *testing.T) {
	other := sdk.Queue{Topic: "U", Broker: "b"}
	both := func(mine ...sdk.Queue) Input {
		return Input{Kind: InRound, Topics: []Topic{{Name: "T", Known: true, Mine: []sdk.Queue{q(0)}}, {Name: "U", Known: true, Mine: mine}}}
	}
	r := newRig()
	r.step(Input{})
	r.step(both(other))
	r.step(Input{Kind: InPeers})
	want(t, "next round", r.pass(Period).step(Input{}), []ActionKind{ActRound})
	part := Input{Kind: InPart, Topics: []Topic{{Name: "T", Known: true, Mine: []sdk.Queue{q(0), q(1)}}}}
	want(t, "part", r.step(part), []ActionKind{ActAskPeers})
	want(t, "nobody has it", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
	if got := r.states(); !slices.Equal(got, []State{Owned, Owned, Owned}) {
		t.Errorf("states %v", got)
	}
	want(t, "members changed", r.step(Input{Kind: InNotify}), []ActionKind{ActCommit})
	if next := r.c.Next(); next.Sub(r.now) > coalesceMost {
		t.Errorf("the next step is in %v", next.Sub(r.now))
	}
	want(t, "a round is due", r.pass(coalesceMost).step(Input{}), []ActionKind{ActHurry})
	want(t, "still", r.pass(time.Second).step(Input{}), nil)
	end := both()
	end.Topics[0].Mine = part.Topics[0].Mine
	want(t, "end of the round", r.step(end), []ActionKind{ActDrain, ActRound})
}

func TestPartWithAHoldKeepsItsTopic(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0))
	r.step(Input{Kind: InPeers})
	r.pass(Period).step(Input{})
	held := Topic{Name: "T", Hold: queue.Hold{Kind: queue.HoldMembersUnknown, Text: "silent"}}
	want(t, "held part", r.step(Input{Kind: InPart, Topics: []Topic{held}}), nil)
	if got := r.c.Holds()["T"]; got.Text != "silent" {
		t.Errorf("hold %+v", got)
	}
	want(t, "told after all", r.step(Input{Kind: InPart, Topics: []Topic{{Name: "T", Known: true, Mine: []sdk.Queue{q(0)}}}}), nil)
	if got := r.c.Holds(); len(got) != 0 {
		t.Errorf("holds %+v", got)
	}
	r.step(Input{Kind: InStop})
	want(t, "after the stop", r.step(Input{Kind: InPart, Topics: []Topic{{Name: "T", Known: true, Mine: []sdk.Queue{q(3)}}}}), nil)
}

func TestLeaveGivesUpEverythingAndReturnBeginsAnew(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0, 1))
	r.step(Input{Kind: InPeers})
	first := r.c.Epoch()
	want(t, "leave", r.step(Input{Kind: InLeave}), []ActionKind{ActDrain, ActDrain})
	want(t, "notified while it leaves", r.step(Input{Kind: InNotify}), nil)
	r.step(Input{Kind: InReleased, Queue: q(0)})
	r.step(Input{Kind: InReleased, Queue: q(1)})
	if !r.c.Empty() || !r.c.Next().IsZero() {
		t.Errorf("queues %v, next step at %s: a member that is away has nothing to do", r.c.Queues(), r.c.Next())
	}
	want(t, "an hour away", r.pass(time.Hour).step(Input{}), nil)
	want(t, "return", r.step(Input{Kind: InReturn}), []ActionKind{ActRound})
	want(t, "round", r.step(known(1)), []ActionKind{ActAskPeers})
	want(t, "nobody has it", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
	if r.c.Epoch() <= first {
		t.Errorf("epoch %d after %d", r.c.Epoch(), first)
	}
}

// What was asked before a leave says nothing about the time after the return.
func TestAnswersFromBeforeALeaveAreNotBelieved(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(known(0))
	r.pass(Period).step(Input{}) // a round is under way, and so is the question to the others
	r.step(Input{Kind: InLeave})
	want(t, "return", r.step(Input{Kind: InReturn}), []ActionKind{ActHurry})
	want(t, "a part of the old round", r.step(Input{Kind: InPart, Topics: known(0).Topics}), nil)
	want(t, "the old round", r.step(known(0)), []ActionKind{ActRound})
	want(t, "the new round", r.step(known(0)), nil)
	want(t, "the old question's answer", r.step(Input{Kind: InPeers}), []ActionKind{ActAskPeers})
	want(t, "the new question's answer", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
}

func TestAnswersThatCameDuringTheLeaveAreForgotten(t *testing.T) {
	r := newRig()
	r.step(Input{})
	r.step(Input{Kind: InLeave})
	r.step(known(0))
	want(t, "return", r.step(Input{Kind: InReturn}), []ActionKind{ActRound})
	want(t, "the first round after it counts", r.step(known(0)), []ActionKind{ActAskPeers})
}

// What the others answered is about the queues that they were asked for: one that came to be waited for meanwhile, from
// another part of the round, is not free because they said nothing of it.
func TestAnswersAreAboutWhatWasAsked(t *testing.T) {
	r := newRig()
	r.step(Input{})
	other := sdk.Queue{Topic: "U", Broker: "b"}
	want(t, "one topic", r.step(Input{Kind: InPart, Topics: known(0).Topics}), []ActionKind{ActAskPeers})
	want(t, "another, while they are asked", r.step(Input{Kind: InPart, Topics: []Topic{{Name: "U", Known: true, Mine: []sdk.Queue{other}}}}), nil)
	want(t, "the first is free, and at once the next question", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire, ActAskPeers})
	if got := r.states(); !slices.Equal(got, []State{Owned, Waiting}) {
		t.Errorf("states %v", got)
	}
	want(t, "the second is held", r.step(Input{Kind: InPeers, Holders: map[sdk.Queue]string{other: "c2"}}), nil)
	want(t, "and asked for again", r.pass(askAgain).step(Input{}), []ActionKind{ActAskPeers})
	want(t, "it is free", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
}

// A queue that was given up and is wanted again while the others are asked is another matter than the one they were asked for.
func TestAnswersAreNotAboutAQueueWantedAgain(t *testing.T) {
	r := newRig()
	r.step(Input{})
	want(t, "wanted", r.step(known(0)), []ActionKind{ActAskPeers})
	r.pass(Period).step(Input{})
	r.step(known())
	r.pass(Period).step(Input{})
	want(t, "wanted again", r.step(known(0)), nil)
	want(t, "an answer to the first question", r.step(Input{Kind: InPeers}), []ActionKind{ActAskPeers})
	want(t, "an answer to the second", r.step(Input{Kind: InPeers}), []ActionKind{ActAcquire})
}
