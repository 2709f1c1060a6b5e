package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/streamd/streamd/internal/frame"
)

// The pauses between failed openings; the host has its own for the process.
const (
	firstOpenPause = 50 * time.Millisecond
	longOpenPause  = 5 * time.Second
)

// keepOpen keeps the lane of one shard open until ctx ends.
func (d *Dispatcher) keepOpen(ctx context.Context, shard int) {
	spec := d.cfg.Spec
	spec.Shard = shard
	failures, patience := 0, firstPatience
	for ctx.Err() == nil {
		start := d.cfg.Now()
		lost, err := d.runLane(ctx, spec, patience)
		if errors.Is(err, errNotReady) {
			patience = min(2*patience, longPatience)
			continue
		}
		patience = firstPatience
		switch {
		case err == nil && (orderly(lost.Cause) || d.cfg.Now().Sub(start) > livedLong):
			failures = 0
			continue
		case err != nil:
			d.noteOpen(err)
		}
		failures++
		pause(ctx, failures)
	}
}

// orderly tells whether a lane ended without the plugin's fault.
func orderly(cause frame.Cause) bool { return cause == frame.CauseSwap || cause == frame.CauseStopped }

// How long a lane is waited for until the status says why there is none: longer each time, since asking again ends an
// opening that is under way.
const (
	firstPatience = 2 * time.Second
	longPatience  = 30 * time.Second
)

var errNotReady = errors.New("still waiting for it")

// livedLong is how long a process has to live for the next one to be started without a pause.
const livedLong = 5 * time.Second

func pause(ctx context.Context, failures int) {
	p := firstOpenPause
	for range min(failures, 10) {
		p *= 2
	}
	p = min(p, longOpenPause)
	t := time.NewTimer(p/2 + rand.N(p/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// openSolo opens the lane of a process that sees one record at a time.
func (d *Dispatcher) openSolo(ctx context.Context) {
	spec := d.cfg.Spec
	spec.Solo, spec.Concurrency, spec.Credits = true, 1, 1
	if _, err := d.runLane(ctx, spec, longPatience); err != nil {
		if !errors.Is(err, errNotReady) {
			d.noteOpen(err)
		}
		pause(ctx, 1)
		d.push(Input{Kind: InEvent, Lane: noLane, Event: frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseStopped, Text: err.Error()}}})
	}
}

// noteWhy keeps why there is no lane, for the status; nil: there is one.
func (d *Dispatcher) noteWhy(err error) {
	d.mu.Lock()
	d.lastErr = err
	d.mu.Unlock()
	d.push(Input{Kind: InTick}) // the loop publishes it
}

func (d *Dispatcher) noteOpen(err error) {
	d.noteWhy(err)
	d.cfg.Logger.Warn("handler's lane is not open", "handler", d.cfg.Spec.Handler, "error", err.Error())
}

// runLane opens one lane and forwards its events until its last, whose word on why it ended it returns; err: it was not
// opened, which is errNotReady when nothing speaks against waiting on.
func (d *Dispatcher) runLane(ctx context.Context, spec frame.LaneSpec, patience time.Duration) (lost frame.Lost, err error) {
	f := &forwarder{d: d, admitted: make(chan struct{})}
	spec.Deliver = f.deliver
	l, err := d.open(ctx, spec, patience)
	if err != nil {
		return lost, err
	}
	d.noteWhy(nil)
	f.id = d.admit(l, spec.Solo)
	close(f.admitted)
	stop := context.AfterFunc(ctx, func() { l.Abort(context.Cause(ctx)) })
	defer stop()
	for e := range l.Events() {
		f.deliver(e)
	}
	if !f.last { // a host that closes without a word: nothing is known of what was out
		f.lost = frame.Lost{Cause: frame.CauseProtocol, Text: "lane closed without a last event"}
		d.push(Input{Kind: InEvent, Lane: f.id, Event: frame.Event{Kind: frame.EventLost, Lost: &f.lost}})
	}
	return f.lost, nil
}

// forwarder brings a lane's events to the dispatcher, on the goroutine that reads them: a batch's answer takes no way over
// another. Its fields are read elsewhere only after the lane's Events are closed.
type forwarder struct {
	d        *Dispatcher
	admitted chan struct{} // closed when the dispatcher knows the lane
	id       LaneID
	last     bool
	lost     frame.Lost
}

func (f *forwarder) deliver(e frame.Event) {
	<-f.admitted
	f.last = e.Kind == frame.EventLost || e.Kind == frame.EventDrained
	if e.Lost != nil {
		f.lost = *e.Lost
		f.d.noteWhy(errors.New(f.lost.Text))
	}
	f.d.push(Input{Kind: InEvent, Lane: f.id, Event: e})
}

// open asks the host for a lane. It comes back from time to time to tell why there is none yet.
func (d *Dispatcher) open(ctx context.Context, spec frame.LaneSpec, patience time.Duration) (Lane, error) {
	opening, cancel := context.WithTimeoutCause(ctx, patience, errNotReady)
	defer cancel()
	l, err := d.cfg.Open(opening, spec)
	if errors.Is(err, errNotReady) {
		d.noteWhy(err)
	}
	return l, err
}

// admit gives a lane its id and tells the core.
func (d *Dispatcher) admit(l Lane, solo bool) LaneID {
	d.openMu.Lock()
	d.nextID++
	id := d.nextID
	d.openMu.Unlock()
	d.push(Input{Kind: InOpened, Lane: id, Info: l.Info(), Solo: solo, lane: l})
	return id
}
