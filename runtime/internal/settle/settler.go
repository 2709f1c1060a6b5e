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
}

// MaxCalls bounds the calls in flight of one stream.
const MaxCalls = 32

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
	wakeAll  bool  // what waits for a broker is due
	emitted  int64 // bytes of outputs that are not stored
	full     bool  // they are more than the limit

	// The loop's alone.
	ready   []*Job
	waiting waiting
	lines   lines
	calls   int
	off     time.Time // until when the retry topic counts as off, because a broker said so
	shown   time.Time // when the hold was last published
	results chan *result
}

type result struct {
	job     *Job
	outcome Outcome
	text    string
}

// New makes a settler that does nothing until Run.
func New(cfg Config) *Settler {
	return &Settler{cfg: cfg, wake: make(chan struct{}, 1), results: make(chan *result), heads: make(map[headID]Head), lines: make(lines)}
}

// Submit takes a job.
func (s *Settler) Submit(j *Job) {
	j.bytes = j.held()
	s.mu.Lock()
	s.inbox = append(s.inbox, j)
	s.pending++
	s.holdOutputs(j.bytes)
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

// TryNow has what waits for a broker tried at once: one is back. It never blocks.
func (s *Settler) TryNow() {
	s.mu.Lock()
	s.wakeAll = true
	s.mu.Unlock()
	s.poke()
}

// tryNow makes what waits for a broker due. Should it be refused once more its pauses begin anew: a broker that has just
// started may be busy for a moment.
func (s *Settler) tryNow() {
	s.mu.Lock()
	wake := s.wakeAll
	s.wakeAll = false
	s.mu.Unlock()
	if !wake {
		return
	}
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
		s.start(ctx)
		s.publish()
		timer.Reset(s.pause())
		select {
		case <-ctx.Done():
		case <-s.wake:
		case r := <-s.results:
			s.calls--
			s.after(r)
		case <-timer.C:
		}
	}
	s.stop()
}

func (s *Settler) stop() {
	for ; s.calls > 0; s.calls-- {
		s.after(<-s.results)
	}
	s.take()
	for len(s.ready)+len(s.waiting) > 0 {
		jobs := slices.Concat(s.ready, []*Job(s.waiting))
		s.ready, s.waiting = nil, nil
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
		step := s.cfg.Policy().First(s.facts(j))
		if step.Kind == StepProduce {
			s.lines.enter(j)
		}
		if j.parked = !s.lines.first(j); j.parked {
			j.step = step
			continue
		}
		s.next(j, step)
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
		s.ready = append(s.ready, j)
	}
}

// live tells whether the ownership of any message still counts.
func (j *Job) live() bool {
	for i := range j.Items {
		if j.Items[i].D.Own.Live() {
			return true
		}
	}
	return false
}

func (s *Settler) start(ctx context.Context) {
	n := 0
	for ; n < len(s.ready) && s.calls < MaxCalls; n++ {
		s.calls++
		go s.call(ctx, s.ready[n])
	}
	s.ready = append(s.ready[:0], s.ready[n:]...)
}

func (s *Settler) settle(j *Job) {
	j.endSpans(nil)
	for i := range j.Items {
		s.settled(j.Items[i].D)
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
	for i := range j.Items {
		d := j.Items[i].D
		s.unnote(d)
		d.Own.Drop([]*queue.Delivery{d}, true)
	}
	s.finish(j, func(*Counters) {})
}

func (s *Settler) finish(j *Job, f func(*Counters)) {
	s.mu.Lock()
	s.pending--
	f(&s.counters)
	relieved := s.holdOutputs(-j.bytes)
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

// after acts on the end of a call.
func (s *Settler) after(r *result) {
	j := r.job
	if r.outcome == OutcomeDone {
		s.counted(j)
		j.step = Step{Kind: StepSettle}
		s.settle(j) // also when the ownership has ended: it is durable now, which is to be counted
		return
	}
	s.count(func(c *Counters) { c.Refusals++ })
	s.split(j)
	s.invalid(j)
	if len(j.Items) == 0 {
		s.finish(j, func(*Counters) {})
		return
	}
	s.goOn(s.lines.leave(j, j.Items))
	step := s.cfg.Policy().Next(s.facts(j), j.step, r.outcome, r.text)
	if step.Off {
		s.off = s.cfg.Now().Add(offFor)
	}
	if step.Kind == j.step.Kind {
		j.tries++
	} else {
		j.tries = 0
	}
	if j.tries == 1 || j.tries%20 == 0 {
		s.cfg.Logger.Warn("verdict is not durable yet, it is tried again", "queue", j.first().Queue().String(), "msg_id", j.first().Identity(), "tries", j.tries, "error", r.text)
	}
	s.next(j, step)
}

// split settles the messages of a job whose outputs are all stored, so that one refused output holds only its own.
func (s *Settler) split(j *Job) {
	if j.step.Kind != StepProduce {
		return
	}
	rest := j.Items[:0]
	for i := range j.Items {
		it := j.Items[i]
		if len(it.Outputs) > 0 {
			rest = append(rest, it)
			continue
		}
		endSpan(it.D, j.Verdict, nil)
		s.settled(it.D)
	}
	j.Items = rest
}

// invalid makes jobs of their own of messages whose outputs no broker may store: they are retried as failed.
func (s *Settler) invalid(j *Job) {
	rest := j.Items[:0]
	for i := range j.Items {
		it := j.Items[i]
		if it.invalid == "" {
			rest = append(rest, it)
			continue
		}
		v := frame.Verdict{Kind: frame.VerdictRetry, Class: "output", Text: it.invalid}
		if it.D.Direct != nil { // nobody settles it
			it.D.Direct(v)
			it.D.Own.Settle([]*queue.Delivery{it.D})
			continue
		}
		s.Submit(&Job{Items: []Item{{D: it.D}}, Verdict: v, Info: j.Info})
		if s.cfg.Failed != nil {
			s.cfg.Failed(it.D, v, &j.Info)
		}
	}
	j.Items = rest
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
	if len(s.waiting) > manyWaiting && now.Sub(s.shown) < time.Second || len(s.waiting) == 0 && s.calls > 0 {
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
