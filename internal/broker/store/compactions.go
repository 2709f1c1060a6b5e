package store

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// How long no compaction is begun after one that failed; twice as long each time, until one works.
const (
	firstCompactionPause = time.Second
	maxCompactionPause   = 10 * time.Second
)

// compactions schedules Pebble's compactions: as many at once as Pebble wants, as its own scheduler does, but none for a while
// after one that failed. Pebble would begin that one again at once, and for ever when it reads a file that is damaged. It is
// for one Pebble. Nothing ticks: whatever allows one more compaction wakes it.
//
// The order of locks is Pebble's: its own first, then this one's.
type compactions struct {
	db    pebble.DBForCompaction // set before anything else is called
	wake  chan struct{}
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	running int
	over    bool
	pause   time.Duration // 0: the last one worked
	pausing *time.Timer   // nil when no pause is on
}

func newCompactions() *compactions {
	return &compactions{wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Register is part of pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.db = db
	c.ended.Go(c.grant)
}

// Unregister is part of pebble.CompactionScheduler. It may be called once more, or without a Register: a Pebble that cannot be
// opened registers and does not unregister.
func (c *compactions) Unregister() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over = true
	if c.pausing != nil {
		c.pausing.Stop()
	}
	c.mu.Unlock()
	close(c.stop)
	c.ended.Wait()
}

// TrySchedule is part of pebble.CompactionScheduler. What is not allowed now, grant begins later.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.begin() {
		return false, nil
	}
	return true, c
}

// UpdateGetAllowedWithoutPermission is part of pebble.CompactionScheduler.
func (c *compactions) UpdateGetAllowedWithoutPermission() { c.awake() }

// Started is part of pebble.CompactionGrantHandle.
func (c *compactions) Started() {}

// MeasureCPU is part of pebble.CompactionGrantHandle.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is part of pebble.CompactionGrantHandle.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done is part of pebble.CompactionGrantHandle.
func (c *compactions) Done() {
	c.end()
	c.awake()
}

func (c *compactions) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.pausing != nil || c.running >= c.db.GetAllowedWithoutPermission() {
		return false
	}
	c.running++
	return true
}

func (c *compactions) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

func (c *compactions) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// grant begins what Pebble waits for, whenever there may be room for it.
func (c *compactions) grant() {
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			return
		}
		for c.begin() {
			if waiting, _ := c.db.GetWaitingCompaction(); waiting && c.db.Schedule(c) {
				continue
			}
			c.end()
			break
		}
	}
}

// failed begins a pause. It is called before the compaction's end is.
func (c *compactions) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.pausing != nil {
		return
	}
	c.pause = min(max(2*c.pause, firstCompactionPause), maxCompactionPause)
	c.pausing = time.AfterFunc(c.pause, func() {
		c.mu.Lock()
		c.pausing = nil
		c.mu.Unlock()
		c.awake()
	})
}

func (c *compactions) worked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = 0
}
