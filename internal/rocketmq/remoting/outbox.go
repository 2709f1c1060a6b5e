package remoting

import (
	"context"
	"sync"
)

// outFrame is one encoded frame on its way to the socket.
type outFrame struct {
	buf   *buffer
	from  int      // bytes that are written already
	state outState // guarded by outbox.mu
}

func (f *outFrame) rest() []byte { return f.buf.b[f.from:] }

type outState uint8

const (
	outNew       outState = iota // not queued yet
	outQueued                    // waits for the writer
	outTaken                     // the writer has it: bytes may have left
	outWithdrawn                 // its request ended first: it will not be written
)

// outbox lets one write at a time. Whoever has a frame while nobody writes may write it himself (claim); frames that come
// while a write is under way gather for the writer, and go out together.
type outbox struct {
	limit int
	wake  chan struct{}

	mu      sync.Mutex
	writing bool      // a caller or the writer has the socket
	first   *outFrame // a caller's frame that the socket did not take whole
	queue   []*outFrame
	bytes   int           // of queue
	freed   chan struct{} // closed when the writer takes the queue; callers beyond the limit wait for it
}

func newOutbox(limit int) *outbox {
	return &outbox{limit: limit, wake: make(chan struct{}, 1), freed: make(chan struct{})}
}

// put queues f. Beyond the limit it waits under ctx; a frame longer than the limit passes when it is alone.
func (o *outbox) put(ctx context.Context, done <-chan struct{}, f *outFrame) error {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 || o.bytes+len(f.buf.b) <= o.limit {
			f.state = outQueued
			o.queue = append(o.queue, f)
			o.bytes += len(f.buf.b)
			o.mu.Unlock()
			o.kick()
			return nil
		}
		freed := o.freed
		o.mu.Unlock()
		select {
		case <-freed:
		case <-done:
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryPut is put for those who must not wait; false: beyond the limit.
func (o *outbox) tryPut(f *outFrame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.bytes+len(f.buf.b) > o.limit {
		return false
	}
	f.state = outQueued
	o.queue = append(o.queue, f)
	o.bytes += len(f.buf.b)
	o.kick()
	return true
}

func (o *outbox) kick() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// claim gives the socket to the caller, for f alone, when nobody has it and nothing waits for it. release must follow.
func (o *outbox) claim(f *outFrame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing || o.first != nil || len(o.queue) > 0 {
		return false
	}
	o.writing, f.state = true, outTaken
	return true
}

// release gives the socket back. rest is the claimed frame when it is not written whole: it goes before all others.
func (o *outbox) release(rest *outFrame) {
	o.mu.Lock()
	o.writing, o.first = false, rest
	waiting := rest != nil || len(o.queue) > 0
	o.mu.Unlock()
	if waiting {
		o.kick()
	}
}

// take hands all frames that wait to the writer, which has the socket until it releases it. It hands out nothing while a
// caller has the socket.
func (o *outbox) take(into []*outFrame) []*outFrame {
	o.mu.Lock()
	defer o.mu.Unlock()
	into = into[:0]
	if o.writing {
		return into
	}
	if o.first != nil {
		into = append(into, o.first)
		o.first = nil
	}
	for _, f := range o.queue {
		if f.state == outQueued {
			f.state = outTaken
			into = append(into, f)
		}
	}
	clear(o.queue)
	o.queue = o.queue[:0]
	o.bytes = 0
	o.writing = len(into) > 0
	close(o.freed)
	o.freed = make(chan struct{})
	return into
}

// withdraw keeps f from being written. false = too late, bytes may have left.
func (o *outbox) withdraw(f *outFrame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.state == outTaken {
		return false
	}
	f.state = outWithdrawn
	return true
}
