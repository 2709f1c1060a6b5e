package store

import (
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Pauses before compactions are tried again after one failed.
const (
	firstCompactionPause = time.Second
	maxCompactionPause   = 10 * time.Second
)

// lookForCompactions is how often it is looked whether more compactions may run than do.
const lookForCompactions = 100 * time.Millisecond

// compactions lets Pebble run as many compactions as it wants, as its own scheduler does, but for the time in which it opens, which
// would wait for their end, and for a pause after one that failed. Without that Pebble would try one that meets a damaged file of its
// first level again at once, and for ever.
type compactions struct {
	stop func()
	over <-chan struct{}
	look chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	granted  sync.Cond
	db       pebble.DBForCompaction
	running  int
	granting bool
	opened   bool
	closed   bool
	failures int       // in a row
	resume   time.Time // nothing is begun before
}

var _ pebble.CompactionScheduler = (*compactions)(nil)

func newCompactions() *compactions {
	over := make(chan struct{})
	c := &compactions{stop: sync.OnceFunc(func() { close(over) }), over: over, look: make(chan struct{}, 1)}
	c.granted.L = &c.mu
	return c
}

// Register is part of pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.mu.Lock()
	c.db = db
	c.mu.Unlock()
	c.done.Go(c.run)
}

// Unregister is part of pebble.CompactionScheduler: nothing is granted once it has returned. It may be called again.
func (c *compactions) Unregister() {
	c.stop()
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.granting {
		c.granted.Wait()
	}
}

// begin lets compactions run from now on.
func (c *compactions) begin() {
	c.mu.Lock()
	c.opened = true
	c.mu.Unlock()
	c.UpdateGetAllowedWithoutPermission()
}

// TrySchedule is part of pebble.CompactionScheduler.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.roomLocked() <= 0 {
		return false, nil
	}
	c.running++
	return true, (*grant)(c)
}

// UpdateGetAllowedWithoutPermission is part of pebble.CompactionScheduler.
func (c *compactions) UpdateGetAllowedWithoutPermission() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

func (c *compactions) run() {
	ticker := time.NewTicker(lookForCompactions)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.look:
		case <-c.over:
			return
		}
		c.grant()
	}
}

// roomLocked is how many compactions more may run now.
func (c *compactions) roomLocked() int {
	if !c.opened || !c.resume.IsZero() && time.Now().Before(c.resume) {
		return 0
	}
	return c.db.GetAllowedWithoutPermission() - c.running
}

// grant lets compactions that wait run. Pebble is called without the mutex, by one goroutine at a time.
func (c *compactions) grant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.granting {
		c.granted.Wait()
	}
	c.granting = true
	for !c.closed && c.roomLocked() > 0 {
		c.mu.Unlock()
		waiting, _ := c.db.GetWaitingCompaction()
		begun := waiting && c.db.Schedule((*grant)(c))
		c.mu.Lock()
		if !begun {
			break
		}
		c.running++
	}
	c.granting = false
	c.granted.Broadcast()
}

// ended hears how a compaction went. It may hold Pebble's mutex.
func (c *compactions) ended(info pebble.CompactionInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(info.Err, pebble.ErrCancelledCompaction):
	case info.Err == nil:
		c.failures, c.resume = 0, time.Time{}
	default:
		pause := min(firstCompactionPause<<min(c.failures, 10), maxCompactionPause)
		c.failures++
		c.resume = time.Now().Add(pause)
	}
}

// grant is a compaction's right to run.
type grant compactions

// Started is part of pebble.CompactionGrantHandle.
func (*grant) Started() {}

// MeasureCPU is part of pebble.CompactionGrantHandle.
func (*grant) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is part of pebble.CompactionGrantHandle.
func (*grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done is part of pebble.CompactionGrantHandle.
func (g *grant) Done() {
	c := (*compactions)(g)
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	c.grant()
}
