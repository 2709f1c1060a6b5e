package broker

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const (
	// deliverAtOnce is how many messages are delivered by one change, deliverBytes about how many bytes of them.
	deliverAtOnce = 256
	deliverBytes  = 4 << 20
	// deliverPause is how long delivery waits after the store refused it.
	deliverPause = time.Second
)

// schedule delivers messages that wait for their time, those of a delay level and those of the timer alike: the store keeps
// them in order of their due times. A delivery and the end of its schedule entry are one change, so each is delivered once,
// whatever happens.
type schedule struct {
	storage *storage
	// deliver stores messages where they were meant to go and ends their schedule entries.
	deliver func([]store.Scheduled) error
	log     *slog.Logger
	wake    chan struct{}
	unsure  bool // a delivery failed that may be stored later all the same; run's own

	mu     sync.Mutex
	from   int64         // nothing is due before
	added  int64         // the earliest that was added since from was read
	recall map[int64]int // by log offset, how many recalls of a message are on their way into the store
	cancel context.CancelFunc
	ended  chan struct{}
}

func newSchedule(s *storage, deliver func([]store.Scheduled) error, log *slog.Logger) *schedule {
	return &schedule{storage: s, deliver: deliver, log: log, wake: make(chan struct{}, 1), recall: make(map[int64]int)}
}

// start delivers what became due while the broker was down, and waits for the rest.
func (s *schedule) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended, s.from = cancel, make(chan struct{}), 0
	go s.run(ctx, s.ended)
}

func (s *schedule) stop() {
	s.mu.Lock()
	cancel, ended := s.cancel, s.ended
	s.cancel = nil
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

// arm tells that a message is due at that time; 0 = look again at all.
func (s *schedule) arm(due int64) {
	s.mu.Lock()
	s.from, s.added = min(s.from, due), min(s.added, due)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *schedule) run(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	for ctx.Err() == nil {
		wait := s.once()
		if wait == 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.wake:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// idleLook is how long the schedule sleeps when nothing waits, longestLook when something does.
const (
	idleLook    = time.Hour
	longestLook = time.Second
)

// once delivers what is due, up to a number, and tells how long to wait until more is; 0 = more may be due.
func (s *schedule) once() time.Duration {
	due, next, err := s.look()
	if err == nil && s.recalled(due) {
		if err = s.storage.settle(s.storage.mark()); err == nil {
			return 0 // It is gone now.
		}
	}
	if err == nil && len(due) > 0 {
		err = s.deliver(due)
		s.unsure = err != nil
	}
	switch {
	case err != nil:
		if s.storage.err() == nil {
			s.log.Error("delivering messages whose time has come", "error", err.Error())
		}
		return deliverPause
	case len(due) > 0:
		s.passed(due[len(due)-1].Due)
		return 0
	case next == 0:
		return idleLook
	}
	s.passed(next)
	// Timers stand still while the machine sleeps, the store's clock does not.
	return min(max(time.Duration(next-s.storage.now())*time.Millisecond, time.Millisecond), longestLook)
}

// look reads what is due. After a delivery that failed it waits until that is decided: a disk that took nothing for a while
// stores later what it was given, and it would be delivered twice.
func (s *schedule) look() (due []store.Scheduled, next int64, err error) {
	if s.unsure {
		if err := s.storage.settle(s.storage.mark()); err != nil {
			return nil, 0, err
		}
		s.unsure = false
	}
	s.mu.Lock()
	from := s.from
	s.added = math.MaxInt64
	s.mu.Unlock()
	return s.storage.scheduled(from, s.storage.now(), deliverAtOnce, deliverBytes)
}

// recalling notes that a recall of a message is on its way into the store, by 1, or no longer, by −1.
func (s *schedule) recalling(logOffset int64, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recall[logOffset] += by; s.recall[logOffset] == 0 {
		delete(s.recall, logOffset)
	}
}

// recalled tells whether some of the messages that are due are being recalled: the store has them still, and would have them
// delivered behind the recall.
func (s *schedule) recalled(due []store.Scheduled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(due, func(e store.Scheduled) bool { return s.recall[e.LogOffset] > 0 })
}

// passed notes that nothing is due before a time, but for what was added since the schedule was looked at.
func (s *schedule) passed(to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = min(to, s.added)
}

// deliver stores messages that waited in the topics they were meant for. Their properties stay as they are: consumers of
// RocketMQ see DELAY, REAL_TOPIC and REAL_QID.
func (b *Broker) deliver(due []store.Scheduled) error {
	w := b.newWrite()
	w.change.Unschedule = due
	for i := range due {
		e := &due[i]
		if e.Raw == nil {
			continue // Its topic was deleted.
		}
		if err := b.due(w, e); err != nil {
			b.config.Logger.Error("a message whose time has come cannot be delivered, it is dropped", "log_offset", e.LogOffset, "error", err.Error())
		}
	}
	return w.wait()
}

func (b *Broker) due(w *write, e *store.Scheduled) error {
	m := new(wire.Message)
	if _, err := m.Decode(e.Raw); err != nil {
		return err
	}
	e.Topic, e.Keys = string(m.Topic), indexKeys(m.Properties)
	d := draftOf(m)
	queue, err := strconv.ParseInt(d.properties.get(wire.PropRealQueueID), 10, 32)
	if err != nil {
		return fmt.Errorf("reading its queue: %w", err)
	}
	if queue < 0 || queue >= maxTopicQueues {
		return fmt.Errorf("there is no queue %d", queue) // The store would refuse it, and with it all that is due.
	}
	d.topic, d.queue = d.properties.get(wire.PropRealTopic), int32(queue)
	r, err := b.record(d, m.Properties)
	if err != nil {
		return err
	}
	w.add(d.topic, d.queue, r)
	return nil
}
