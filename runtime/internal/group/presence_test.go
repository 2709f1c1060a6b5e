package group

import (
	"testing"
	"time"
)

// desk drives a Presence second by second.
type desk struct {
	p    *Presence
	now  time.Time
	rule PresenceRule
}

func newDesk() *desk {
	return &desk{p: &Presence{}, now: time.Unix(1000, 0), rule: PresenceRule{Hold: time.Minute}}
}

// until passes time with the same facts and returns the first move, and how long it took; MoveNone when there was none.
func (d *desk) until(limit time.Duration, f PresenceFacts) (Move, time.Duration) {
	for start := d.now; d.now.Sub(start) <= limit; d.now = d.now.Add(time.Second) {
		if m := d.p.Step(d.now, d.rule, f); m != MoveNone {
			return m, d.now.Sub(start)
		}
	}
	return MoveNone, 0
}

func (d *desk) want(t *testing.T, what string, f PresenceFacts, wanted Move, after time.Duration) {
	t.Helper()
	if got, took := d.until(2*time.Hour, f); got != wanted || took != after {
		t.Errorf("%s: move %d after %s, want %d after %s", what, got, took, wanted, after)
	}
}

func (d *desk) none(t *testing.T, what string, limit time.Duration, f PresenceFacts) {
	t.Helper()
	if got, took := d.until(limit, f); got != MoveNone {
		t.Errorf("%s: move %d after %s, want none", what, got, took)
	}
}

var (
	up    = PresenceFacts{Up: true, Members: 2}
	down  = PresenceFacts{Members: 2}
	alone = PresenceFacts{Members: 1}
)

func TestMemberLeavesAfterTheHoldAndReturnsWhenTheHandlerIsSteady(t *testing.T) {
	d := newDesk()
	d.none(t, "well", time.Hour, up)
	d.want(t, "down", down, MoveLeave, time.Minute)
	d.none(t, "still down", time.Hour, down)
	d.none(t, "up for a moment", 10*time.Second, up)
	d.none(t, "down again", time.Second, down)
	d.want(t, "steady", up, MoveReturn, 15*time.Second)
	d.none(t, "back", time.Minute, up)
}

// A process that dies on each message answers between its deaths: that does not end a down.
func TestShortUpsDoNotEndADown(t *testing.T) {
	d := newDesk()
	for range 9 { // of 6 s each
		d.none(t, "down", 2*time.Second, down)
		d.none(t, "up between two deaths", 2*time.Second, up)
	}
	d.want(t, "down", down, MoveLeave, 6*time.Second)
	d = newDesk()
	for range 11 {
		d.none(t, "down", 2*time.Second, down)
		d.none(t, "up long enough to count", 16*time.Second, up)
	}
}

func TestEachLeaveMakesTheReturnSlower(t *testing.T) {
	d := newDesk()
	for _, wait := range []int{15, 30, 60, 120, 240, 480, 600, 600} {
		d.want(t, "down", down, MoveLeave, time.Minute)
		d.now = d.now.Add(time.Second)
		d.want(t, "up", up, MoveReturn, time.Duration(wait)*time.Second)
		d.now = d.now.Add(time.Second)
	}
	d.none(t, "a long time without a leave", mostAway, up)
	d.want(t, "down", down, MoveLeave, time.Minute)
	d.want(t, "up", up, MoveReturn, 15*time.Second)
}

func TestTheLastMemberStays(t *testing.T) {
	d := newDesk()
	d.none(t, "nobody else", time.Hour, alone)
	d.want(t, "another came", down, MoveLeave, 0)
}

func TestMembersDoNotLeaveTogether(t *testing.T) {
	d := newDesk()
	d.want(t, "the second of two", PresenceFacts{Members: 2, Before: 1}, MoveLeave, 75*time.Second)
	d = newDesk()
	d.want(t, "the last of four", PresenceFacts{Members: 4, Before: 3}, MoveLeave, 83*time.Second)
}

func TestStayIsObeyedAtOnce(t *testing.T) {
	d := newDesk()
	d.rule.Stay = true
	d.none(t, "told to stay", time.Hour, down)
	d.rule.Stay = false
	d.want(t, "told that it may leave", down, MoveLeave, 0)
	d.rule.Stay = true
	d.want(t, "told to stay while it is away", down, MoveReturn, 0)
}
