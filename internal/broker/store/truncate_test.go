package store_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// gated is a file system on which a log is synchronized only when it is let to.
type gated struct {
	vfs.FS
	mu   sync.Mutex
	gate *gate // nil: open
}

type gate struct{ arrived, through chan struct{} }

// close lets nothing pass that the gate is not told to.
func (g *gated) close() *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = &gate{make(chan struct{}), make(chan struct{})}
	return g.gate
}

// open lets everything pass from now on, but for what has arrived.
func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = nil
}

func (g *gated) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	return gatedFile{f, g, strings.HasSuffix(name, ".log")}, err
}

func (g *gated) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(from, to, c)
	return gatedFile{f, g, strings.HasSuffix(to, ".log")}, err
}

type gatedFile struct {
	vfs.File
	fs    *gated
	isLog bool
}

func (f gatedFile) SyncData() error {
	f.fs.mu.Lock()
	gate := f.fs.gate
	f.fs.mu.Unlock()
	if f.isLog && gate != nil {
		gate.arrived <- struct{}{}
		<-gate.through
	}
	return f.File.SyncData()
}

func (f gatedFile) Sync() error { return f.SyncData() }

// TestTruncate_showsNothingOfBefore: messages are on their way to the disk when the end of their queue is cut off and others come
// in their place. When the first are stored, and the cut is not yet, nobody may read either.
func TestTruncate_showsNothingOfBefore(t *testing.T) {
	t.Parallel()
	fs := &gated{FS: vfs.NewMem()}
	s := open(t, store.Options{FS: fs})
	fill(t, s, "T", 3)
	gate := fs.close()
	stored := make(chan error, 3)
	appended := func(body string, n int) {
		c := &store.Change{Appends: []store.Append{{Topic: "T"}}}
		for range n {
			c.Appends[0].Records = append(c.Appends[0].Records, record(t, "T", body, 0))
		}
		if err := s.Submit(c, func(err error) { stored <- err }); err != nil {
			t.Error(err)
		}
	}
	appended("before", 7) // 3..9
	<-gate.arrived
	s.Truncate("T", 0, 5, func(err error) { stored <- err })
	appended("after", 6) // 5..10
	gate.through <- struct{}{}
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	<-gate.arrived // The cut is not stored.
	if _, next, _ := s.Bounds("T", 0); next != 5 {
		t.Errorf("the queue ends at %d: behind 5 nothing is stored that shall stay", next)
	}
	fs.open()
	gate.through <- struct{}{}
	for range 2 {
		if err := <-stored; err != nil {
			t.Fatal(err)
		}
	}
	if _, next, _ := s.Bounds("T", 0); next != 11 {
		t.Errorf("the queue ends at %d, want 11", next)
	}
	checkDense(t, s, "T", 0)
}
