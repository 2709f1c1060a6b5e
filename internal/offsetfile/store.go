package offsetfile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/streamd/streamd/sdk"
)

// ErrClosed means that the store takes no more offsets.
var ErrClosed = errors.New("the offset file is closed")

// Store is the offsets of one member. It is safe for concurrent use.
type Store struct {
	options Options
	path    string
	work    sync.WaitGroup

	mu      sync.Mutex // held for memory work only
	offsets map[sdk.Queue]int64
	version uint64 // of offsets
	durable uint64 // the version that is in the file
	next    *round // what is written after the round under way
	current *round // under way; nil = none
	saving  bool   // a goroutine carries rounds out
	closed  bool
	last    time.Time // end of the last write
}

// round is one write of the file. Who waits for it reads err after done is closed.
type round struct {
	version uint64 // known once it is under way
	waiters int
	done    chan struct{}
	err     error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// Path is the file's.
func (s *Store) Path() string { return s.path }

// Committed returns the offset of a queue: the next one to consume. It waits for nothing.
func (s *Store) Committed(q sdk.Queue) (offset int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset, ok = s.offsets[q]
	if !ok || offset == unset {
		return 0, false
	}
	return offset, true
}

// Begin tells where a queue without an offset stands. The first question about a topic notes the queues that it has then:
// they are new to this member, and stay so until their first commit, over a restart too; a queue that comes later is not.
// queues must hold q. The note is durable when Begin returns.
func (s *Store) Begin(ctx context.Context, q sdk.Queue, queues []sdk.Queue) (fresh bool, err error) {
	err = s.change(ctx, func() {
		for known := range s.offsets {
			if known.Topic == q.Topic {
				return
			}
		}
		for _, other := range queues {
			s.offsets[other] = unset
		}
		s.version++
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	at, noted := s.offsets[q]
	return noted && at == unset, err
}

// Commit stores an offset and returns when it is durable.
func (s *Store) Commit(ctx context.Context, q sdk.Queue, offset int64) error {
	return s.change(ctx, func() {
		if at, ok := s.offsets[q]; !ok || at != offset {
			s.offsets[q] = offset
			s.version++
		}
	})
}

// change makes a change of the offsets durable. What is there already costs nothing.
func (s *Store) change(ctx context.Context, f func()) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("storing offsets in %s: %w", s.path, ErrClosed)
	}
	f()
	if s.version == s.durable {
		s.mu.Unlock()
		return nil
	}
	r := s.next
	if s.current != nil && s.current.version == s.version {
		r = s.current
	}
	r.waiters++
	if !s.saving {
		s.saving = true
		s.work.Go(s.save)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s to be written: %w", s.path, context.Cause(ctx))
	}
}

// save carries out rounds while somebody waits for one.
func (s *Store) save() {
	for s.pause(); ; s.pause() {
		s.mu.Lock()
		if s.next.waiters == 0 {
			s.saving = false
			s.mu.Unlock()
			return
		}
		r := s.next
		r.version = s.version
		s.current, s.next = r, newRound()
		text, err := encode(&s.options, s.offsets, s.options.Now())
		s.mu.Unlock()
		s.finish(r, s.put(text, err))
	}
}

func (s *Store) put(text []byte, err error) error {
	if err == nil {
		err = write(s.options.Files, s.options.Dir, s.path, text)
	}
	if err != nil {
		return fmt.Errorf("storing offsets in %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) finish(r *round, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.durable = r.version
	}
	s.current, s.last = nil, s.options.Now()
	r.err = err
	close(r.done)
}

// pause keeps two writes apart: each syncs a file and a folder, and what comes meanwhile shares the next.
func (s *Store) pause() {
	s.mu.Lock()
	left, closed := s.last.Add(s.options.Pause).Sub(s.options.Now()), s.closed
	s.mu.Unlock()
	if closed || left <= 0 {
		return
	}
	timer := time.NewTimer(min(left, s.options.Pause))
	<-timer.C
}

// Close takes no more offsets, waits for the write under way, and writes what an earlier one could not.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	owed := s.version != s.durable
	text, err := encode(&s.options, s.offsets, s.options.Now())
	s.mu.Unlock()
	if !owed {
		return nil
	}
	return s.put(text, err)
}
