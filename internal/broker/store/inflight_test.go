package store

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/bubbletest"
)

func message(body string) *Change {
	raw := make([]byte, minMessage+len(body))
	order.PutUint32(raw, uint32(len(raw))) //nolint:gosec // small
	copy(raw[minMessage:], body)
	return &Change{Appends: []Append{{Topic: "T", Records: []Record{{Raw: raw}}}}}
}

func openHere(t *testing.T, o Options) *Store {
	t.Helper()
	o.Dir, o.FS = "data", vfs.NewMem()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestCut_leavesWhatIsOnItsWay has everything be too old while one more message is on its way: it has its log offset and is not
// in the log yet.
func TestCut_leavesWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := openHere(t, Options{RetainAge: time.Hour})
	old := message("old")
	if err := s.Apply(old); err != nil {
		t.Fatal(err)
	}
	late := s.Now() + (2 * time.Hour).Milliseconds()
	s.mu.Lock() // Nothing is taken to be stored meanwhile.
	fresh, stored := message("fresh"), make(chan error, 1)
	err := s.submitLocked(fresh, 0, func(err error) { stored <- err })
	group := s.groups
	s.groups = nil
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.cut(late)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.groups = group
	s.wakeLocked()
	s.mu.Unlock()
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	if at := fresh.Appends[0].Positions[0].LogOffset; c.log > at {
		t.Errorf("the log is cut at %d, and what is stored now lies at %d", c.log, at)
	}
	if at := old.Appends[0].Positions[0].LogOffset; c.log <= at {
		t.Errorf("the log is cut at %d, and what is too old lies at %d", c.log, at)
	}
}

// TestSet_keepsTheLastValueOfEachKey while a group waits for the disk, so that memory does not grow with each commit.
func TestSet_keepsTheLastValueOfEachKey(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, keepsTheLastValueOfEachKey)
}

func keepsTheLastValueOfEachKey(t *testing.T) {
	t.Helper()
	s := openHere(t, Options{})
	synctest.Wait() // A loop that has just begun would take the group before it is told to.
	s.mu.Lock()
	g, stored := s.groupLocked(0), make(chan error, 1)
	g.done = append(g.done, func(err error) { stored <- err })
	empty := g.batch.Len()
	s.mu.Unlock()
	for i := range 1000 {
		s.Set(Value{Table: "t", Key: "k", Value: order.AppendUint64(nil, uint64(i))}) //nolint:gosec // small
	}
	s.mu.Lock()
	if g.batch.Len() != empty || len(g.values) != 1 {
		t.Errorf("1000 values of one key are %d, and %d bytes", len(g.values), g.batch.Len()-empty)
	}
	s.wakeLocked()
	s.mu.Unlock()
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	table, err := s.Table("t")
	if err != nil || order.Uint64(table["k"]) != 999 {
		t.Errorf("stored %v, %v", table, err)
	}
}

// TestOpen_refusedAgainForTheSameReason is a store that was closed well and cannot be opened: the try must not leave behind what
// the next one takes for damage. Neither must a process that is killed meanwhile.
func TestOpen_refusedAgainForTheSameReason(t *testing.T) {
	t.Parallel()
	o := Options{Dir: "data", FS: vfs.NewMem()}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Apply(message("x")), s.handle.db.Set([]byte{prefixVersion}, order.AppendUint32(nil, format+1), pebble.Sync), s.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(o); !errors.Is(err, ErrNewer) {
			t.Errorf("opening says %v", err)
		}
	}
}
