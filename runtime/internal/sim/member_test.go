package sim

import (
	"slices"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
	"github.com/streamd/streamd/sdk"
)

// member is the thin shell around one member's cores, as the engine has it, without its goroutines.
type member struct {
	w    *world
	id   string
	dead bool
	// From frozenAt to frozen nothing of it happens.
	frozenAt, frozen time.Time
	core             *group.Core
	tickAt           time.Time
	workers          map[sdk.Queue]*worker

	dispatch *dispatch.Core
	lanes    map[dispatch.LaneID]*lane
	nextLane dispatch.LaneID
	wakeAt   time.Time
	policy   *settle.Policy
	leaving  bool
	ledger   *ledger
	broken   time.Time // until then its plugin dies on every record
	// Whom the last question to the others did not reach, and what those whom it reached listed.
	silent map[string]bool
	held   map[sdk.Queue]string
}

type worker struct {
	q        sdk.Queue
	own      *queue.Ownership
	epoch    uint64
	stale    bool // the broker takes no commit of this epoch any more: an operator set the group back
	draining bool
	until    time.Time
}

type lane struct {
	id       dispatch.LaneID
	solo     bool
	credited bool
	out      map[frame.Ref]sent
	refs     []frame.Ref // in order, for a map has none
}

// sent is what a lane knows of a record: the delivery itself may be used for another message once the core let go of it.
type sent struct {
	own *queue.Ownership
	id  int
}

func newMember(w *world, id string) *member {
	m := &member{
		w: w, id: id, workers: map[sdk.Queue]*worker{}, lanes: map[dispatch.LaneID]*lane{},
		core:     group.NewCore(w.now, w.rng.Float64, 0),
		dispatch: dispatch.NewCore(dispatch.Settings{BatchMax: 8, BatchBytes: 1 << 20, Linger: time.Millisecond, Deadline: 5 * time.Second}),
		policy:   &settle.Policy{Group: groupName, MaxRetries: 3, Levels: settle.DefaultLevels()},
	}
	m.ledger = newLedger(m)
	m.openLane(false)
	return m
}

// later lets f happen unless the member is dead by then.
func (m *member) later(d time.Duration, note string, f func()) {
	m.w.after(d, m.id+" "+note, func() {
		switch {
		case m.dead:
		case m.w.now.Before(m.frozen):
			m.later(m.frozen.Sub(m.w.now), note, f)
		default:
			f()
		}
	})
}

func (m *member) tick() { m.groupStep(group.Input{}) }

func (m *member) groupStep(in group.Input) {
	if m.dead {
		return
	}
	for _, a := range append([]group.Action(nil), m.core.Step(m.w.now, in)...) {
		m.groupDo(a)
	}
	if m.leaving && m.core.Empty() {
		m.w.kill(m)
		return
	}
	if next := m.core.Next(); !next.IsZero() && !next.Equal(m.tickAt) {
		m.tickAt = next
		m.later(max(0, next.Sub(m.w.now)), "tick", func() {
			if m.tickAt.Equal(next) {
				m.tick()
			}
		})
	}
}

func (m *member) groupDo(a group.Action) {
	switch a.Kind {
	case group.ActRound:
		m.later(m.w.between(time.Millisecond, 200*time.Millisecond), "round", func() {
			first := m.share(topic)
			gap := [3]time.Duration{0, 40 * time.Millisecond, 15 * time.Second}[m.w.rng.IntN(3)]
			if gap > 0 { // the other one's broker needs a moment, or is silent for a while
				m.groupStep(group.Input{Kind: group.InPart, Topics: []group.Topic{first}})
				m.later(m.w.between(gap/20, gap), "rest of the round", func() { m.endRound(first) })
				return
			}
			m.endRound(first)
		})
	case group.ActAskPeers:
		queues := append([]sdk.Queue(nil), a.Queues...)
		m.later(m.w.between(time.Millisecond, 50*time.Millisecond), "peers", func() {
			m.held, m.silent = m.holders(queues)
			m.groupStep(group.Input{Kind: group.InPeers, Holders: m.held})
		})
	case group.ActAcquire:
		m.freeToTake(a.Queue)
		wk := &worker{q: a.Queue}
		m.workers[a.Queue] = wk
		m.later(m.w.between(time.Millisecond, 20*time.Millisecond), "start", func() { m.startWorker(wk, a.Epoch) })
	case group.ActDrain:
		m.drain(m.workers[a.Queue])
	case group.ActHurry: // rounds end by themselves here
	case group.ActCommit:
		for _, q := range m.core.Queues() {
			if wk := m.workers[q.Queue]; wk != nil && wk.own != nil && !wk.draining {
				m.commit(wk)
			}
		}
	}
}

func (m *member) endRound(first group.Topic) {
	m.groupStep(group.Input{Kind: group.InRound, Topics: []group.Topic{first, m.share(wire.RetryTopic(groupName))}})
}

// share is what a round finds; sometimes nobody knows.
func (m *member) share(name string) group.Topic {
	if m.w.isDown() || m.w.chance(10) {
		return group.Topic{Name: name, Hold: queue.Hold{Kind: queue.HoldMembersUnknown}}
	}
	s, err := allocate.New("averagely", nil)
	if err != nil {
		m.w.t.Fatal(err)
	}
	in, err := allocate.NewInput(allocate.View{Group: groupName, Topic: name, Self: m.id, Queues: m.w.queues(name), Members: m.w.ids()})
	if err != nil {
		return group.Topic{Name: name, Hold: queue.Hold{Kind: queue.HoldMembersUnknown}}
	}
	owner, err := s.Allocate(in)
	if err != nil {
		m.w.t.Fatal(err)
	}
	return group.Topic{Name: name, Known: true, Mine: allocate.Share(in, owner, in.Self)}
}

func (m *member) holders(queues []sdk.Queue) (held map[sdk.Queue]string, silent map[string]bool) {
	held, silent = map[sdk.Queue]string{}, map[string]bool{}
	for _, o := range m.w.members {
		if o == m || m.w.now.Before(o.frozen) || m.w.chance(10) {
			silent[o.id] = true
			continue
		}
		for _, q := range o.has() {
			if slices.Contains(queues, q) {
				held[q] = o.id
			}
		}
	}
	return held, silent
}

func (m *member) has() (qs []sdk.Queue) {
	for _, q := range m.core.Queues() {
		if q.State == group.Owned || q.State == group.Draining {
			qs = append(qs, q.Queue)
		}
	}
	return qs
}

// freeToTake holds when a queue is taken: whoever has it did not answer, or was waited for as long as one waits (the core
// counts that). The answers are taken and acted upon at one moment here, so two that start together are no exception.
func (m *member) freeToTake(q sdk.Queue) {
	for _, o := range m.w.members {
		if o != m && !m.silent[o.id] && m.held[q] == "" && slices.Contains(o.has(), q) {
			m.w.t.Errorf("seed %d: %s takes %s at %s, which %s has and would have told", m.w.seed, m.id, q, m.w.now.Format("04:05.000"), o.id)
		}
	}
}

func (m *member) startWorker(wk *worker, epoch uint64) {
	if wk.draining { // revoked before it began
		m.release(wk)
		return
	}
	if m.w.isDown() {
		m.later(m.w.between(100*time.Millisecond, time.Second), "start again", func() { m.startWorker(wk, epoch) })
		return
	}
	m.adopt(wk, epoch, m.w.committed[wk.q])
	m.commitEvery(wk)
}

// adopt begins an epoch.
func (m *member) adopt(wk *worker, epoch uint64, at int64) {
	wk.epoch, wk.stale = epoch, false
	wk.own = queue.NewOwnership(wk.q, epoch, at, nil, make(chan struct{}, 1))
	m.pull(wk, wk.own, at)
}

// reset is what the worker does when the broker says that an operator has set the group back.
func (m *member) reset(wk *worker, to int64) {
	if wk.draining || m.workers[wk.q] != wk {
		return
	}
	m.endEpoch(wk)
	m.adopt(wk, wk.epoch+1, to)
}

// endEpoch fences what is still out.
func (m *member) endEpoch(wk *worker) (safe int64) {
	safe = wk.own.End()
	m.w.ended = append(m.w.ended, ended{wk.own, safe})
	m.ledger.ended(wk.own)
	m.step(dispatch.Input{Kind: dispatch.InRevoke, Own: wk.own, Cut: true})
	return safe
}

// pull is the worker's loop: it takes what is there, up to a window.
func (m *member) pull(wk *worker, own *queue.Ownership, next int64) {
	m.later(m.w.between(time.Millisecond, 60*time.Millisecond), "pull", func() {
		if wk.draining || wk.own != own {
			return
		}
		if m.w.isDown() {
			m.pull(wk, own, next)
			return
		}
		log := m.w.logs[wk.q]
		var ds []queue.Delivery
		for next < int64(len(log)) && len(ds) < 8 && wk.own.Active() < 40 {
			ds = append(ds, queue.Delivery{Topic: topic, Offset: next, Attempt: log[next].attempt})
			next++
		}
		if len(ds) > 0 {
			wk.own.Admit(ds, next, m.w.now)
			m.ledger.offered(ds)
			m.step(dispatch.Input{Kind: dispatch.InOffer, Own: wk.own, Deliveries: ds})
		}
		m.pull(wk, own, next)
	})
}

func (m *member) commitEvery(wk *worker) {
	m.later(time.Second, "commit", func() {
		if !wk.draining {
			m.commit(wk)
			m.commitEvery(wk)
		}
	})
}

func (m *member) commit(wk *worker) {
	own, safe := wk.own, wk.own.Safe()
	m.later(m.w.between(0, 20*time.Millisecond), "committed", func() {
		if m.w.isDown() || m.w.chance(5) || wk.stale || wk.own != own || !own.Live() {
			return // refused, or from an epoch that has ended: the worker drops it
		}
		if safe > m.w.committed[wk.q] {
			m.w.commit(wk.q, safe, m.id)
		}
	})
}

func (m *member) drain(wk *worker) {
	wk.draining = true
	if wk.own == nil {
		return
	}
	wk.until = m.w.now.Add(m.w.between(50*time.Millisecond, 4*time.Second))
	wk.own.Close()
	m.step(dispatch.Input{Kind: dispatch.InRevoke, Own: wk.own})
	m.awaitDrain(wk)
}

func (m *member) awaitDrain(wk *worker) {
	m.later(10*time.Millisecond, "drain", func() {
		if wk.own.Active() > 0 && m.w.now.Before(wk.until) {
			m.awaitDrain(wk)
			return
		}
		safe := m.endEpoch(wk)
		m.later(m.w.between(0, 20*time.Millisecond), "last commit", func() {
			if safe > m.w.committed[wk.q] && !wk.stale && !m.w.isDown() && !m.w.chance(5) {
				m.w.commit(wk.q, safe, m.id)
			}
			m.release(wk)
		})
	})
}

func (m *member) release(wk *worker) {
	delete(m.workers, wk.q)
	m.groupStep(group.Input{Kind: group.InReleased, Queue: wk.q})
}

// leave is a clean stop.
func (m *member) leave() {
	if !m.leaving {
		m.leaving = true
		m.groupStep(group.Input{Kind: group.InStop})
	}
}
