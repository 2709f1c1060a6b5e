package runtime

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// sink is where a stream's queues bring their messages: the dispatcher of the present handler, and those of earlier ones
// until what they have out is answered.
type sink struct {
	s *stream

	mu      sync.Mutex      // held for memory work only
	ctx     context.Context //nolint:containedctx // the life of the dispatchers, ended by the stream
	current *dispatch.Dispatcher
	next    *dispatch.Dispatcher // of an ordered stream: it begins once nothing of current is out
	older   []*dispatch.Dispatcher
	running sync.WaitGroup
	past    dispatch.Counters // of dispatchers that have ended
	strands atomic.Uint32     // the last number of a strand
}

func newSink(s *stream) *sink {
	k := &sink{s: s}
	k.current = k.dispatcher()
	return k
}

func (k *sink) dispatcher() *dispatch.Dispatcher {
	c := k.s.config()
	lanes := max(1, c.Shards)
	spec := frame.LaneSpec{
		Handler: c.Handler, Stream: c.Name, Concurrency: (c.Concurrency + lanes - 1) / lanes,
		Credits: max(4*c.Batch.Max, (c.Credits+lanes-1)/lanes), Deadline: c.Deadline, Ordered: c.Order.ordered(),
	}
	return dispatch.New(dispatch.Config{
		Settings: dispatchSettings(c), Spec: spec, Shards: lanes,
		Open: func(ctx context.Context, spec frame.LaneSpec) (dispatch.Lane, error) {
			l, err := k.s.rt.Handlers.Open(ctx, spec)
			if err != nil {
				return nil, err //nolint:wrapcheck // the host's words say it all
			}
			return l, nil
		},
		Settle: k.s.settler.Submit, Hooks: newHooks(k.s), Now: k.s.rt.Now, Logger: k.s.log,
		Move: k.move, Numbers: &k.strands, Full: k.s.settler.Full,
	})
}

func (k *sink) start(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ctx = ctx
	d := k.current
	k.running.Go(func() { d.Run(ctx) })
}

func (k *sink) wait() { k.running.Wait() }

// replace opens the lanes of the present config and lets the old dispatcher end when what it has out is answered; what
// it has not sent moves over at once, or in an ordered stream when nothing is out: no strand is at two handlers.
func (k *sink) replace(ordered bool) {
	next := k.dispatcher()
	k.mu.Lock()
	defer k.mu.Unlock()
	if ordered || k.next != nil {
		k.replaceLater(next)
		return
	}
	old, ctx := k.current, k.ctx
	k.current = next
	k.older = append(k.older, old)
	k.running.Go(func() { next.Run(ctx) })
	old.Surrender(k.s.config().DrainLimit)
	k.running.Go(func() {
		<-old.Done()
		k.mu.Lock()
		defer k.mu.Unlock()
		for i, d := range k.older {
			if d == old {
				k.older = append(k.older[:i], k.older[i+1:]...)
				break
			}
		}
		addDispatch(&k.past, old.Status().Counters)
	})
}

// replaceLater lets next take over once nothing of the old dispatcher is out; mu is held. Of several that come meanwhile
// the last does.
func (k *sink) replaceLater(next *dispatch.Dispatcher) {
	waiting, old, ctx := k.next, k.current, k.ctx
	k.next = next
	k.running.Go(func() { next.Run(ctx) })
	if waiting != nil {
		waiting.Surrender(0) // it has nothing
		return
	}
	old.Quiesce(k.s.config().DrainLimit)
	k.running.Go(func() {
		<-old.Done()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.current, k.next = k.next, nil
		k.current.TakeOver(old.Left())
		addDispatch(&k.past, old.Status().Counters)
	})
}

// with calls f with the present dispatcher, which is not replaced meanwhile: what it is given stands before its surrender,
// so that no message goes to one that has ended.
func (k *sink) with(f func(*dispatch.Dispatcher)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.current)
}

// Offer implements queue.Sink.
func (k *sink) Offer(o *queue.Ownership, ds []queue.Delivery) {
	k.with(func(d *dispatch.Dispatcher) { d.Offer(o, ds) })
}

// Revoke implements queue.Sink.
func (k *sink) Revoke(o *queue.Ownership, cut bool) {
	k.mu.Lock()
	for _, d := range append([]*dispatch.Dispatcher{k.current}, k.older...) {
		d.Revoke(o, cut)
	}
	k.mu.Unlock()
	k.s.settler.Release(o)
}

// move takes what an older dispatcher has not sent.
func (k *sink) move(one *queue.Delivery) { k.with(func(d *dispatch.Dispatcher) { d.Move(one) }) }

func (k *sink) again(one *queue.Delivery) { k.with(func(d *dispatch.Dispatcher) { d.Again(one) }) }

// broken tells that the settler has a message of a strand tried again that a handler had acked.
func (k *sink) broken(one *queue.Delivery, j *settle.Job) {
	k.with(func(d *dispatch.Dispatcher) { d.Broken(one, j) })
}

// poke lets the present dispatcher look again whether something can be sent.
func (k *sink) poke() { k.with(func(d *dispatch.Dispatcher) { d.Poke() }) }

func (k *sink) configure(s dispatch.Settings) {
	k.with(func(d *dispatch.Dispatcher) { d.Configure(s) })
}

// status is that of the present dispatcher, with the counts of all.
func (k *sink) status() dispatch.Status {
	k.mu.Lock()
	current, older, counts := k.current, append([]*dispatch.Dispatcher(nil), k.older...), k.past
	k.mu.Unlock()
	s := current.Status()
	for _, d := range older {
		addDispatch(&counts, d.Status().Counters)
	}
	addDispatch(&s.Counters, counts)
	return s
}

func addDispatch(to *dispatch.Counters, c dispatch.Counters) {
	to.Batches += c.Batches
	to.Records += c.Records
	to.Acks += c.Acks
	to.Retries += c.Retries
	to.Rejects += c.Rejects
	to.Untouched += c.Untouched
	to.Deadlines += c.Deadlines
	to.Late += c.Late
	to.LanesLost += c.LanesLost
	to.Crashes += c.Crashes
	to.Suspects += c.Suspects
	to.Poisoned += c.Poisoned
	to.Outputs += c.Outputs
	to.Redelivered += c.Redelivered
}
