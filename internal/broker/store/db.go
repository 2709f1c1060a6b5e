package store

import (
	"errors"
	"fmt"

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
func scan(db *pebble.DB, prefix []byte, each func(k, v []byte) error) (err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := each(it.Key(), v); err != nil {
			return err
		}
	}
	return it.Error()
}

// view lets do read from Pebble.
func (s *Store) view(do func(db *pebble.DB) error) error {
	s.dbMu.RLock()
	defer s.dbMu.RUnlock()
	if s.db == nil {
		if err := s.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	err := do(s.db)
	if err != nil && pebble.IsCorruptionError(err) {
		return fmt.Errorf("reading from %s: %w", s.options.Dir, damagedFile(err))
	}
	if err != nil {
		return fmt.Errorf("reading from %s: %w", s.options.Dir, err)
	}
	return nil
}
