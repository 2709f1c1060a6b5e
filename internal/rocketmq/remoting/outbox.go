package remoting

import (
	"context"
	"sync"
)

// outFrame is one encoded frame on its way to the socket.
type outFrame struct {
	buf   *buffer
	state outState // guarded by outbox.mu
}

type outState uint8

const (
	outNew       outState = iota // not queued yet
	outQueued                    // waits for the writer
	outTaken                     // the writer has it: bytes may have left
	outWithdrawn                 // its request ended first: it will not be written
)

// outbox queues frames for the one writer. Frames of concurrent senders that gather while a write is under way go out
// together in the next one; a lone frame waits for nothing.
type outbox struct {
	limit int
	wake  chan struct{}

	mu    sync.Mutex
	queue []*outFrame
	bytes int
	freed chan struct{} // closed when the writer takes the queue; callers beyond the limit wait for it
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
			select {
			case o.wake <- struct{}{}:
			default:
			}
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

// take hands all queued frames to the writer.
func (o *outbox) take(into []*outFrame) []*outFrame {
	o.mu.Lock()
	defer o.mu.Unlock()
	into = into[:0]
	for _, f := range o.queue {
		if f.state == outQueued {
			f.state = outTaken
			into = append(into, f)
		}
	}
	clear(o.queue)
	o.queue = o.queue[:0]
	o.bytes = 0
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
