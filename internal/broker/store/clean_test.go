package store_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// measured counts the bytes that are read one after the other, and notes how many were asked for at once.
type measured struct {
	vfs.FS
	all, longest atomic.Int64
}

func (m *measured) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := m.FS.Open(name, o...)
	return measuredFile{f, m}, err
}

type measuredFile struct {
	vfs.File
	of *measured
}

func (f measuredFile) Read(p []byte) (int, error) {
	for n := int64(len(p)); ; {
		longest := f.of.longest.Load()
		if n <= longest || f.of.longest.CompareAndSwap(longest, n) {
			break
		}
	}
	n, err := f.File.Read(p)
	f.of.all.Add(int64(n))
	return n, err
}

// TestClean_readsPieces: closing and opening take no more memory when the log is large.
func TestClean_readsPieces(t *testing.T) {
	t.Parallel()
	const messages, size, piece = 300, 15 << 10, 64 << 10
	fs := &measured{FS: vfs.NewMem()}
	o := store.Options{Dir: "data", FS: fs, MemTableBytes: 4 * messages * size}
	s := open(t, o)
	for range messages {
		put(t, s, "T", record(t, "T", strings.Repeat("x", size), 0))
	}
	fs.all.Store(0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := fs.all.Load(); n < messages*size {
		t.Errorf("closing read %d bytes of the log's %d", n, messages*size)
	}
	s = open(t, o)
	if r := read(t, s, "T", messages-1, limits, nil); len(r.Messages) != 1 {
		t.Errorf("the last message: %+v", r)
	}
	if n := fs.longest.Load(); n > piece {
		t.Errorf("%d bytes were read at once", n)
	}
}
