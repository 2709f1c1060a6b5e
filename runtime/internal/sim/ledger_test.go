package sim

import (
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// ledger knows where each record of a member is, by what the core said of it: every record is in exactly one place, and
// what the core has must be what it counts.
type ledger struct {
	m     *member
	place map[*queue.Delivery]dispatch.LaneID // inCore, settling, or a lane
	core  int
	acks  int
	solo  map[int]int // acks at the first solo crash of a message, by its id
	over  map[*queue.Ownership]bool
}

const (
	inCore   dispatch.LaneID = 0
	settling dispatch.LaneID = -1
)

func newLedger(m *member) *ledger {
	return &ledger{m: m, place: map[*queue.Delivery]dispatch.LaneID{}, solo: map[int]int{}, over: map[*queue.Ownership]bool{}}
}

func (l *ledger) errorf(format string, a ...any) {
	l.m.w.t.Helper()
	l.m.w.t.Errorf("seed %d, member %s: "+format, append([]any{l.m.w.seed, l.m.id}, a...)...)
}

func (l *ledger) offered(ds []queue.Delivery) {
	for i := range ds {
		l.core++
		l.place[&ds[i]] = inCore
	}
}

func (l *ledger) move(d *queue.Delivery, to dispatch.LaneID) {
	at, known := l.place[d]
	if !known {
		l.errorf("offset %d of %s came back from nowhere", d.Offset, d.Own.Queue)
		return
	}
	if at == inCore {
		l.core--
	}
	if to == inCore {
		l.core++
	}
	l.place[d] = to
}

func (l *ledger) gone(d *queue.Delivery) {
	l.move(d, settling)
	delete(l.place, d)
}

func (l *ledger) note(a *dispatch.Action) {
	switch a.Kind {
	case dispatch.ActSend:
		l.all(a.Items, a.Lane)
	case dispatch.ActReturn:
		l.all(a.Items, inCore)
	case dispatch.ActVerdict:
		l.move(a.D, settling)
		l.proved(a)
	case dispatch.ActAck:
		l.acks += len(a.Items)
		fallthrough
	case dispatch.ActDrop:
		for _, d := range a.Items {
			l.gone(d)
		}
	default:
	}
}

func (l *ledger) all(ds []*queue.Delivery, to dispatch.LaneID) {
	for _, d := range ds {
		l.move(d, to)
	}
}

// check holds after each step: what the core has is what it counts, and nothing waits for a lane that is free.
func (l *ledger) check() {
	c := l.m.dispatch
	if n := c.Ready() + c.Suspects(); n != l.core {
		l.errorf("%d records are with the core, which has %d: records are lost or doubled on their way back", l.core, n)
	}
	if c.Ready() == 0 || !c.Next(l.m.w.now).IsZero() {
		return
	}
	for _, lane := range l.m.lanes {
		if lane.credited && !lane.solo && len(lane.out) == 0 {
			l.errorf("%d records wait although lane %d has nothing to do", c.Ready(), lane.id)
		}
	}
}

// lost holds after the end of a lane: the core has taken back or settled what was out on it.
func (l *ledger) lost(id dispatch.LaneID) {
	for d, at := range l.place {
		if at == id {
			l.errorf("offset %d of %s is gone with lane %d", d.Offset, d.Own.Queue, id)
		}
	}
}

// crashedAlone is told of a solo crash before the core is.
func (l *ledger) crashedAlone(id int) (first bool) {
	_, again := l.solo[id]
	if !again {
		l.solo[id] = l.acks
	}
	return !again
}

// proved checks the poison rule: no message is rejected for a crash unless the plugin acked another one since the message's
// first solo crash.
func (l *ledger) proved(a *dispatch.Action) {
	if a.Verdict.Kind != frame.VerdictReject || a.Verdict.Class != "crash" {
		return
	}
	id := l.m.w.logs[a.D.Own.Queue][a.D.Offset].id
	if acks, crashed := l.solo[id]; !crashed || acks == l.acks {
		l.errorf("message %d is rejected as poison without a proof that the plugin works", id)
	}
}

// ended is told of the end of an epoch; settled of what is settled, with how many the ownership called late.
func (l *ledger) ended(o *queue.Ownership) {
	l.over[o] = true
	if o.Live() {
		l.errorf("%s is not fenced at the end of its epoch", o.Queue)
	}
}

func (l *ledger) settled(o *queue.Ownership, n, late int) {
	if l.over[o] && late != n || !l.over[o] && late != 0 {
		l.errorf("%s: %d of %d settled records are late, the epoch is over: %t", o.Queue, late, n, l.over[o])
	}
}
