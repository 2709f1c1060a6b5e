package sim

import (
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

func (m *member) openLane(solo bool) {
	m.later(m.w.between(time.Millisecond, 100*time.Millisecond), "open", func() {
		m.nextLane++
		l := &lane{id: m.nextLane, solo: solo, out: map[frame.Ref]sent{}}
		m.lanes[l.id] = l
		m.step(dispatch.Input{Kind: dispatch.InOpened, Lane: l.id, Solo: solo, Info: frame.LaneInfo{Checksum: "sum"}})
		credits := 20
		if solo {
			credits = 1
		}
		l.credited = true
		m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventCredit, Credits: credits}})
	})
}

// step feeds the dispatcher's core and does what it says.
func (m *member) step(in dispatch.Input) {
	actions := slices.Clone(m.dispatch.Step(m.w.now, in))
	for i := range actions {
		a := actions[i]
		a.Items = slices.Clone(a.Items)
		m.ledger.note(&a)
		m.do(a)
	}
	m.ledger.check()
	if next := m.dispatch.Next(m.w.now); !next.IsZero() && !next.Equal(m.wakeAt) {
		m.wakeAt = next
		m.later(max(0, next.Sub(m.w.now)), "wake", func() {
			if m.wakeAt.Equal(next) {
				m.wakeAt = time.Time{}
				m.step(dispatch.Input{Kind: dispatch.InTick})
			}
		})
	}
}

func (m *member) do(a dispatch.Action) {
	switch a.Kind {
	case dispatch.ActSend:
		m.send(m.lanes[a.Lane], a.Seq, a.Items)
	case dispatch.ActAck:
		m.ledger.settled(a.Own, len(a.Items), a.Own.Settle(a.Items))
	case dispatch.ActVerdict:
		m.settle(a.D, a.Verdict)
	case dispatch.ActDrop:
		a.Own.Drop(a.Items, a.Out)
	case dispatch.ActReturn:
		a.Own.Returned(len(a.Items))
	case dispatch.ActTake:
		a.Own.Sent(len(a.Items))
	case dispatch.ActOpenSolo:
		m.openLane(true)
	case dispatch.ActClose:
		m.close(a.Lane)
	default: // what a host is told, and records
	}
}

func (m *member) close(id dispatch.LaneID) {
	m.later(time.Millisecond, "close", func() {
		delete(m.lanes, id)
		m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: id, Event: frame.Event{Kind: frame.EventDrained}})
	})
}

func (m *member) send(l *lane, seq uint64, items []*queue.Delivery) {
	if len(l.out)+len(items) > 20 {
		m.w.t.Errorf("seed %d: %d records out on a lane of 20 credits", m.w.seed, len(l.out)+len(items))
	}
	if l.solo && len(l.out)+len(items) != 1 {
		m.w.t.Errorf("seed %d: %d records with a suspect", m.w.seed, len(l.out)+len(items))
	}
	own := items[0].Own
	n := 0
	for i, d := range items {
		if d.Own != own {
			own.Sent(n)
			own, n = d.Own, 0
		}
		n++
		ref := frame.Ref{Seq: seq, Index: uint32(i)}
		l.out[ref] = sent{d.Own, m.w.logs[d.Own.Queue][d.Offset].id}
		l.refs = append(l.refs, ref)
		q, o := d.Own.Queue, d.Offset
		m.later(m.w.between(time.Millisecond, 120*time.Millisecond), "handle", func() { m.handle(l, ref, m.w.logs[q][o], func() { m.w.done[q][o] = true }) })
	}
	own.Sent(n)
}

// poison dies on every try.
func poison(msg message) bool { return msg.id%61 == 13 }

// handle is the plugin: it acks, fails, rejects, does not touch, answers twice, never answers, or dies.
func (m *member) handle(l *lane, ref frame.Ref, msg message, done func()) {
	if m.lanes[l.id] != l {
		return // its process is gone
	}
	if poison(msg) || m.w.now.Before(m.broken) {
		m.lose(l, frame.CauseCrash, []frame.Ref{ref})
		return
	}
	res := &frame.Results{Seq: ref.Seq}
	switch n := m.w.rng.IntN(100); {
	case n < 4:
		res.Verdicts = []frame.Verdict{{Index: ref.Index, Kind: frame.VerdictRetry}}
	case n < 5:
		res.Verdicts = []frame.Verdict{{Index: ref.Index, Kind: frame.VerdictReject}}
	case n < 8 && !m.w.calm:
		res.Verdicts = []frame.Verdict{{Index: ref.Index, Kind: frame.VerdictUntouched}}
	case n < 10 && !m.w.calm:
		m.later(time.Second, "slow", func() {
			if m.lanes[l.id] == l {
				m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventStarted, Ref: ref}})
			}
		})
		m.later(m.w.between(2*time.Second, 9*time.Second), "late", func() { m.answer(l, ref, &frame.Results{Seq: ref.Seq, AckRuns: []uint32{ref.Index, 1}}, msg, done) })
		return
	default:
		res.AckRuns = []uint32{ref.Index, 1}
	}
	m.answer(l, ref, res, msg, done)
	if m.w.chance(3) {
		m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventResults, Results: res}}) // twice
	}
}

func (m *member) answer(l *lane, ref frame.Ref, res *frame.Results, msg message, done func()) {
	if m.lanes[l.id] != l {
		return
	}
	if len(res.AckRuns) > 0 {
		m.w.acked[msg.id]++
		done()
	}
	delete(l.out, ref)
	m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventResults, Results: res}})
	if m.lanes[l.id] == l {
		m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventCredit, Credits: 1}})
	}
}

// crash ends the member's process of a handler, for whatever reason.
func (m *member) crash() {
	for id := dispatch.LaneID(1); id <= m.nextLane; id++ {
		if l := m.lanes[id]; l != nil {
			causes := []frame.Cause{frame.CauseCrash, frame.CauseHang, frame.CauseMemory, frame.CauseSwap, frame.CauseProtocol}
			var suspects []frame.Ref
			cause := causes[m.w.rng.IntN(len(causes))]
			for _, ref := range l.refs {
				if _, out := l.out[ref]; out && cause <= frame.CauseHang && m.w.rng.IntN(8) == 0 {
					suspects = append(suspects, ref)
				}
			}
			m.lose(l, cause, suspects)
			return
		}
	}
}

func (m *member) lose(l *lane, cause frame.Cause, suspects []frame.Ref) {
	delete(m.lanes, l.id)
	if l.solo && cause <= frame.CauseMemory {
		for _, ref := range l.refs {
			if s, out := l.out[ref]; out && s.own.Live() {
				m.ledger.crashedAlone(s.id)
			}
		}
	}
	m.step(dispatch.Input{Kind: dispatch.InEvent, Lane: l.id, Event: frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: cause, Suspects: suspects}}})
	m.ledger.lost(l.id)
	if !l.solo {
		m.openLane(false)
	}
}

// settle makes a verdict durable as the settler does, with refusals and unknown outcomes.
func (m *member) settle(d *queue.Delivery, v frame.Verdict) {
	q, offset := d.Own.Queue, d.Offset
	msg := m.w.logs[q][offset]
	var do func(step settle.Step, tries int)
	do = func(step settle.Step, tries int) {
		if !d.Own.Live() {
			m.ledger.gone(d)
			d.Own.Drop([]*queue.Delivery{d}, true)
			return
		}
		if step.Kind == settle.StepSettle {
			m.ledger.gone(d)
			m.ledger.settled(d.Own, 1, d.Own.Settle([]*queue.Delivery{d}))
			return
		}
		m.later(step.Wait+m.w.between(time.Millisecond, 30*time.Millisecond), "settle", func() {
			outcome := settle.OutcomeDone
			if m.w.isDown() || m.w.chance(25) {
				outcome = settle.OutcomeRefused
			}
			if outcome == settle.OutcomeDone || !m.w.isDown() && m.w.chance(30) { // or stored, though no answer came
				m.stored(step, msg)
				m.w.done[q][offset] = true
			}
			f := settle.Facts{Verdict: v, Attempts: msg.attempt, Tries: tries}
			do(m.policy.Next(f, step, outcome, "refused"), tries+1)
		})
	}
	do(m.policy.First(settle.Facts{Verdict: v, Attempts: msg.attempt}), 0)
}

// stored is the broker's side of a send-back.
func (m *member) stored(step settle.Step, msg message) {
	if step.Level < 0 {
		m.w.dead[msg.id] = true
		return
	}
	m.w.after(m.w.between(time.Second, 3*time.Second), "retry due", func() {
		m.w.store(m.w.retryQueue(), message{id: msg.id, attempt: msg.attempt + 1})
	})
}
