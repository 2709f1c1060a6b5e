package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

var (
	errLaneEnded = fmt.Errorf("the lane to the host has ended: %w", context.Canceled)
	errWithdrawn = fmt.Errorf("the host has withdrawn the message: %w", context.Canceled)
	errAnswered  = fmt.Errorf("the message is answered: %w", context.Canceled)
)

// lane runs one lane. Three kinds of goroutines: the reader (takes frames), the workers (call the author), and the
// monitor (deadlines, Started, and reports that waited). What workers share for each record is atomic; locks are taken
// per batch, per report and per failure.
type lane struct {
	ctx      context.Context //nolint:containedctx // the parent of every record's context
	end      context.CancelFunc
	stream   grpc.ServerStream
	frames   border.Frames // the stream, or the lane's own socket
	instance *instance
	logger   *slog.Logger
	epoch    time.Time // the lane's clock starts here
	credits  int
	row      frame.Row
	gen      uint64

	queue   queue         // records that wait for a worker
	wake    chan struct{} // one token: a worker is wanted
	waking  atomic.Bool   // a worker is on its way; one at a time, so that a fast handler does not wake them all
	report  chan struct{} // one token: there is something to report
	busy    chan struct{} // one token: the monitor has something to watch
	running []atomic.Pointer[task]
	groups  []atomic.Pointer[group] // batch mode: what each worker has in hand
	async   asyncTable

	draining     atomic.Bool
	dirty        atomic.Bool
	reminded     atomic.Bool  // the reporter is on its way
	outstanding  atomic.Int64 // records that are not reported yet
	outputCredit atomic.Int64

	tableMu   sync.Mutex
	table     []*batch // all that are not reported in full, in order of arrival
	answersMu sync.Mutex
	answers   []answer

	sendMu    sync.Mutex // guards all below
	scan      []*batch   // scratch: the table at the start of a report
	pending   []answer   // outputs that wait for credit
	ready     map[*batch][]answer
	results   frame.Results
	outputs   frame.Builder
	names     []string
	text      []byte
	ungranted int
	sendErr   error
	drained   bool

	once   sync.Once
	over   chan struct{}
	result error
	work   sync.WaitGroup
}

// now is the lane's clock in nanoseconds, never 0.
func (l *lane) now() int64 { return int64(time.Since(l.epoch)) + 1 }

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// finish ends the lane; the first result counts.
func (l *lane) finish(err error) {
	l.once.Do(func() {
		l.result = err
		close(l.over)
		l.end()
	})
}

func newLane(stream grpc.ServerStream, frames border.Frames, open *pluginv1.Open, in *instance, page *frame.Page, logger *slog.Logger) *lane {
	workers := max(1, int(open.GetConcurrency()))
	if in.spec.Mode == sdk.ModeAsync {
		workers = 1 // HandleAsync is called in order; what runs is bounded by the credits
	}
	l := &lane{
		stream: stream, frames: frames, instance: in, epoch: time.Now(), credits: max(1, int(open.GetCredits())), gen: open.GetGeneration(),
		logger: logger.With("instance", open.GetInstance(), "stream", open.GetStream()),
		wake:   make(chan struct{}, 1), report: make(chan struct{}, 1), busy: make(chan struct{}, 1), over: make(chan struct{}),
		running: make([]atomic.Pointer[task], workers), groups: make([]atomic.Pointer[group], workers),
		ready: make(map[*batch][]answer),
	}
	l.ctx, l.end = context.WithCancel(stream.Context())
	row, _ := page.Row(open.GetLane())
	l.row = row.Of(l.gen)
	l.async.init(l.row.Slots())
	l.queue.init(in.spec.Mode)
	return l
}

// run serves the lane until it is drained, the host goes, or something breaks.
func (l *lane) run() error {
	l.row.Begin(l.gen)
	defer l.row.End()
	opened := &pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Opened{Opened: &pluginv1.Opened{Credits: uint32(l.credits)}}}
	if err := l.stream.SendMsg(opened); err != nil {
		l.end()
		return err
	}
	for i := range l.running {
		l.work.Go(func() { l.worker(i) })
	}
	l.work.Go(l.reporter)
	l.work.Go(l.monitor)
	l.instance.work.Go(l.read)
	<-l.over
	l.withdrawAll(errLaneEnded)
	l.sendMu.Lock()
	if l.sendErr == nil {
		l.sendErr = errLaneEnded // what async handlers answer from now on is too late
	}
	l.sendMu.Unlock()
	l.work.Wait() // the author's code sees its context end; the host has a watchdog for code that does not look
	return l.result
}

// read takes frames until the lane is over. It ends when run has returned: the stream's context ends then, and a socket is closed.
func (l *lane) read() {
	in := border.HostFrames()
	for {
		if err := l.frames.RecvMsg(in); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil // the host closed its end: it wants no more answers
			}
			l.finish(err)
			return
		}
		if err := l.take(in); err != nil {
			l.logger.Error("the host broke the protocol", "error", err)
			l.finish(status.Error(codes.InvalidArgument, err.Error()))
			return
		}
	}
}

func (l *lane) take(in *border.In) error {
	switch in.Number {
	case frame.HostBatch:
		return l.takeBatch(in.Message)
	case frame.HostCancel:
		seq, index, err := frame.DecodeCancel(in.Message)
		if err != nil {
			return err
		}
		l.withdraw(func(t *task) bool {
			return t.batch.Seq == seq && (len(index) == 0 || slices.Contains(index, uint32(t.index)))
		})
		return nil
	case frame.HostCredit:
		n, err := frame.DecodeNumber(in.Message)
		if err != nil {
			return err
		}
		l.outputCredit.Add(int64(min(n, 1<<40)))
		l.touch()
		return nil
	}
	switch f := in.Cold.(type) {
	case *pluginv1.Revoke:
		l.revoke(f)
	case *pluginv1.Drain:
		l.drain(time.Duration(min(f.GetGraceMs(), 1<<40)) * time.Millisecond)
	case *pluginv1.Flush:
		l.instance.work.Go(func() { l.flushAsync(l.ctx) })
	default:
		return fmt.Errorf("frame %d (%T) is not expected on an open lane", in.Number, in.Cold)
	}
	return nil
}

func (l *lane) takeBatch(message []byte) error {
	var decoded frame.Batch
	if err := frame.DecodeBatch(message, &decoded); err != nil {
		return err
	}
	b := newBatch(l, decoded)
	n := len(b.tasks)
	if n == 0 {
		return nil
	}
	l.outstanding.Add(int64(n))
	l.tableMu.Lock()
	l.table = append(l.table, b)
	l.tableMu.Unlock()
	if l.draining.Load() { // sent before the host had our word; it gets them back
		for i := range b.tasks {
			l.giveBack(&b.tasks[i])
		}
		l.flush()
		return nil
	}
	l.queue.put(b)
	kick(l.busy)
	l.wakeOne()
	return nil
}

// reporter sends what has waited for the linger time while all workers were busy.
func (l *lane) reporter() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-l.report:
		}
		timer.Reset(linger)
		select {
		case <-l.over:
			return
		case <-timer.C:
		}
		l.reminded.Store(false) // before it looks: what is noted from here on reminds it again
		if l.dirty.Load() {
			l.flush()
		}
	}
}
