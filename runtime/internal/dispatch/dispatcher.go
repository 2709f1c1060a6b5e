package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
	"github.com/streamd/streamd/sdk"
)

// Lane is one bidirectional stream to a handler process: the engine's seam of that name, with its rules.
type Lane interface {
	Info() frame.LaneInfo
	Send(b *frame.Batch) error
	Events() <-chan frame.Event
	Cancel(seq uint64, index []uint32)
	Revoke(queues []sdk.Queue)
	Drain(ctx context.Context) error
	Abort(cause error)
}

// Hooks hear of attempts; the engine's observer fills them. Calls come from the dispatcher's goroutine and must not block.
type Hooks interface {
	// Begun counts n attempts of d's queue and topic that begin together.
	Begun(d *queue.Delivery, n int)
	// Attempt opens an attempt: it may set d.Span, and writes the span context for the handler's process. identity is lent.
	Attempt(d *queue.Delivery, identity []byte, batch int, trace *[frame.TraceSize]byte)
	// Acked counts n attempts of d's queue and topic that began together and were acked together.
	Acked(d *queue.Delivery, n int, took time.Duration)
	// Answered is called for each other verdict.
	Answered(d *queue.Delivery, v frame.Verdict, took time.Duration)
	// Failed is called for each verdict retry or reject, each deadline and each crash (class "crash" or "hang", no kind).
	Failed(d *queue.Delivery, v frame.Verdict, by *frame.LaneInfo, now time.Time)
}

// Config makes a Dispatcher.
type Config struct {
	Settings Settings
	// Spec is the base of every lane's spec; Shard and Solo are filled in.
	Spec   frame.LaneSpec
	Shards int
	Open   func(ctx context.Context, spec frame.LaneSpec) (Lane, error)
	Settle func(*settle.Job)
	// Numbers numbers the strands of a stream over all its dispatchers; nil = this one's alone.
	Numbers *atomic.Uint32
	// Full tells that nothing more is to be sent for now: what was answered waits to be settled. Then Poke is called; nil = never.
	Full func() bool
	// Move gives a message that was not sent to the dispatcher that replaces this one.
	Move   func(*queue.Delivery)
	Hooks  Hooks // may be nil
	Now    func() time.Time
	Logger *slog.Logger
}

// Dispatcher runs a Core. Offer, Revoke, Again and Configure never block and may be called from any goroutine.
type Dispatcher struct {
	cfg    Config
	wake   chan struct{}
	done   chan struct{}
	retire chan time.Duration

	mu      sync.Mutex // held for memory work only
	inbox   []Input
	status  Status
	lastErr error // why a lane could not be opened

	// The loop's alone.
	core    *Core
	lanes   map[LaneID]Lane
	builder frame.Builder
	batch   frame.Batch
	trace   [frame.TraceSize]byte
	tags    map[string]string
	idText  []byte
	spare   []Input
	jobs    map[*frame.Results]*settle.Job
	solo    func()     // opens the solo lane
	drain   func(Lane) // lets a lane that is not needed end

	openMu sync.Mutex // guards nextID
	nextID LaneID
}

// Status is a reading of a dispatcher.
type Status struct {
	Lanes    int
	Info     frame.LaneInfo // of the first lane
	Ready    int
	Suspects int
	Counters Counters
	Hold     queue.Hold
}

// New makes a dispatcher that does nothing until Run.
func New(cfg Config) *Dispatcher {
	core := NewCore(cfg.Settings)
	if cfg.Numbers != nil {
		core.numbers = cfg.Numbers
	}
	return &Dispatcher{
		cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), retire: make(chan time.Duration, 1), core: core, lanes: make(map[LaneID]Lane),
		tags: make(map[string]string), jobs: make(map[*frame.Results]*settle.Job),
	}
}

// Offer implements queue.Sink.
func (d *Dispatcher) Offer(o *queue.Ownership, ds []queue.Delivery) {
	d.push(Input{Kind: InOffer, Own: o, Deliveries: ds})
}

// Revoke implements queue.Sink.
func (d *Dispatcher) Revoke(o *queue.Ownership, cut bool) {
	d.push(Input{Kind: InRevoke, Own: o, Cut: cut})
}

// Move takes a message that the dispatcher before this one has not sent.
func (d *Dispatcher) Move(one *queue.Delivery) { d.push(Input{Kind: InMove, One: one}) }

// Again takes back a message that the settler had, to be tried in place.
func (d *Dispatcher) Again(one *queue.Delivery) { d.push(Input{Kind: InAgain, One: one}) }

// Poke has it look again whether something can be sent.
func (d *Dispatcher) Poke() { d.push(Input{Kind: InTick}) }

// Configure changes the settings of batches.
func (d *Dispatcher) Configure(s Settings) { d.push(Input{Kind: InSettings, Settings: &s}) }

func (d *Dispatcher) push(in Input) {
	d.mu.Lock()
	d.inbox = append(d.inbox, in)
	first := len(d.inbox) == 1
	d.mu.Unlock()
	if !first {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Surrender lets the dispatcher end: what it has not sent moves, what is out is waited for up to limit, then its lanes are
// aborted and the rest moves too. Done is closed when Run returns.
func (d *Dispatcher) Surrender(limit time.Duration) {
	d.push(Input{Kind: InSurrender})
	d.retire <- limit
}

// Done is closed when Run has returned.
func (d *Dispatcher) Done() <-chan struct{} { return d.done }

// Status reads the dispatcher's state.
func (d *Dispatcher) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Run opens the lanes and works until ctx ends; lanes that are open then are aborted. Queues must be drained before.
func (d *Dispatcher) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var lanes sync.WaitGroup
	for shard := range max(1, d.cfg.Shards) {
		lanes.Go(func() { d.keepOpen(ctx, shard) })
	}
	d.solo = func() { lanes.Go(func() { d.openSolo(ctx) }) }
	d.drain = func(l Lane) { lanes.Go(func() { closeLane(ctx, l) }) }
	d.loop(ctx)
	cancel()
	lanes.Wait()
	for _, in := range d.take() { // what came after the end goes where a surrender sends it, or is dropped
		d.step(d.cfg.Now(), in)
	}
	close(d.done)
}

func (d *Dispatcher) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var until time.Time
	for {
		now := d.cfg.Now()
		for _, in := range d.take() {
			d.step(now, in)
		}
		d.step(now, Input{Kind: InTick})
		d.publish()
		if !until.IsZero() && d.retired(now, &until) {
			return
		}
		timer.Reset(d.sleep(now, until))
		select {
		case <-ctx.Done():
			d.end()
			return
		case limit := <-d.retire:
			until = now.Add(limit)
		case <-d.wake:
		case <-timer.C:
		}
	}
}

// retired ends a surrender: when nothing is out, or by aborting the lanes when the time is up.
func (d *Dispatcher) retired(now time.Time, until *time.Time) bool {
	if d.core.Idle() {
		return true
	}
	if !now.Before(*until) {
		for _, l := range d.lanes {
			l.Abort(errReplaced)
		}
		*until = now.Add(time.Minute)
	}
	return false
}

var errReplaced = errors.New("the handler was replaced and did not answer in time")

// end drops what never got out, so that owners see it unsettled and its memory is given back: all queues are closed by now.
func (d *Dispatcher) end() {
	for _, in := range d.take() {
		if in.Kind == InRevoke || in.Kind == InOffer || in.Kind == InAgain || in.Kind == InMove || in.Kind == InBroken {
			d.step(d.cfg.Now(), in)
		}
	}
}

func (d *Dispatcher) take() []Input {
	d.mu.Lock()
	in := d.inbox
	clear(d.spare)
	d.inbox, d.spare = d.spare[:0], in
	d.mu.Unlock()
	return in
}

func (d *Dispatcher) sleep(now, until time.Time) time.Duration {
	at := d.core.Next(now)
	if !until.IsZero() && (at.IsZero() || until.Before(at)) {
		at = until
	}
	if at.IsZero() {
		return time.Hour
	}
	return max(0, at.Sub(now))
}

func (d *Dispatcher) publish() {
	info, _ := d.core.Info()
	s := Status{Lanes: d.core.Lanes(), Info: info, Ready: d.core.Ready(), Suspects: d.core.Suspects(), Counters: d.core.Counters()}
	if text, broken := d.core.Broken(); broken {
		s.Hold = queue.Hold{Kind: queue.HoldPluginBroken, Text: text}
	} else if d.core.Dry() {
		s.Hold = queue.Hold{Kind: queue.HoldNoCredit, Text: "handler " + d.cfg.Spec.Handler + " takes no messages: plugin " + info.Plugin +
			" has none in hand and grants no credit for more; mend or replace it"}
	}
	d.mu.Lock()
	if s.Hold.Kind == "" && s.Lanes == 0 {
		s.Hold = queue.Hold{Kind: queue.HoldPluginDown, Text: "no process answers for handler " + d.cfg.Spec.Handler}
		if d.lastErr != nil {
			s.Hold.Text += ": " + d.lastErr.Error()
		}
	}
	if s.Hold.Kind != "" {
		s.Hold.Since = d.status.Hold.Since
		if d.status.Hold.Kind != s.Hold.Kind {
			s.Hold.Since = d.cfg.Now()
		}
	}
	d.status = s
	d.mu.Unlock()
}

func (d *Dispatcher) step(now time.Time, in Input) {
	if in.Kind == InEvent && (in.Event.Kind == frame.EventLost || in.Event.Kind == frame.EventDrained) {
		delete(d.lanes, in.Lane)
	}
	if in.Kind == InOpened {
		d.lanes[in.Lane] = in.lane
	}
	d.core.full = d.cfg.Full != nil && d.cfg.Full()
	actions := d.core.Step(now, in)
	for i := range actions {
		d.do(now, &actions[i])
	}
	for r, j := range d.jobs {
		delete(d.jobs, r)
		d.cfg.Settle(j)
	}
}
