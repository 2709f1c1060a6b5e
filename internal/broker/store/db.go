package store

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// get reads one value; nil when it is not there.
func get(db *pebble.DB, key []byte) ([]byte, error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v = append([]byte{}, v...)
	return v, closer.Close()
}

// scan hands out all keys that begin with prefix, in order. They are valid during the call.
func scan(db *pebble.DB, prefix []byte, each func(k, v []byte) error) error {
	return walk(db, &pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)}, func(it *pebble.Iterator) (bool, error) {
		v, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		return true, each(it.Key(), v)
	})
}

// walk goes over a range in order, until it is told to stop.
func walk(db *pebble.DB, bounds *pebble.IterOptions, each func(it *pebble.Iterator) (more bool, err error)) (err error) {
	it, err := db.NewIter(bounds)
	if err != nil {
		return err
	}
	defer func() { err = ended(it, err) }()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := each(it); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// handle is Pebble while it is open, and who uses it.
type handle struct {
	db    *pebble.DB
	users sync.WaitGroup
}

// use returns Pebble, which stays open until the handle is given back by done; nil when it is not open.
func (s *Store) use() *handle {
	s.handleMu.Lock()
	defer s.handleMu.Unlock()
	if s.handle != nil {
		s.handle.users.Add(1)
	}
	return s.handle
}

func (h *handle) done() { h.users.Done() }

// closeDB closes Pebble. Whoever comes from now on is refused at once, however long those take who use it still: one of them
// may wait for a disk that takes nothing.
func (s *Store) closeDB() error {
	select {
	case <-s.gone:
		return nil // It may never return.
	default:
	}
	s.handleMu.Lock()
	h := s.handle
	s.handle = nil
	s.handleMu.Unlock()
	if h == nil {
		return nil
	}
	h.users.Wait()
	err := h.db.Close()
	return errors.Join(err, s.segments.close())
}

// ended closes an iterator, which repeats its error then, after a use that ended with err.
func ended(it *pebble.Iterator, err error) error {
	closing := it.Close()
	if err == nil || closing == nil || err.Error() == closing.Error() {
		return cmp.Or(err, closing)
	}
	return errors.Join(err, closing)
}

// viewTries bounds how often a read is begun anew because messages expired meanwhile.
const viewTries = 10

// view lets do read from Pebble. It is done once more, from the beginning, when it came upon a message that has just expired.
func (s *Store) view(do func(db *pebble.DB) error) error {
	h := s.use()
	if h == nil {
		if err := s.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	defer h.done()
	err := do(h.db)
	for range viewTries {
		if !errors.Is(err, errGone) {
			break
		}
		err = do(h.db)
	}
	var known *damagedError
	switch {
	case errors.As(err, &known):
		err = known // Pebble's words around it name the file once more.
	case err != nil && pebble.IsCorruptionError(err):
		err = s.corrupt(err)
	}
	if err != nil {
		return fmt.Errorf("reading from %s: %w", s.options.Dir, err)
	}
	return nil
}
