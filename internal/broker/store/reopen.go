package store

import (
	"time"
)

// Pauses between two tries to open a store that failed.
const (
	firstReopen = 500 * time.Millisecond
	maxReopen   = 10 * time.Second
)

// reopen opens the store again until that works or the store is closed.
func (s *Store) reopen() {
	for pause := firstReopen; ; pause = min(2*pause, maxReopen) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-s.gone:
			timer.Stop()
			return
		}
		if err := s.closeDB(); err != nil {
			s.options.Logger.Warn("closing the failed store", "folder", s.options.Dir, "error", err.Error())
		}
		before := s.failedSoOften()
		if err := s.openDB(); err != nil {
			s.options.Logger.Warn("opening the store again", "folder", s.options.Dir, "error", err.Error())
			continue
		}
		if err := s.options.Reopened(); err != nil {
			s.options.Logger.Error("reading the tables again: everything is refused until that works", "folder", s.options.Dir, "error", err.Error())
			continue
		}
		if !s.recovered(before) {
			continue
		}
		s.options.Logger.Info("the store is open again", "folder", s.options.Dir)
		s.options.Resumed()
		return
	}
}

// recovered takes changes again, unless the store has failed once more since it had failed so often.
func (s *Store) recovered(failures int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || s.failures != failures {
		return false
	}
	s.failed = nil
	return true
}

func (s *Store) failedSoOften() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}
