package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxReaders is how many segments are open for reading.
const maxReaders = 128

// reader is a segment that is open for reading.
type reader struct {
	vfs.File
	users int
	used  uint64
	gone  bool // its segment was removed: the last user closes it
}

// ofLocked returns where the segment that a log offset is in begins, and where the next one does.
func (m *segments) ofLocked(log int64) (first, end int64, err error) {
	for _, g := range m.gone {
		if g.has(log) {
			return 0, 0, errGone
		}
	}
	i, exact := slices.BinarySearch(m.all, log)
	if !exact {
		i--
	}
	if i < 0 {
		return 0, 0, fmt.Errorf("%w: no file has the message at log offset %d: restore the folder from a backup", ErrDamaged, log)
	}
	if end = math.MaxInt64; i+1 < len(m.all) {
		end = m.all[i+1]
	}
	return m.all[i], end, nil
}

// read fills dst with what begins at a log offset.
func (m *segments) read(log int64, dst []byte) error {
	for len(dst) > 0 {
		n, err := m.readOne(log, dst)
		if err != nil {
			return err
		}
		log, dst = log+int64(n), dst[n:]
	}
	return nil
}

// readOne is read within one segment.
func (m *segments) readOne(log int64, dst []byte) (n int, err error) {
	first, end, r, err := m.use(log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.done(r)) }()
	n = int(min(int64(len(dst)), end-log))
	if _, err = r.ReadAt(dst[:n], log-first); errors.Is(err, io.EOF) {
		err = m.fault(first, fmt.Sprintf("it ends before log offset %d", log+int64(n)))
	}
	return n, err
}

// fault is an error that tells of a damaged segment.
func (m *segments) fault(first int64, what string) error {
	m.disk.onDamage(m.path(first), what)
	return errDamaged(m.path(first), what)
}

// check compares a message that was read with its pointer.
func (m *segments) check(p pointer, raw []byte) error {
	fault := p.fault(raw)
	if fault == "" {
		return nil
	}
	m.mu.Lock()
	first, _, err := m.ofLocked(p.log)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.fault(first, fault)
}

// message returns the message whose value is v: v itself, or a copy out of a segment, in memory of its own or, if that suffices,
// in the caller's.
func (m *segments) message(v, memory []byte) ([]byte, error) {
	p, ok := readPointer(v)
	if !ok {
		return v, nil
	}
	if cap(memory) < int(p.size) {
		memory = make([]byte, p.size)
	}
	raw := memory[:p.size]
	if err := m.read(p.log, raw); err != nil {
		return nil, err
	}
	return raw, m.check(p, raw)
}

// copy is message in memory of the caller's.
func (m *segments) copy(v []byte) ([]byte, error) {
	if _, ok := readPointer(v); ok {
		return m.message(v, nil)
	}
	return append([]byte(nil), v...), nil
}

// use returns the reader of the segment that a log offset is in, which stays open until done.
func (m *segments) use(log int64) (first, end int64, r *reader, err error) {
	m.mu.Lock()
	first, end, err = m.ofLocked(log)
	r = m.readers[first]
	if err == nil && r != nil {
		r.users++
	}
	m.mu.Unlock()
	if err != nil || r != nil {
		return first, end, r, err
	}
	if r, err = m.openReader(first, log); errors.Is(err, os.ErrNotExist) {
		err = m.fault(first, "it is missing")
	}
	return first, end, r, err
}

func (m *segments) openReader(first, log int64) (r *reader, err error) {
	f, err := m.disk.Open(m.path(first))
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, gone := m.ofLocked(log)
	switch {
	case err != nil:
		return nil, cmp.Or(gone, err)
	case gone != nil: // It was removed just now.
		return nil, errors.Join(gone, f.Close())
	}
	if r = m.readers[first]; r != nil { // Somebody else was faster.
		err = f.Close()
	} else {
		err = m.evictLocked()
		r = &reader{File: f}
		m.readers[first] = r
	}
	if err != nil {
		return nil, err
	}
	r.users++
	return r, nil
}

func (m *segments) done(r *reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
	r.users, r.used = r.users-1, m.uses
	if r.gone && r.users == 0 {
		return r.Close()
	}
	return nil
}

// evictLocked makes room for one more reader.
func (m *segments) evictLocked() (failed error) {
	for len(m.readers) >= maxReaders {
		oldest, at := (*reader)(nil), int64(0)
		for first, r := range m.readers {
			if r.users == 0 && (oldest == nil || r.used < oldest.used) {
				oldest, at = r, first
			}
		}
		if oldest == nil {
			break // All are in use.
		}
		delete(m.readers, at)
		failed = errors.Join(failed, oldest.Close())
	}
	return failed
}
