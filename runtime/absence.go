package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime/internal/group"
)

// HandlerDown is what becomes of a member's share while its handler is down (design.md 10).
type HandlerDown struct {
	// Hold is how long the queues wait for the handler before the member leaves its group; 0 = 60 s.
	Hold time.Duration
	// Stay keeps the member in its group, however long that lasts.
	Stay bool
}

// absence has a member leave its group while its handler is down, and join it again, as group.Presence decides. It belongs
// to the member's loop; only its calls run beside it, one at a time.
type absence struct {
	m        *member
	presence *group.Presence
	phase    absencePhase
	next     time.Time  // of the next look; zero: at once
	calls    chan error // the end of the call under way; has room for it
	failures int
}

type absencePhase uint8

const (
	present  absencePhase = iota
	draining              // the queues are given up
	leaving               // the brokers are told
	away
	joining
)

func newAbsence(m *member) *absence {
	return &absence{m: m, presence: &group.Presence{}, calls: make(chan error, 1)}
}

func (a *absence) rule() group.PresenceRule {
	c := a.m.s.config()
	return group.PresenceRule{Hold: c.HandlerDown.Hold, Stay: c.HandlerDown.Stay}
}

func (a *absence) facts() group.PresenceFacts {
	d, self := a.m.s.sink.status(), a.m.s.broker.ClientID()
	a.m.mu.Lock()
	members := a.m.members()
	a.m.mu.Unlock()
	before, _ := slices.BinarySearch(members, self)
	return group.PresenceFacts{Up: d.Lanes > 0 && d.Hold.Kind != HoldPluginBroken, Members: len(members), Before: before}
}

// look is called in each turn of the member's loop and returns what the group's core is to be told, if anything. A member
// that stops looks no more.
func (a *absence) look(ctx context.Context) group.Input {
	now := a.m.s.rt.Now()
	switch a.phase {
	case draining:
		if a.m.core.Empty() {
			a.phase = leaving
			a.call(func() error { return a.m.tellLeave(ctx) })
		}
		return group.Input{}
	case leaving, joining:
		return group.Input{}
	case present, away:
	}
	if now.Before(a.next) {
		return group.Input{}
	}
	rule := a.rule()
	a.next = now.Add(rule.Every())
	if a.failures > 0 { // it was to return, and could not yet
		a.join(ctx)
		return group.Input{}
	}
	switch a.presence.Step(now, rule, a.facts()) {
	case group.MoveLeave:
		return a.leave(now)
	case group.MoveReturn:
		a.m.s.log.Info("the handler answers again, joining the group", "handler", a.m.s.config().Handler)
		a.join(ctx)
	case group.MoveNone:
	}
	return group.Input{}
}

func (a *absence) leave(now time.Time) group.Input {
	c := a.m.s.config()
	text := fmt.Sprintf("handler %s has been down for %s: the member left the group, so that others handle its queues; it returns when the handler has answered for %s",
		c.Handler, now.Sub(a.presence.Down()).Round(time.Second), a.presence.Wait(a.rule()))
	a.m.s.log.Warn("leaving the group: the handler is down", "handler", c.Handler, "since", a.presence.Down(), "returns_after", a.presence.Wait(a.rule()).String())
	a.phase = draining
	a.m.round.renounce()
	a.m.mu.Lock()
	a.m.joined = false
	a.m.waiting = Hold{Kind: HoldHandlerDown, Text: text, Since: now}
	a.m.mu.Unlock()
	return group.Input{Kind: group.InLeave}
}

func (a *absence) join(ctx context.Context) {
	a.phase = joining
	a.call(func() error { return a.m.tryJoin(ctx) })
}

func (a *absence) call(f func() error) {
	a.m.calls.Go(func() { a.calls <- f() })
}

// came takes the end of a call.
func (a *absence) came(err error) group.Input {
	m := a.m
	if a.phase == leaving {
		if err != nil {
			m.s.log.Warn("brokers were not told that the member leaves", "error", err.Error())
		}
		a.phase = away
		return group.Input{}
	}
	if err != nil {
		if a.failures%10 == 0 {
			m.s.log.Warn("the group is not joined again yet, trying again", "error", err.Error())
		}
		a.failures++
		a.phase, a.next = away, m.s.rt.Now().Add(longJoinPause)
		return group.Input{}
	}
	a.failures, a.phase = 0, present
	m.mu.Lock()
	m.joined, m.waiting = true, Hold{}
	m.mu.Unlock()
	return group.Input{Kind: group.InReturn}
}

// tellLeave takes the member out of its group; to have left it before is no failure.
func (m *member) tellLeave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	err := m.s.broker.Leave(ctx, m.s.config().Group)
	if errors.Is(err, rocketmq.ErrNotJoined) {
		return nil
	}
	return err //nolint:wrapcheck // the client names the group
}
