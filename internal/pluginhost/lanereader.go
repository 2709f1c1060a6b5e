package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// obituaryWait is how long an ended stream waits for news of its process: the exit tells more than the broken pipe.
const obituaryWait = time.Second

// brokenWait is the same for a broken connection: the process is dead or dying, however busy the machine is.
const brokenWait = 5 * time.Second

// read turns frames into events until the stream ends, then delivers the last event.
func (l *Lane) read(credits int) {
	defer close(l.done)
	defer close(l.events)
	defer l.gen.dropLane(l)
	ok := credits == 0 || l.push(frame.Event{Kind: frame.EventCredit, Credits: credits})
	in := border.PluginFrames()
	for ok {
		err := l.receive(in)
		if err == nil {
			l.gen.heard()
			ok, err = l.handle(in)
		}
		if err != nil {
			l.finish(err)
			return
		}
	}
	l.cancel()
}

// receive takes the next frame. The end of a lane's socket says nothing about the reason: the stream beside it does.
func (l *Lane) receive(in *border.In) error {
	err := l.frames.RecvMsg(in)
	if err == nil || !l.socket || status.Code(err) == codes.Internal {
		return err
	}
	late := time.AfterFunc(brokenWait, l.cancel) // the plugin closed the one and not the other
	defer late.Stop()
	if err = l.stream.RecvMsg(in); err == nil {
		err = violated("it sent field %d on the stream of a lane that has a socket", in.Number)
	}
	return err
}

// push delivers an event; false when the host is closing and nobody listens.
func (l *Lane) push(e frame.Event) bool {
	if l.spec.Deliver != nil {
		l.spec.Deliver(e)
		return true
	}
	select {
	case l.events <- e:
		return true
	case <-l.gen.host.quit:
		return false
	}
}

// errDrained ends the reader after the plugin's last word.
var errDrained = errors.New("drained")

// handle takes one frame. An error ends the lane.
func (l *Lane) handle(in *border.In) (bool, error) {
	switch in.Number {
	case frame.PluginResults:
		return l.onResults(in.Message)
	case frame.PluginCredit:
		n, err := frame.DecodeNumber(in.Message)
		if err != nil {
			return false, violated("%v", err)
		}
		return l.onCredit(n), nil
	case frame.PluginStarted:
		return l.onStarted(in.Message)
	}
	switch in.Cold.(type) {
	case *pluginv1.Drained:
		return false, l.onDrained()
	case *pluginv1.Opened:
		return false, violated("it opened the lane a second time")
	default:
		return false, violated("it sent a frame this host does not know (field %d)", in.Number)
	}
}

func (l *Lane) onResults(message []byte) (bool, error) {
	r := &frame.Results{}
	if err := frame.DecodeResults(message, r, frame.MaxBatchRecords); err != nil {
		return false, violated("%v", err)
	}
	l.mu.Lock()
	fresh, err := l.ledger.answer(r, l.gen.host.now())
	l.noteDry()
	l.mu.Unlock()
	if err != nil || !fresh {
		return err == nil, err
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		v.Class, v.Text = l.gen.host.redact(v.Class), l.gen.host.redact(v.Text)
	}
	outputs := len(r.Outputs.Payload) // before the receiver owns r
	if !l.push(frame.Event{Kind: frame.EventResults, Results: r}) {
		return false, nil
	}
	if outputs > 0 {
		l.enqueue(border.Raw(frame.AppendHostCredit(nil, uint64(outputs))))
	}
	return true, nil
}

func (l *Lane) onCredit(n uint64) bool {
	l.mu.Lock()
	added := l.ledger.grant(n)
	l.noteDry()
	l.mu.Unlock()
	return added == 0 || l.push(frame.Event{Kind: frame.EventCredit, Credits: added})
}

// noteDry remembers since when a plugin gives no credit though it has nothing to do.
func (l *Lane) noteDry() {
	switch {
	case l.ledger.credits > 0 || l.ledger.records > 0:
		l.dry = time.Time{}
	case l.dry.IsZero():
		l.dry = l.gen.host.now()
	}
}

func (l *Lane) onStarted(message []byte) (bool, error) {
	ref, err := frame.DecodeStarted(message)
	if err != nil {
		return false, violated("%v", err)
	}
	l.mu.Lock()
	// The plugin reports it a second after the start.
	known, err := l.ledger.start(ref, l.gen.host.now().Add(-time.Second))
	l.mu.Unlock()
	if err != nil || !known {
		return err == nil, err
	}
	return l.push(frame.Event{Kind: frame.EventStarted, Ref: ref}), nil
}

func (l *Lane) onDrained() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.draining {
		return violated("it said drained without being asked")
	}
	if l.ledger.records > 0 {
		return violated("it said drained with %d records unanswered", l.ledger.records)
	}
	return errDrained
}

// finish finds out why the stream ended and says so.
func (l *Lane) finish(err error) {
	l.mu.Lock()
	l.closed = true
	fate, clean := l.fate, errors.Is(err, errDrained) || (l.draining && l.ledger.records == 0 && l.fate == nil)
	l.mu.Unlock()
	l.cancel()
	if clean {
		l.push(frame.Event{Kind: frame.EventDrained})
		return
	}
	lost := l.lost(err, fate)
	lost.Text = l.gen.host.redact(lost.Text)
	level := slog.LevelWarn
	if lost.Cause == frame.CauseStopped { // somebody wanted it
		level = slog.LevelDebug
	}
	l.gen.host.logger.Log(context.Background(), level, "lane lost", "plugin", l.info.Plugin, "handler", l.spec.Handler, "stream", l.spec.Stream,
		"shard", l.spec.Shard, "generation", l.info.Generation, "cause", causeName(lost.Cause), "suspects", len(lost.Suspects), "error", lost.Text)
	l.push(frame.Event{Kind: frame.EventLost, Lost: &lost})
}

func (l *Lane) lost(err error, fate *frame.Lost) frame.Lost {
	var broken *violation
	if status.Code(err) == codes.Internal { // a frame that could not be read; the transport has closed the stream
		broken = &violation{err.Error()}
	}
	switch {
	case broken != nil, errors.As(err, &broken):
		l.gen.violations.Add(1)
		return frame.Lost{Cause: frame.CauseProtocol, Text: fmt.Sprintf(
			"plugin %s %s broke the protocol on the lane of handler %s: %s; the lane was closed, the plugin needs a fix", l.info.Plugin, l.info.Version, l.spec.Handler, broken.text)}
	case fate != nil:
		return *fate
	}
	wait := obituaryWait
	if status.Code(err) == codes.Unavailable {
		wait = brokenWait
	}
	if !endsWithin(l.gen.dead, wait) {
		l.gen.violations.Add(1)
		return frame.Lost{Cause: frame.CauseProtocol, Text: fmt.Sprintf(
			"plugin %s (pid %d) ended the lane of handler %s while it lives on: %v", l.info.Plugin, l.info.PID, l.spec.Handler, err)}
	}
	lost := l.gen.death()
	if lost.Cause == frame.CauseCrash || lost.Cause == frame.CauseHang {
		lost.Suspects = l.suspects()
	}
	return lost
}

// suspects are the records that ran too long, when those made the host end the process; otherwise what the shared page
// says. It is read only after the process is dead, so that nothing moves any more.
func (l *Lane) suspects() []frame.Ref {
	l.gen.mu.Lock()
	blame := l.gen.blame
	l.gen.mu.Unlock()
	if blame != nil && blame.lane != l {
		return nil // another lane's records hung
	}
	if blame != nil && len(blame.refs) > 0 {
		return blame.refs
	}
	var runs []frame.Run
	complete := false
	if row, ok := l.gen.page.Row(l.number); ok {
		runs, complete = row.Running(l.epoch)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.suspects(runs, complete)
}

// causeName is the word for logs.
func causeName(c frame.Cause) string {
	names := [...]string{"", "crash", "hang", "memory", "protocol", "swap", "stopped"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}
