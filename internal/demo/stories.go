package demo

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// stories picks the orders whose fate is told line by line. All failures together would scroll everything else away: of each
// kind of failure one order is followed at a time, and a new one only after calm. It is safe for concurrent use.
type stories struct {
	mu     sync.Mutex
	told   map[string]*attempt  // followed orders, with their last attempt
	last   map[string]time.Time // when the last one of a kind was picked
	traces map[string]bool      // traces that stand in a member's log
	dead   *deadLetter          // the first one of a followed order whose trace can be looked up
}

// calm is the pause between two stories of one kind.
const calm = 6 * time.Second

func newStories() *stories {
	return &stories{told: map[string]*attempt{}, last: map[string]time.Time{}, traces: map[string]bool{}}
}

// logged notes a trace of which a member has logged a failed attempt.
func (s *stories) logged(trace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.traces) < 10_000 {
		s.traces[trace] = true
	}
}

// attempted returns the line to show of an attempt; "" = none.
func (s *stories) attempted(a *attempt, member string, now time.Time) (about, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := a.why()
	_, followed := s.told[a.Order]
	switch {
	case a.Outcome == "handled" && followed:
		delete(s.told, a.Order)
		return "handled", fmt.Sprintf("%s attempt %d at %s", a.Order, a.Attempt, member)
	case a.Outcome == "handled":
		return "", ""
	case !followed && (a.Attempt > 1 || s.busy(why) || now.Sub(s.last[why]) < calm):
		return "", ""
	}
	last := *a
	s.told[a.Order], s.last[why] = &last, now
	if a.Attempt >= attempts || a.Outcome != "failed" {
		return "", "" // the dead-letter topic tells
	}
	return "retry", fmt.Sprintf("%s attempt %d at %s %q, again in 1s", a.Order, a.Attempt, member, why)
}

// why is the error without the order that it names.
func (a *attempt) why() string { return strings.TrimPrefix(a.Error, "order "+a.Order+": ") }

// busy tells whether an order that fails of this is followed already.
func (s *stories) busy(why string) bool {
	for _, a := range s.told {
		if a.why() == why {
			return true
		}
	}
	return false
}

// buried returns the line to show of a dead letter; "" = none.
func (s *stories) buried(l *deadLetter) (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.told[l.order]
	if a == nil {
		return ""
	}
	delete(s.told, l.order)
	if s.dead == nil && s.traces[l.trace] {
		s.dead = l
	}
	return fmt.Sprintf("%s attempt %d %q → trace %s", l.order, a.Attempt, a.why(), l.trace)
}

// example is a dead letter whose attempts stand in the logs; nil = none yet.
func (s *stories) example() *deadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}
