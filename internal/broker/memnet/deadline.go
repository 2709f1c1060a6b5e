package memnet

import (
	"sync"
	"time"
)

// deadline is a point in time that can be moved. Its channel is closed once it has passed.
type deadline struct {
	state *deadlineState
}

type deadlineState struct {
	mu      sync.Mutex
	timer   *time.Timer
	setting int // counts the calls of set, so that a timer of an earlier one changes nothing
	ch      chan struct{}
}

func newDeadline() deadline { return deadline{state: &deadlineState{ch: make(chan struct{})}} }

// passed is closed when the deadline has passed. set keeps an open channel, so a waiter sees a deadline that is set later.
func (d deadline) passed() <-chan struct{} {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	return d.state.ch
}

func (d deadline) set(t time.Time) {
	s := d.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked()
	if isClosed(s.ch) {
		s.ch = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		close(s.ch)
		return
	}
	setting := s.setting
	s.timer = time.AfterFunc(wait, func() { s.expire(setting) })
}

func (s *deadlineState) expire(setting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setting == setting {
		close(s.ch)
		s.setting++
	}
}

func (s *deadlineState) stopLocked() {
	s.setting++
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

func (d deadline) stop() {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	d.state.stopLocked()
}
