package pluginhost

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

const (
	outputWindow = 8 << 20 // bytes of outputs that a plugin may have under way on one lane
	eventBuffer  = 8       // frames read ahead of the engine
	openTimeout  = 5 * time.Second
)

// Lane is the host's end of one bidirectional stream to a plugin process. Send, Cancel, Revoke, Drain and Abort may be
// called from several goroutines. Its events must be read until the channel is closed.
//
// Goroutines: a reader that turns frames into events and delivers the last one, and a writer.
type Lane struct {
	info   frame.LaneInfo
	spec   frame.LaneSpec
	gen    *generation
	number uint32 // its row in the shared page
	epoch  uint64 // unique among the host's lanes: fences rows and late answers
	stream grpc.ClientStream
	frames border.Frames // the stream, or the lane's own socket
	socket bool          // it is a socket: the stream beside it has Open, Opened, and why the lane ended
	cancel context.CancelFunc
	events chan frame.Event
	done   chan struct{} // closed after the events channel
	since  time.Time

	sending sync.Mutex // keeps batches in the order of their seq

	mu       sync.Mutex
	ledger   *ledger
	queue    []any // frames that the border's codec writes
	closed   bool  // nothing is sent any more
	draining bool
	fate     *frame.Lost // why the host ends the lane, when it does
	dry      time.Time   // since when there is no credit while nothing is out; zero: there is
	thirst   bool        // said in the log
	wake     chan struct{}
}

// Info says which process answers.
func (l *Lane) Info() frame.LaneInfo { return l.info }

// Events delivers what the plugin answers; closed after EventLost or EventDrained. With LaneSpec.Deliver it delivers nothing.
func (l *Lane) Events() <-chan frame.Event { return l.events }

// Send writes a batch. It never blocks, keeps no reference to b, and takes one credit a record: without enough of them it
// returns frame.ErrNoCredit, on an ended lane frame.ErrLaneDone.
func (l *Lane) Send(b *frame.Batch) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	e := frame.EncodeBatch(b)
	if e.Length > l.info.MaxBytes {
		return fmt.Errorf("batch %d has %d bytes, plugin %s takes at most %d in one frame; send fewer records at once", b.Seq, e.Length, l.info.Plugin, l.info.MaxBytes)
	}
	if err := l.take(b); err != nil {
		return err
	}
	l.enqueue(l.gen.host.link.Codec.Encode(&e))
	return nil
}

func (l *Lane) take(b *frame.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return frame.ErrLaneDone
	}
	return l.ledger.send(b.Seq, b.Records.Len(), l.gen.host.now())
}

// Cancel tells the plugin to give up records of a batch; no index means all of it. Their answers still come.
func (l *Lane) Cancel(seq uint64, index []uint32) {
	l.enqueue(border.Raw(frame.AppendCancel(nil, seq, index)))
}

// Revoke tells the plugin that queues are going to another member.
func (l *Lane) Revoke(queues []sdk.Queue) {
	revoke := &pluginv1.Revoke{}
	for _, q := range queues {
		revoke.Queues = append(revoke.Queues, &pluginv1.Queue{Topic: q.Topic, Broker: q.Broker, Id: q.ID})
	}
	l.enqueue(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Revoke{Revoke: revoke}})
}

// Drain sends nothing more and returns when every record is answered and the last event was taken, or with an error when
// ctx ends before; the lane goes on draining then.
func (l *Lane) Drain(ctx context.Context) error {
	grace := l.spec.Deadline
	if at, ok := ctx.Deadline(); ok {
		grace = time.Until(at)
	}
	l.beginDrain(grace)
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return unmet(fmt.Sprintf("draining a lane of handler %s: %d records unanswered", l.spec.Handler, l.InFlight()), nil, context.Cause(ctx))
	}
}

// Abort ends the lane at once; what is unanswered is lost with CauseStopped.
func (l *Lane) Abort(cause error) {
	l.end(frame.Lost{Cause: frame.CauseStopped, Text: fmt.Sprintf("the lane was stopped: %v", cause)})
}

// InFlight returns the records that were sent and are unanswered.
func (l *Lane) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.records
}

func (l *Lane) beginDrain(grace time.Duration) {
	// After a batch that is being sent: the plugin must have seen all of them when it is told that there are no more.
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	already := l.draining
	l.draining, l.closed = true, true
	l.mu.Unlock()
	if !already {
		drain := &pluginv1.Drain{GraceMs: uint64(max(0, grace.Milliseconds()))}
		l.enqueue(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Drain{Drain: drain}})
	}
}

// end closes the lane for a reason of the host's; the first reason stays.
func (l *Lane) end(why frame.Lost) {
	l.mu.Lock()
	if l.fate == nil {
		l.fate = &why
	}
	l.closed = true
	l.mu.Unlock()
	l.cancel()
}

func (l *Lane) enqueue(f any) {
	l.mu.Lock()
	l.queue = append(l.queue, f)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // the writer will look anyway
	}
}

func (l *Lane) takeQueue(spare []any) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = spare[:0]
	return queue
}

// write sends frames in order until the stream ends. A failure shows itself to the reader.
func (l *Lane) write() {
	var batch []any
	for {
		select {
		case <-l.wake:
		case <-l.stream.Context().Done():
			return
		}
		for batch = l.takeQueue(batch); len(batch) > 0; batch = l.takeQueue(batch) {
			for i, f := range batch {
				batch[i] = nil
				if l.frames.SendMsg(f) != nil {
					return
				}
			}
		}
	}
}

// openLane opens the stream, waits for the plugin's word, and starts the lane's goroutines.
func (g *generation) openLane(ctx context.Context, spec frame.LaneSpec) (*Lane, error) {
	if spec.Ordered {
		if err := g.keepsOrder(spec.Handler); err != nil {
			return nil, err
		}
	}
	number, row, err := g.takeRow()
	if err != nil {
		return nil, err
	}
	defer g.work.Done() // addLane counts anew
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lane{
		info: g.laneInfo(spec.Handler), spec: spec, gen: g, number: number, epoch: g.host.nextLane(), cancel: cancel,
		events: make(chan frame.Event, eventBuffer), done: make(chan struct{}), ledger: newLedger(),
		wake: make(chan struct{}, 1), since: g.host.now(),
	}
	if spec.Solo {
		l.ledger.most = 1
	}
	row.Begin(0)
	err = l.connect(streamCtx)
	var opened *pluginv1.Opened
	if err == nil {
		opened, err = l.awaitOpened(ctx)
	}
	if err == nil {
		err = g.addLane(l)
	}
	if err != nil {
		cancel()
		g.freeRow(number)
		return nil, fmt.Errorf("opening a lane to plugin %s (pid %d): %w", g.name, g.pid(), g.explain(err))
	}
	l.start(opened) //nolint:contextcheck // the lane outlives the call that opens it
	return l, nil
}

func (l *Lane) connect(ctx context.Context) error {
	desc := &grpc.StreamDesc{StreamName: "Lane", ServerStreams: true, ClientStreams: true}
	stream, err := l.gen.conn.NewStream(ctx, desc, pluginv1.Plugin_Lane_FullMethodName)
	if err != nil {
		return err
	}
	l.stream, l.frames = stream, stream
	if l.gen.takesSockets() {
		if err := l.attach(ctx); err != nil {
			return err
		}
	}
	concurrency, credits := l.spec.Concurrency, l.spec.Credits
	if l.spec.Solo {
		concurrency, credits = 1, 1
	}
	open := &pluginv1.HostFrame{F: &pluginv1.HostFrame_Open{Open: &pluginv1.Open{
		Instance: l.spec.Handler, Stream: l.spec.Stream, Shard: uint32(l.spec.Shard),
		Concurrency: uint32(max(1, concurrency)), Credits: uint32(max(1, credits)),
		Generation: l.epoch, Lane: l.number, Socket: l.socket,
	}}}
	if err := stream.SendMsg(open); err != nil {
		return err
	}
	return l.frames.SendMsg(border.Raw(frame.AppendHostCredit(nil, outputWindow)))
}

// awaitOpened reads the first frame. It runs before the reader, so a slow plugin is bounded by ctx and openTimeout.
func (l *Lane) awaitOpened(ctx context.Context) (*pluginv1.Opened, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, Waited(openTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, l.cancel)
	defer stop()
	in := border.PluginFrames()
	if err := l.stream.RecvMsg(in); err != nil {
		if ctx.Err() != nil {
			return nil, unmet("no answer to Open", nil, context.Cause(ctx))
		}
		return nil, err
	}
	opened, ok := in.Cold.(*pluginv1.Opened)
	if !ok {
		return nil, violated("the first frame of a lane must be Opened, it sent field %d", in.Number)
	}
	if !stop() {
		return nil, unmet("no answer to Open", nil, context.Cause(ctx))
	}
	return opened, nil
}

func (l *Lane) start(opened *pluginv1.Opened) {
	l.mu.Lock()
	credits := l.ledger.grant(uint64(opened.GetCredits()))
	l.noteDry()
	l.mu.Unlock()
	go func() {
		defer l.gen.work.Done() // addLane counted both
		l.write()
	}()
	go func() {
		defer l.gen.work.Done()
		l.read(credits)
	}()
}
