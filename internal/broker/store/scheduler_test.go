package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/streamd/streamd/internal/bubbletest"
)

// wants is a Pebble that always has one compaction to do.
type wants struct{ begun chan struct{} }

func (wants) GetAllowedWithoutPermission() int { return 1 }

func (wants) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return true, pebble.WaitingCompaction{}
}

func (w wants) Schedule(pebble.CompactionGrantHandle) bool {
	w.begun <- struct{}{}
	return true
}

// TestCompactions_waitUntilPebbleIsOpen: opening would wait for the end of one that has begun.
func TestCompactions_waitUntilPebbleIsOpen(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		c, db := newCompactions(), wants{make(chan struct{}, 1)}
		c.Register(1, db)
		defer c.Unregister()
		if granted, _ := c.TrySchedule(); granted {
			t.Error("one is granted before it is open")
		}
		c.UpdateGetAllowedWithoutPermission()
		<-time.After(time.Minute)
		if len(db.begun) != 0 {
			t.Error("one has begun before it is open")
		}
		c.begin()
		synctest.Wait()
		if len(db.begun) != 1 {
			t.Error("none has begun after that")
		}
	})
}
