package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// lazyDelay is how long values of Set wait for a change that takes them along.
const lazyDelay = 200 * time.Millisecond

// Store is the messages and tables of one broker. Its methods are safe for concurrent use.
type Store struct {
	options  Options
	disk     *disk
	segments *segments
	clock    *clock
	space    space
	lock     *pebble.Lock
	wake     chan struct{}   // there is a group to commit
	stored   chan *group     // groups whose submitters are to be told
	ctx      context.Context //nolint:containedctx // ends the goroutines
	cancel   context.CancelFunc
	running  sync.WaitGroup
	gone     chan struct{} // closed when the store has failed for good

	handleMu sync.Mutex
	handle   *handle // nil while Pebble is not open

	damaged sync.Map // paths of files that the operator was told of

	dropped dropped // by retention, whose goroutine alone uses it

	mu         sync.Mutex
	topics     map[string][]*queue // nil for a queue never written to
	numbers    map[uint32]*queue
	lastNumber uint32
	nextLog    int64
	segment    int64    // where the last one begins; −1 when the next one is not begun yet
	left       int64    // where the log ended when the one before was left: what is behind is not in that one
	spare      [][]byte // memory for the messages of groups
	groups     []*group // the last one is open
	lastGroup  int64    // bytes of the one that was committed last
	committing *group
	pending    int64 // bytes of messages in groups and committing
	scheduled  int   // messages that wait for their time
	lazy       map[string][]byte
	lazyTimer  *time.Timer
	failed     error // why nothing is taken; nil when it is
	failures   int64 // how often it has failed
	lost       bool  // failed for good
	closed     bool
}

// Open opens the store in a folder, which is made if it is not there. The error says what is wrong with the folder.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{
		options: o, clock: newClock(o.Suspended), wake: make(chan struct{}, 1), stored: make(chan *group, 1),
		lazy: make(map[string][]byte), gone: make(chan struct{}),
	}
	s.disk = newDisk(o.FS, o.Dir, o.Flush, diskEvents{s.onStuck, s.fail, s.failForGood, s.tellDamage})
	s.segments, s.dropped = newSegments(s.disk), newDropped(s.Mark())
	s.disk.messages = s.segments.sync
	s.space = space{fs: o.FS, dir: o.Dir, least: o.MinFree}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.lockFolder(); err != nil {
		return nil, fmt.Errorf("opening the data folder %s: %w", o.Dir, err)
	}
	if err := s.openDB(); err != nil {
		return nil, fmt.Errorf("opening the data folder %s: %w", o.Dir, errors.Join(err, s.lock.Close()))
	}
	s.running.Go(s.commitLoop)
	s.running.Go(s.tellLoop)
	if o.Flush == FlushAsync {
		s.running.Go(func() { s.disk.syncLoop(s.ctx, o.FlushInterval) })
	}
	s.running.Go(func() { s.every(o.RetainEvery, s.retain) })
	return s, nil
}

// Close stores what was submitted and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if len(s.lazy) > 0 && s.failed == nil && len(s.groups) == 0 {
		s.groupLocked(0)
	}
	if s.lazyTimer != nil {
		s.lazyTimer.Stop()
	}
	s.mu.Unlock()
	if s.disk.stuck() != nil {
		s.disk.cancel() // What waits for the disk will not be stored.
	}
	s.cancel()
	s.ended()
	if s.options.Flush == FlushAsync && s.disk.stuck() == nil {
		// What is there now was on the disk: if it is not there next time, no power loss took it. A full disk cannot be told that.
		_ = s.disk.syncLogs(true)
	}
	s.disk.cancel()
	err := s.closeDB()
	if err == nil && s.failure() == nil {
		err = writeClean(s.options.FS, s.options.Dir)
	}
	select {
	case <-s.gone:
		return err // Pebble may still write. The lock keeps this process from opening the folder once more.
	default:
		return errors.Join(err, s.lock.Close())
	}
}

// ended waits for the store's goroutines, unless Pebble is in a state in which it may hold some of them for ever.
func (s *Store) ended() {
	all := make(chan struct{})
	go func() {
		s.running.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-s.gone:
	}
}

// Err is why the store takes nothing at present; nil when it does.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusalLocked()
}

func (s *Store) refusalLocked() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.failed != nil:
		return s.failed
	}
	return s.disk.stuck()
}

// Now is the store's clock, in milliseconds since 1970, by which messages are stamped and due: it does not follow steps of
// the wall clock.
func (s *Store) Now() int64 { return s.clock.now() }

// every does something again and again until the store is closed.
func (s *Store) every(interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do()
		case <-s.ctx.Done():
			return
		}
	}
}
