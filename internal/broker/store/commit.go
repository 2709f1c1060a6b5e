package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// groupLocked returns the group that takes a change of so many bytes.
func (s *Store) groupLocked(bytes int) *group {
	var g *group
	if n := len(s.groups); n > 0 && s.groups[n-1].bytes < maxGroup {
		g = s.groups[n-1]
	} else {
		g = newGroup(s.handle.db, s.failures) // It is open: it is closed only after a failure, or after the store was.
		s.groups = append(s.groups, g)
		maps.Copy(g.values, s.lazy)
		clear(s.lazy)
	}
	g.bytes += int64(bytes)
	s.pending += int64(bytes)
	return g
}

func (s *Store) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Store) armLazyLocked() {
	if s.lazyTimer == nil {
		s.lazyTimer = time.AfterFunc(lazyDelay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lazyTimer = nil
			if len(s.lazy) > 0 && !s.closed && s.failed == nil {
				s.groupLocked(0)
				s.wakeLocked()
			}
		})
	}
}

// maxSpare is how many groups' memory is kept to be used again.
const maxSpare = 3

// commitLoop stores one group after the other. While one is being synchronized the next one gathers.
func (s *Store) commitLoop() {
	defer close(s.stored)
	for {
		g, err := s.commitNext()
		switch {
		case err != nil:
			s.fail(err)
		case g != nil:
			s.stored <- g
		case s.ctx.Err() != nil:
			return
		default:
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
		}
	}
}

// commitNext stores the next group; nil: there is none. Pebble stays the one that the group was made for.
func (s *Store) commitNext() (*group, error) {
	h := s.use()
	if h == nil {
		return nil, nil
	}
	defer h.done()
	g := s.takeGroup()
	if g == nil {
		return nil, nil
	}
	return g, s.commit(h.db, g)
}

func (s *Store) takeGroup() *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.groups) == 0 || s.failed != nil {
		return nil
	}
	g := s.groups[0]
	s.groups = s.groups[1:]
	s.lastGroup = g.bytes
	g.seal()
	s.committing = g
	return g
}

// fatal is what Pebble's logger throws where Pebble would end the process; see logger.
type fatal struct{ error }

// caught makes a fatal error that was thrown the error of who defers it.
func caught(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case fatal:
		*err = thrown.error
	default:
		panic(thrown)
	}
}

func (s *Store) commit(db *pebble.DB, g *group) (err error) {
	defer caught(&err)
	if g.batch.Empty() {
		return nil
	}
	g.countEnded(db)
	if len(g.log) > 0 {
		err := s.segments.write(g.segment, g.at, g.log)
		if err == nil && s.options.Flush == FlushSync {
			err = s.segments.sync() // Nothing on the disk points to what is not there.
		}
		if err != nil {
			return err
		}
	}
	if err := db.ApplyNoSyncWait(g.batch, pebble.Sync); err != nil {
		return err
	}
	if err := g.batch.SyncWait(); err != nil {
		return err
	}
	if err := cmp.Or(s.failure(), s.disk.failure()); err != nil {
		return err // Pebble was not told that the log could not be synchronized, or that the disk takes nothing since.
	}
	return g.batch.Close()
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// tellLoop makes what is stored visible and tells the submitters.
func (s *Store) tellLoop() {
	for g := range s.stored {
		s.mu.Lock()
		for q, b := range g.touched {
			q.stored(b)
		}
		if g.failures == s.failures { // Else all was counted anew.
			s.scheduled -= g.ended
			s.pending -= g.bytes
		}
		done := g.done
		g.done = nil
		if s.committing == g {
			s.committing = nil
		}
		if g.log != nil && len(s.spare) < maxSpare && cap(g.log) <= 2*maxGroup {
			s.spare = append(s.spare, g.log[:0])
		}
		early := g.early
		s.mu.Unlock()
		for _, d := range done {
			d(nil)
		}
		if early {
			s.options.Resumed()
		}
	}
}

// onStuck tells those who wait that the disk does not take anything now. What they want may be stored later all the same.
func (s *Store) onStuck(err error) {
	s.options.Logger.Error("the disk takes nothing, writes are refused", "folder", s.options.Dir, "error", err.Error())
	s.mu.Lock()
	done := s.takeDoneLocked()
	s.mu.Unlock()
	for _, d := range done {
		d(err)
	}
}

func (s *Store) takeDoneLocked() []func(error) {
	var done []func(error)
	take := func(g *group) {
		done, g.done, g.early = append(done, g.done...), nil, true
	}
	if s.committing != nil {
		take(s.committing)
	}
	for _, g := range s.groups {
		take(g)
	}
	return done
}

// fail takes note that Pebble cannot go on, tells those who wait, and begins to open the store again.
func (s *Store) fail(err error) {
	err = fmt.Errorf("%w: %w", ErrFailed, err)
	s.mu.Lock()
	s.failures++
	if s.failed != nil {
		s.mu.Unlock()
		return
	}
	s.failed = err
	done := s.takeDoneLocked()
	s.groups, s.committing, s.pending = nil, nil, 0
	clear(s.lazy)
	if !s.closed {
		s.running.Go(s.reopen)
	}
	s.mu.Unlock()
	s.options.Logger.Error("the store has failed", "folder", s.options.Dir, "error", err.Error())
	for _, d := range done {
		d(err)
	}
}

// failForGood is for what leaves Pebble in a state that it cannot even be closed in.
func (s *Store) failForGood(err error) {
	s.mu.Lock()
	if !s.lost {
		s.lost = true
		close(s.gone)
	}
	s.mu.Unlock()
	s.fail(errors.Join(err, errors.New("the process must be started again")))
}
