package group

import "time"

// PresenceRule is what handler_down says.
type PresenceRule struct {
	Hold time.Duration // how long the handler has to be down before its member leaves; more than 0
	Stay bool          // the member never leaves; one that has left returns
}

// steady is how long a handler has to answer without a break to count as up again, and before the first return.
func (r PresenceRule) steady() time.Duration { return min(r.Hold/4, mostSteady) }

// Every is how often Presence wants to be asked.
func (r PresenceRule) Every() time.Duration { return max(leastLook, min(r.Hold/8, mostLook)) }

const (
	mostSteady = 15 * time.Second
	mostAway   = 10 * time.Minute
	leastLook  = 20 * time.Millisecond
	mostLook   = time.Second
)

// PresenceFacts are what Presence decides by.
type PresenceFacts struct {
	Up bool // a process answers for the handler, and is not known to be broken
	// Members is how many members the group is known to have. To the last one holding is as good as leaving: nobody would
	// take the queues.
	Members int
	// Before is how many of them come before this one in the order of their ids, in which they leave: so that the last one
	// of those whose handlers went down together sees that it is the last.
	Before int
}

// patience is how long a member holds its queues.
func (f PresenceFacts) patience(rule PresenceRule) time.Duration {
	return rule.Hold + rule.Hold/2*time.Duration(f.Before)/time.Duration(max(1, f.Members))
}

// Move is what a member does about its membership.
type Move uint8

// The moves.
const (
	MoveNone Move = iota
	MoveLeave
	MoveReturn
)

// Presence decides whether a member stays in its group while its handler is down (design.md 10): after Hold the queues go to
// members whose handlers may be well. It returns when the handler has answered for a while, longer after each time, so that
// a handler that only looks well until it gets messages does not make the queues wander. Pure; not safe for concurrent use.
// The zero Presence is that of a member that has joined.
type Presence struct {
	away   bool
	leaves int       // since the last long time without one
	since  time.Time // of being down, short ups included; zero: it is not
	up     time.Time // since when the handler answers without a break; zero: it does not
}

// Step takes the facts of a moment and returns what to do about it.
func (p *Presence) Step(now time.Time, rule PresenceRule, f PresenceFacts) Move {
	p.note(now, rule, f.Up)
	if p.away {
		if rule.Stay || p.steadyFor(now) >= p.Wait(rule) {
			p.away, p.since = false, time.Time{}
			return MoveReturn
		}
		return MoveNone
	}
	if !rule.Stay && !f.Up && f.Members > 1 && now.Sub(p.since) >= f.patience(rule) {
		p.away = true
		p.leaves++
		return MoveLeave
	}
	return MoveNone
}

// note keeps the times of being up and down. A short up does not end a down: a process that dies on each message comes up
// between its deaths.
func (p *Presence) note(now time.Time, rule PresenceRule, up bool) {
	if !up {
		p.up = time.Time{}
		if p.since.IsZero() {
			p.since = now
		}
		return
	}
	if p.up.IsZero() {
		p.up = now
	}
	steady := p.steadyFor(now)
	if steady >= rule.steady() {
		p.since = time.Time{}
	}
	if !p.away && steady >= mostAway {
		p.leaves = 0
	}
}

func (p *Presence) steadyFor(now time.Time) time.Duration {
	if p.up.IsZero() {
		return -1
	}
	return now.Sub(p.up)
}

// Wait is how long the handler of a member that is away has to answer before it returns.
func (p *Presence) Wait(rule PresenceRule) time.Duration {
	d := rule.steady()
	for i := 1; i < p.leaves && d < mostAway; i++ {
		d *= 2
	}
	return min(d, mostAway)
}

// Down is since when the handler has been down, short ups included; zero when it is not.
func (p *Presence) Down() time.Time { return p.since }
