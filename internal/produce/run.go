package produce

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// Sender stores messages. *rocketmq.Client fills it. Its methods run concurrently.
type Sender interface {
	Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
	SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error)
}

// Options says how messages are sent. The zero value sends one after another as fast as they are stored.
type Options struct {
	Rate     float64       // messages per second; 0 = no limit
	Batch    int           // messages per request; below 2 = each on its own. Delayed messages never share a request.
	InFlight int           // requests at once; below 2 = one, which keeps the order
	Trace    bool          // adds a W3C traceparent with a new, sampled trace to each message without one
	RetryFor time.Duration // a failed request is sent again for so long; the broker may store a message twice
	// Unreachable, when set, makes Run end at the first message whose failure it reports: nobody is there to send to.
	Unreachable func(error) bool
}

// Result is what became of one message. Err is nil when it is stored.
type Result struct {
	N       int // from 1, in the order read
	Message *rocketmq.OutgoingMessage
	Stored  rocketmq.SendResult
	Err     error
}

// Summary counts what Run did.
type Summary struct {
	Stored, Failed int
	Bytes          int64 // bodies of what is stored
	Took           time.Duration
	First          error // the first failure
}

// Run sends everything the source gives and calls each for every message, one call at a time, in no promised order when
// several requests are in flight. It returns early when ctx ends (what was in flight is waited for and reported) or when
// nobody can be reached. The error is the source's own, ctx's cause, or the failure of reaching anybody; failures of
// single messages are in the results and the summary only.
func Run(ctx context.Context, to Sender, from Source, o Options, each func(Result)) (Summary, error) {
	r := &run{to: to, o: o, each: each, start: time.Now()}
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	work := make(chan []Result)
	var senders sync.WaitGroup
	for range max(o.InFlight, 1) {
		senders.Go(func() {
			for batch := range work {
				r.deliver(ctx, batch)
			}
		})
	}
	err := r.feed(ctx, from, work)
	close(work)
	senders.Wait()
	r.summary.Took = time.Since(r.start)
	if r.fatal != nil {
		err = r.fatal
	}
	return r.summary, err
}

type run struct {
	to    Sender
	o     Options
	start time.Time
	stop  context.CancelCauseFunc

	mu      sync.Mutex // guards what follows, and the calls of each
	each    func(Result)
	summary Summary
	fatal   error
}

// feed reads the source, paces, groups and hands over.
func (r *run) feed(ctx context.Context, from Source, work chan<- []Result) error {
	var group []Result
	defer func() { // what was read and not handed over is reported all the same
		for _, g := range group {
			g.Err = fmt.Errorf("not sent: %w", context.Cause(ctx))
			r.report(g)
		}
	}()
	hand := func() bool {
		if len(group) == 0 {
			return true
		}
		select {
		case work <- group:
			group = nil
			return true
		case <-ctx.Done():
			return false
		}
	}
	for n := 1; ; n++ {
		m, err := from.Next()
		var bad *InputError
		switch {
		case errors.As(err, &bad):
			r.report(Result{N: n, Err: err})
			continue
		case errors.Is(err, io.EOF):
			if !hand() {
				return context.Cause(ctx)
			}
			return nil
		case err != nil:
			if !hand() {
				return context.Cause(ctx)
			}
			return err
		}
		if err := r.pace(ctx, n); err != nil {
			group = append(group, Result{N: n, Message: m})
			return err
		}
		if r.o.Trace && m.Properties[traceparent] == "" {
			m.Properties[traceparent] = newTraceparent()
		}
		if len(group) > 0 && !shares(group[0].Message, m) && !hand() {
			group = append(group, Result{N: n, Message: m})
			return context.Cause(ctx)
		}
		group = append(group, Result{N: n, Message: m})
		if (len(group) >= r.o.Batch || delayed(m)) && !hand() {
			return context.Cause(ctx)
		}
	}
}

func shares(a, b *rocketmq.OutgoingMessage) bool {
	return a.Topic == b.Topic && a.ShardingKey == b.ShardingKey && !delayed(b)
}

func delayed(m *rocketmq.OutgoingMessage) bool { return m.DelayLevel > 0 || m.Delay > 0 }

// pace waits until message n is due.
func (r *run) pace(ctx context.Context, n int) error {
	if r.o.Rate <= 0 {
		return nil
	}
	due := r.start.Add(time.Duration(float64(n-1) / r.o.Rate * float64(time.Second)))
	return pause(ctx, time.Until(due))
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deliver sends one group, again and again while RetryFor lasts, and reports each message. What is in flight when ctx
// ends is still waited for: the requests have their own deadline.
func (r *run) deliver(ctx context.Context, group []Result) {
	until := time.Now().Add(r.o.RetryFor)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := r.send(context.WithoutCancel(ctx), group)
		if err == nil || !time.Now().Add(wait).Before(until) || pause(ctx, wait) != nil {
			for i := range group {
				group[i].Err = err
			}
			break
		}
	}
	for _, g := range group {
		r.report(g)
	}
}

func (r *run) send(ctx context.Context, group []Result) error {
	if len(group) == 1 {
		stored, err := r.to.Send(ctx, group[0].Message)
		group[0].Stored = stored
		return err //nolint:wrapcheck // the client's errors name request and broker
	}
	ms := make([]*rocketmq.OutgoingMessage, len(group))
	for i := range group {
		ms[i] = group[i].Message
	}
	stored, err := r.to.SendBatch(ctx, ms[0].Topic, ms)
	if err != nil {
		return err //nolint:wrapcheck // the client's errors name request and broker
	}
	if len(stored) != len(group) {
		return fmt.Errorf("a batch of %d messages was answered for %d", len(group), len(stored))
	}
	for i := range group {
		group[i].Stored = stored[i]
	}
	return nil
}

func (r *run) report(res Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.Err == nil {
		r.summary.Stored++
		r.summary.Bytes += int64(len(res.Message.Body))
	} else {
		r.summary.Failed++
		if r.summary.First == nil {
			r.summary.First = res.Err
		}
		if r.o.Unreachable != nil && r.o.Unreachable(res.Err) && r.fatal == nil {
			r.fatal = res.Err
			r.stop(res.Err)
		}
	}
	r.each(res)
}

// traceparent is the property of the W3C trace context.
const traceparent = "traceparent"

func newTraceparent() string {
	var id [24]byte
	rand.Read(id[:]) // never fails: it ends the process instead
	return "00-" + hex.EncodeToString(id[:16]) + "-" + hex.EncodeToString(id[16:]) + "-01"
}
