package store

import (
	"errors"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pointed looks, before Pebble is open, whether what the end of its log points to is in the segments: a power loss may have left
// the one without the other.
type pointed struct {
	fs     vfs.FS
	dir    string
	doubts *doubts
	all    []int64
	open   map[int64]vfs.File // by where the segment begins
	memory []byte
}

func newPointed(fs vfs.FS, dir string, doubts *doubts) (*pointed, error) {
	names, err := fs.List(dir)
	return &pointed{fs: fs, dir: dir, doubts: doubts, all: segmentsAmong(names), open: make(map[int64]vfs.File)}, err
}

// has tells whether each segment that a batch of the log begins is there, and each message that it points to.
func (p *pointed) has(batch []byte) (bool, error) {
	for r := batchrepr.Read(batch); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return true, nil //nolint:nilerr // Pebble says what is wrong with a batch.
		}
		if kind != pebble.InternalKeyKindSet || len(key) == 0 {
			continue
		}
		at, out := readPointer(value)
		switch {
		case key[0] == prefixSegment && len(key) == 1+8:
			// What is in it may all be with its keys.
			if _, there := slices.BinarySearch(p.all, int64(order.Uint64(key[1:]))); !there {
				return false, nil
			}
		case key[0] == prefixMessage && out:
			if there, err := p.hasOne(at); !there {
				return false, err
			}
		}
	}
}

func (p *pointed) hasOne(at pointer) (bool, error) {
	i, exact := slices.BinarySearch(p.all, at.log)
	if !exact {
		i--
	}
	if i < 0 {
		return false, nil
	}
	first := p.all[i]
	f := p.open[first]
	if f == nil {
		var err error
		if f, err = p.fs.Open(p.fs.PathJoin(p.dir, segmentName(first))); err != nil {
			return false, err
		}
		p.open[first] = f
	}
	info, err := f.Stat()
	if err != nil || at.end()-first > info.Size() {
		return false, err
	}
	if cap(p.memory) < int(at.size) {
		p.memory = make([]byte, at.size)
	}
	raw := p.memory[:at.size]
	if _, err := f.ReadAt(raw, at.log-first); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return at.fault(raw) == "", nil
}

// close brings what was looked at to the disk: Pebble moves out of the log now.
func (p *pointed) close() (failed error) {
	for first, f := range p.open {
		err := f.Sync()
		if err != nil {
			p.doubts.add(p.fs.PathJoin(p.dir, segmentName(first)))
		}
		failed = errors.Join(failed, err, f.Close())
	}
	if len(p.all) > 0 {
		failed = errors.Join(failed, syncFolder(p.fs, p.dir))
	}
	return failed
}
