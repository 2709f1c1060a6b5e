package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// errGone is told of a message whose segment was removed since its key was read: it has expired.
var errGone = errors.New("the message has expired")

// segments are the files that have the messages. Everything but write may be called by several at once.
type segments struct {
	disk *disk

	syncing sync.Mutex // held while dirty files are synchronized
	mu      sync.Mutex
	all     []int64           // where each begins, in order
	gone    []span            // the removed ones
	readers map[int64]*reader // by where the segment begins
	uses    uint64            // of readers
	writing *segmentFile      // the last one
	dirty   []*segmentFile    // not on the disk as a whole, or open: in order
}

// span is the log offsets of a segment: from first on, and below end.
type span struct{ first, end int64 }

func (s span) has(log int64) bool { return log >= s.first && log < s.end }

// segmentFile is a segment that is written.
type segmentFile struct {
	*file
	first  int64
	there  bool  // its folder knows it on the disk; guarded by syncing
	failed error // of a synchronization, likewise: the next one would say that all is on the disk, and it is not
}

func newSegments(d *disk) *segments { return &segments{disk: d, readers: make(map[int64]*reader)} }

// open takes over the segments that Pebble knows, and removes those that it does not: there is no message in them. All that was
// open is closed before.
func (m *segments) open(db *pebble.DB) error {
	known, err := knownSegments(db)
	if err != nil {
		return err
	}
	names, err := m.disk.FS.List(m.disk.dir)
	if err != nil {
		return err
	}
	found := segmentsAmong(names)
	for _, first := range known {
		if _, there := slices.BinarySearch(found, first); !there {
			return fmt.Errorf("%w: its file %s is missing: restore the folder from a backup", ErrDamaged, m.path(first))
		}
	}
	if err := m.removeStrays(names, known); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.gone = known, nil
	return nil
}

// knownSegments lists where the segments begin that Pebble knows, in order.
func knownSegments(db *pebble.DB) (known []int64, err error) {
	err = scan(db, []byte{prefixSegment}, func(k, _ []byte) error {
		if len(k) != 1+8 {
			return fmt.Errorf("%w: the entry of a segment is %q", ErrDamaged, k)
		}
		known = append(known, int64(order.Uint64(k[1:])))
		return nil
	})
	return known, err
}

// removeStrays removes segments that are not known, and what is left of one that was to be written anew.
func (m *segments) removeStrays(names []string, known []int64) error {
	for _, name := range names {
		whole, half := strings.CutSuffix(name, temporary)
		first, ok := segmentOf(whole)
		if !ok {
			continue
		}
		if _, there := slices.BinarySearch(known, first); there && !half {
			continue
		}
		if err := m.disk.FS.Remove(m.disk.FS.PathJoin(m.disk.dir, name)); err != nil {
			return fmt.Errorf("removing a segment that nothing is in: %w", err)
		}
	}
	return nil
}

// segmentsAmong lists where the segments among the files of a folder begin, in order.
func segmentsAmong(names []string) (found []int64) {
	for _, name := range names {
		if first, ok := segmentOf(name); ok {
			found = append(found, first)
		}
	}
	slices.Sort(found)
	return found
}

func (m *segments) path(first int64) string {
	return m.disk.FS.PathJoin(m.disk.dir, segmentName(first))
}

// write puts what has a log offset into the segment that begins at first, which it begins if need be, behind all that is there.
func (m *segments) write(first, at int64, messages []byte) error {
	m.mu.Lock()
	f := m.writing
	m.mu.Unlock()
	if f == nil || f.first != first {
		made, err := m.disk.Create(m.path(first), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		f = &segmentFile{file: made.(*file), first: first} //nolint:forcetypeassert // what disk makes
		m.mu.Lock()
		m.all = append(m.all, first)
		m.writing, m.dirty = f, append(m.dirty, f)
		m.mu.Unlock()
	}
	_, err := f.WriteAt(messages, at-first)
	return err
}

// sync brings what was written before to the disk. It tries that with each file, so that the failed ones are known.
func (m *segments) sync() (failed error) {
	m.syncing.Lock()
	defer m.syncing.Unlock()
	m.mu.Lock()
	dirty := slices.Clone(m.dirty)
	m.mu.Unlock()
	for _, f := range dirty {
		if err := m.syncOne(f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("synchronizing %s: %w", f.name, err))
		}
	}
	return failed
}

func (m *segments) syncOne(f *segmentFile) error {
	written := f.written.Load()
	if f.failed == nil && written > f.safe.Load() {
		f.failed = f.File.SyncData()
	}
	if f.failed == nil && !f.there {
		f.failed = syncFolder(m.disk.FS, m.disk.dir)
	}
	if f.failed != nil {
		return f.failed
	}
	f.safe.Store(written)
	f.there = true
	m.mu.Lock()
	complete := f != m.writing && f.safe.Load() == f.written.Load()
	if complete {
		m.dirty = slices.DeleteFunc(m.dirty, func(d *segmentFile) bool { return d == f })
	}
	m.mu.Unlock()
	if complete {
		return f.File.Close()
	}
	return nil
}

func syncFolder(fs vfs.FS, dir string) error {
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// close closes all files. Those that could not be brought to the disk are in doubt.
func (m *segments) close() error {
	failed := m.sync()
	m.syncing.Lock()
	defer m.syncing.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.dirty {
		if f.failed != nil {
			m.disk.doubts.add(f.name)
		}
		failed = errors.Join(failed, f.File.Close())
	}
	for _, r := range m.readers {
		failed = errors.Join(failed, r.Close())
	}
	m.writing, m.dirty = nil, nil
	clear(m.readers)
	return failed
}

// drop removes segments that nothing points to or is written to any more, once the disk has it that nothing does.
func (m *segments) drop(empty []span) error {
	failed := m.forget(empty)
	for _, segment := range empty { // Nobody waits for that: to remove a large file takes its time.
		failed = errors.Join(failed, m.disk.FS.Remove(m.path(segment.first)))
	}
	return failed
}

// forget lets nobody come to segments any more. An open file would keep its space on the disk.
func (m *segments) forget(empty []span) (failed error) {
	m.syncing.Lock()
	defer m.syncing.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = joined(append(m.gone, empty...))
	for _, segment := range empty {
		is := func(f *segmentFile) bool { return f.first == segment.first }
		m.all = slices.DeleteFunc(m.all, func(first int64) bool { return first == segment.first })
		if i := slices.IndexFunc(m.dirty, is); i >= 0 {
			failed = errors.Join(failed, m.dirty[i].File.Close())
			m.dirty = slices.Delete(m.dirty, i, i+1)
		}
		if m.writing != nil && is(m.writing) {
			m.writing = nil
		}
		if r := m.readers[segment.first]; r != nil {
			delete(m.readers, segment.first)
			if r.gone = true; r.users == 0 {
				failed = errors.Join(failed, r.Close())
			}
		}
	}
	return failed
}

// joined sorts spans and joins those that lie behind each other, so that they stay few.
func joined(spans []span) (all []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range spans {
		if n := len(all); n > 0 && all[n-1].end >= s.first {
			all[n-1].end = max(all[n-1].end, s.end)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// spans lists the segments of the log up to its end. Each ends where the next one begins, and the last one there.
func (m *segments) spans(end int64) (all []span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, first := range m.all {
		if first >= end {
			break
		}
		s := span{first, end}
		if i+1 < len(m.all) {
			s.end = min(end, m.all[i+1])
		}
		all = append(all, s)
	}
	return all
}
