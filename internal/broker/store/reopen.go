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
		}
		s.mu.Lock()
		lost := s.lost
		s.mu.Unlock()
		if lost {
			return
		}
		if err := s.closeDB(); err != nil {
			s.options.Logger.Warn("closing the failed store", "folder", s.options.Dir, "error", err.Error())
		}
		if err := s.openDB(); err != nil {
			s.options.Logger.Warn("opening the store again", "folder", s.options.Dir, "error", err.Error())
			continue
		}
		s.options.Logger.Info("the store is open again", "folder", s.options.Dir)
		s.options.Reopened()
		s.mu.Lock()
		s.failed = nil
		s.mu.Unlock()
		s.options.Resumed()
		return
	}
}

func (s *Store) closeDB() error {
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
	if lost {
		return nil // It may never return.
	}
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return err
}
