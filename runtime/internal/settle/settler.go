package settle

import (
	"container/heap"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// Broker is what settling needs of a cluster: a part of the engine's seam of that name.
type Broker interface {
	SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error
	Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
	SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error)
	StoredBy(topic, shardingKey string) (broker string)
}

// callLimit bounds one call.
const callLimit = 10 * time.Second

// Config makes a Settler.
type Config struct {
	Policy func() *Policy
	Broker Broker
	// RetryOff tells that the group's retry topic is known to take no messages.
	RetryOff func() bool
	// Failed hears of messages that the settler itself fails (an output that no broker may store); may be nil.
	Failed func(d *queue.Delivery, v frame.Verdict, by *frame.LaneInfo)
	// Again gives a message to the handler once more, in place.
	Again func(*queue.Delivery)
	// Broken tells that a message of a strand is going to be tried again which its handler had acked: what the handler has of
	// the strand is to come again after it, whatever is still answered for it. Then j is to be submitted. It never blocks; nil
	// = no handler has any.
	Broken func(d *queue.Delivery, j *Job)
	// Done tells that a message of a strand is settled, so that the next of it may go out; may be nil.
	Done func(o *queue.Ownership, strand uint32)
	// OutputLimit is from how many bytes of outputs on that wait to be stored no more should come: see Full. nil = no limit.
	OutputLimit func() int64
	// Relieved tells that there is room for outputs again; may be nil.
	Relieved func()
	Now      func() time.Time
	Logger   *slog.Logger
}

// Counters count since the settler started.
type Counters struct {
	SentBack, DeadLettered, Resent uint64
	Skipped                        uint64
	InPlace, Blocked               uint64 // tries in place; Blocked: with the retries used up
	OutputsStored                  uint64
	Refusals                       uint64 // calls that failed and are tried again
	Late                           uint64 // made durable after the ownership had ended
}

// Settler carries out jobs. Submit may be called from any goroutine and never blocks: what is under way is bounded by
// the windows that hold the messages.
type Settler struct {
	cfg  Config
	wake chan struct{}

	mu       sync.Mutex // held for memory work only
	inbox    []*Job
	counters Counters
	hold     queue.Hold
	pending  int
	heads    map[headID]Head
	released []*queue.Ownership
	back     []string // brokers: what waits for one is due
	emitted  int64    // bytes of outputs that are not stored
	full     bool     // they are more than the limit

	// The loop's alone.
	bulkheads bulkheads
	waiting   waiting
	lines     lines
	broken    map[line]int64 // the offset of the message that is going to be tried again: see fail
	off       time.Time      // until when the retry topic counts as off, because a broker said so
	shown     time.Time      // when the hold was last published
	over      bool           // no more calls
	results   chan *call
}

// New makes a settler that does nothing until Run.
func New(cfg Config) *Settler {
	return &Settler{
		cfg: cfg, wake: make(chan struct{}, 1), results: make(chan *call), heads: make(map[headID]Head), lines: make(lines), broken: make(map[line]int64),
	}
}

// Submit takes a job.
func (s *Settler) Submit(j *Job) {
	j.items = make([]*Item, len(j.Items))
	for i := range j.Items {
		j.items[i] = &j.Items[i]
	}
	j.memory = &memory{j.held(), 1}
	s.mu.Lock()
	s.inbox = append(s.inbox, j)
	s.pending++
	s.holdOutputs(j.memory.bytes)
	s.mu.Unlock()
	s.poke()
}

// Full tells that outputs wait to be stored which are more than the limit: what is handled now would only add to them.
func (s *Settler) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

// holdOutputs counts outputs that wait, and tells whether there is room for more again; mu is held.
func (s *Settler) holdOutputs(n int64) (relieved bool) {
	if n == 0 || s.cfg.OutputLimit == nil {
		return false
	}
	was := s.full
	s.emitted += n
	s.full = s.emitted > s.cfg.OutputLimit()
	return was && !s.full
}

func (s *Settler) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// TryNow has what waits for a broker tried at once: the one of that name is back. It never blocks.
func (s *Settler) TryNow(broker string) {
	s.mu.Lock()
	s.back = append(s.back, broker)
	s.mu.Unlock()
	s.poke()
}

// tryNow makes what waits for a broker due. Should it be refused once more its pauses begin anew: a broker that has just
// started may be busy for a moment.
func (s *Settler) tryNow() {
	s.mu.Lock()
	back := s.back
	s.back = nil
	s.mu.Unlock()
	if len(back) == 0 {
		return
	}
	s.bulkheads.answers(back)
	now := s.cfg.Now()
	for _, j := range s.waiting {
		if j.step.Kind != StepAgain { // that one waits for its handler
			j.due, j.tries = now, 0
		}
	}
	heap.Init(&s.waiting)
}

// Status returns the counts, the number of jobs under way and why the longest waiting one waits.
func (s *Settler) Status() (c Counters, pending int, hold queue.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters, s.pending, s.hold
}

// Run works until ctx ends. Jobs that are not done by then are dropped: their messages stay unsettled.
func (s *Settler) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		s.take()
		s.release()
		s.tryNow()
		s.due()
		s.bulkheads.start(func(c *call) { go s.make(ctx, c) })
		s.publish()
		timer.Reset(s.pause())
		select {
		case <-ctx.Done():
		case <-s.wake:
		case c := <-s.results:
			s.bulkheads.ended(c)
			s.after(c)
		case <-timer.C:
		}
	}
	s.stop()
}

func (s *Settler) stop() {
	s.over = true
	for s.bulkheads.calls > 0 {
		c := <-s.results
		s.bulkheads.ended(c)
		s.after(c)
	}
	s.take()
	for {
		for _, c := range s.bulkheads.remove(func(*call) bool { return true }) {
			s.after(c)
		}
		jobs := s.waiting
		if s.waiting = nil; len(jobs) == 0 && !s.bulkheads.queued() {
			return
		}
		for _, j := range jobs {
			s.drop(j) // what waited for its turn behind it follows
		}
	}
}

func (s *Settler) take() {
	s.mu.Lock()
	jobs := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, j := range jobs {
		j.since = s.cfg.Now()
		if s.mend(j); len(j.items) == 0 {
			s.finish(j, func(*Counters) {})
			continue
		}
		if j.Verdict.Kind != frame.VerdictAck {
			s.next(j, s.cfg.Policy().First(s.facts(j)))
			continue
		}
		s.lines.enter(j)
		j.parked = true
		s.unpark(j)
	}
}

func (s *Settler) facts(j *Job) Facts { return j.facts(s.retryOff(), s.inPlace(j.first())) }

// offFor is how long a broker's word that the retry topic takes nothing is believed before it is tried again.
const offFor = 30 * time.Second

func (s *Settler) retryOff() bool { return s.cfg.Now().Before(s.off) || s.cfg.RetryOff() }

func (s *Settler) due() {
	now := s.cfg.Now()
	for len(s.waiting) > 0 && !s.waiting[0].due.After(now) {
		if j, ok := heap.Pop(&s.waiting).(*Job); ok {
			j.step.Wait = 0
			s.next(j, j.step)
		}
	}
}

func (s *Settler) pause() time.Duration {
	if len(s.waiting) == 0 {
		return time.Hour
	}
	return max(0, s.waiting[0].due.Sub(s.cfg.Now()))
}

// next does a step that needs no call, or lines the job up.
func (s *Settler) next(j *Job, step Step) {
	j.step = step
	again := step.Kind == StepAgain
	switch {
	case !j.live(), again && j.first().Own.Closing(): // the next owner tries it
		s.drop(j)
	case step.Wait > 0:
		if again {
			s.note(j)
		}
		j.due = s.cfg.Now().Add(step.Wait)
		heap.Push(&s.waiting, j)
	case step.Kind == StepSettle, step.Kind == StepSkip:
		s.settle(j)
	case again:
		s.finish(j, func(c *Counters) {
			if c.InPlace++; step.Blocked {
				c.Blocked++
			}
		})
		d := j.first()
		d.Own.Returned(1)
		d.Attempt++
		s.cfg.Again(d)
	default:
		s.begin(j)
	}
}

// live tells whether the ownership of any message still counts.
func (j *Job) live() bool {
	return slices.ContainsFunc(j.items, func(it *Item) bool { return it.D.Own.Live() })
}

func (s *Settler) settle(j *Job) {
	j.endSpans(nil)
	for _, it := range j.items {
		s.settled(it.D)
	}
	skipped := j.step.Kind == StepSkip
	s.finish(j, func(c *Counters) {
		if skipped {
			c.Skipped++
		}
	})
}

// settled tells the window, and counts what comes after its end: it is durable, and will be delivered once more.
func (s *Settler) settled(d *queue.Delivery) {
	if d.Direct != nil {
		d.Direct(frame.Verdict{Kind: frame.VerdictAck})
	}
	s.unnote(d)
	if s.cfg.Done != nil && d.Strand != 0 {
		defer s.cfg.Done(d.Own, d.Strand)
	}
	if late := d.Own.Settle([]*queue.Delivery{d}); late > 0 {
		s.count(func(c *Counters) { c.Late++ })
	}
}

func (s *Settler) drop(j *Job) {
	for _, it := range j.items {
		s.unnote(it.D)
		it.D.Own.Drop([]*queue.Delivery{it.D}, true)
	}
	s.finish(j, func(*Counters) {})
}

func (s *Settler) finish(j *Job, f func(*Counters)) {
	freed := int64(0)
	if j.memory.jobs--; j.memory.jobs == 0 {
		freed = j.memory.bytes
	}
	s.mu.Lock()
	s.pending--
	f(&s.counters)
	relieved := s.holdOutputs(-freed)
	s.mu.Unlock()
	if relieved && s.cfg.Relieved != nil {
		s.cfg.Relieved()
	}
	s.goOn(s.lines.leave(j, nil))
}

func (s *Settler) count(f func(*Counters)) {
	s.mu.Lock()
	f(&s.counters)
	s.mu.Unlock()
}

func (s *Settler) counted(j *Job) {
	s.count(func(c *Counters) {
		switch {
		case j.step.Kind == StepSendBack && j.step.Level < 0:
			c.DeadLettered++
		case j.step.Kind == StepSendBack:
			c.SentBack++
		case j.step.Kind == StepResend:
			c.Resent++
		}
	})
}

// manyWaiting is from how many waiting jobs on the longest wait is looked up only once a second.
const manyWaiting = 64

// publish makes the longest wait readable. What waited and is being tried again still counts.
func (s *Settler) publish() {
	now := s.cfg.Now()
	stuck, why := s.bulkheads.stuck()
	if len(s.waiting) > manyWaiting && now.Sub(s.shown) < time.Second || len(s.waiting) == 0 && stuck == nil && s.bulkheads.calls > 0 {
		return
	}
	s.shown = now
	var h queue.Hold
	var oldest *Job
	for _, j := range s.waiting {
		paused := j.step.Kind == StepAgain && !j.step.Blocked // waits for its next try: Heads tells
		if !paused && (oldest == nil || j.since.Before(oldest.since)) {
			oldest = j
		}
	}
	if oldest != nil {
		h = oldest.holdReason(s.retryOff())
	}
	if stuck != nil && (oldest == nil || stuck.since.Before(oldest.since)) {
		h = queue.Hold{Kind: queue.HoldSettle, Text: why, Message: stuck.first().Identity(), Since: stuck.since}
	}
	s.mu.Lock()
	s.hold = h
	s.mu.Unlock()
}

func (j *Job) holdReason(off bool) queue.Hold {
	kind := queue.HoldSettle
	switch {
	case j.step.Kind == StepAgain && off:
		kind = queue.HoldRetryOff
	case j.step.Kind == StepAgain:
		kind = queue.HoldExhausted
	}
	return queue.Hold{Kind: kind, Text: j.step.Why, Message: j.first().Identity(), Since: j.since}
}
