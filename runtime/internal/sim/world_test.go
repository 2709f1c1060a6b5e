package sim

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

const groupName, topic = "G", "T"

// world is the model: one broker's queues and offsets, the members, and what is still to happen.
type world struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	now   time.Time
	seq   int
	todo  events
	trace uint64 // hash of all that happened

	logs      map[sdk.Queue][]message
	done      map[sdk.Queue][]bool // acked by a handler, or stored again
	settledTo map[sdk.Queue]int64  // all below is done, as was found before
	committed map[sdk.Queue]int64
	persisted map[sdk.Queue]int64 // what of it survives a kill of the broker
	down      time.Time           // until then the broker does not answer
	born      map[int]time.Time   // when a message was produced, by id
	quiet     time.Time           // from then on nothing is left of the faults
	members   []*member           // alive, by id
	nextID    int
	produced  int
	acked     map[int]int
	dead      map[int]bool
	ended     []ended
	calm      bool // no more faults
}

type message struct{ id, attempt int }

// ended is an epoch that is over, with its safe offset at the end: nothing may change it.
type ended struct {
	own  *queue.Ownership
	safe int64
}

type happening struct {
	at  time.Time
	seq int
	f   func()
}

type events []happening

func (e *events) Len() int { return len(*e) }
func (e *events) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.seq < b.seq
}
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Push(x any)    { *e = append(*e, x.(happening)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1_800_000_000, 0), logs: map[sdk.Queue][]message{},
		done: map[sdk.Queue][]bool{}, committed: map[sdk.Queue]int64{}, acked: map[int]int{}, dead: map[int]bool{},
		persisted: map[sdk.Queue]int64{}, settledTo: map[sdk.Queue]int64{}, born: map[int]time.Time{},
	}
	for i := range 2 + w.rng.IntN(5) {
		w.logs[sdk.Queue{Topic: topic, Broker: "b", ID: int32(i)}] = nil
	}
	w.logs[w.retryQueue()] = nil
	return w
}

func (w *world) retryQueue() sdk.Queue {
	return sdk.Queue{Topic: wire.RetryTopic(groupName), Broker: "b"}
}

func (w *world) queues(name string) (qs []sdk.Queue) {
	for q := range w.logs {
		if q.Topic == name {
			qs = append(qs, q)
		}
	}
	slices.SortFunc(qs, sdk.Queue.Compare)
	return qs
}

// after lets f happen in d; note puts it into the trace when it does.
func (w *world) after(d time.Duration, note string, f func()) {
	w.seq++
	heap.Push(&w.todo, happening{at: w.now.Add(d), seq: w.seq, f: func() {
		w.mark(note)
		f()
	}})
}

func (w *world) note(format string, a ...any) { w.mark(fmt.Sprintf(format, a...)) }

// mark puts a moment and what happens then into the trace.
func (w *world) mark(text string) {
	w.trace = (w.trace ^ uint64(w.now.UnixNano())) * 1099511628211 //nolint:gosec // FNV-1a's prime over bits
	for i := range len(text) {
		w.trace = (w.trace ^ uint64(text[i])) * 1099511628211
	}
}

// between draws a duration.
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)))
}

// chance is a fault's; none when the world is calm.
func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent && !w.calm }

// run lets things happen for d.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.todo) > 0 && !w.todo[0].at.After(end) {
		h := heap.Pop(&w.todo).(happening)
		w.now = h.at
		h.f()
		if w.t.Failed() {
			w.t.FailNow()
		}
	}
	w.now = end
}

func (w *world) store(q sdk.Queue, m message) {
	w.logs[q] = append(w.logs[q], m)
	w.done[q] = append(w.done[q], false)
}

// commit is the broker's: it checks the promise that matters most.
func (w *world) commit(q sdk.Queue, offset int64, by string) {
	for ; w.settledTo[q] < offset; w.settledTo[q]++ {
		if o := w.settledTo[q]; !w.done[q][o] {
			w.t.Errorf("seed %d: %s committed %d in %s, but %d (message %d) is neither handled nor stored again", w.seed, by, offset, q, o, w.logs[q][o].id)
			return
		}
	}
	w.committed[q] = offset
}

func (w *world) join() *member {
	w.nextID++
	// Anywhere in the order: a member that comes first takes other queues than the last.
	m := newMember(w, fmt.Sprintf("c%02d-%03d", w.rng.IntN(100), w.nextID))
	w.members = append(w.members, m)
	w.note("join %s", m.id)
	w.notify()
	m.tick()
	return m
}

// kill takes a member away between two of its events: nothing of it happens any more.
func (w *world) kill(m *member) {
	m.dead = true
	w.members = slices.DeleteFunc(w.members, func(o *member) bool { return o == m })
	w.note("kill %s", m.id)
	w.notify()
}

func (w *world) notify() {
	for _, m := range w.members {
		if w.chance(10) {
			continue // lost
		}
		m.later(w.between(0, 300*time.Millisecond), "notify", func() { m.groupStep(group.Input{Kind: group.InNotify}) })
	}
}

// ids is whom the broker counts as members: one that is silent for too long is none, until its next heartbeat.
func (w *world) ids() (ids []string) {
	for _, m := range w.members {
		if !w.now.Before(m.frozen) || w.now.Sub(m.frozenAt) < expiry {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// expiry is after how much silence a broker drops a member (consumer-semantics.md 9.2).
const expiry = 2 * time.Minute

// freeze stops a member for d, as SIGSTOP does: nothing of it happens, and then all of it at once.
func (w *world) freeze(m *member, d time.Duration) {
	m.frozenAt, m.frozen = w.now, w.now.Add(d)
	w.calmsAfter(m.frozen)
	w.note("freeze %s %s", m.id, d)
	if d > expiry {
		w.after(expiry, "expiry", w.notify)
		w.after(d, "heartbeat", w.notify)
	}
}

// calmsAfter puts off the time from which nothing may be handled twice.
func (w *world) calmsAfter(t time.Time) {
	if t.After(w.quiet) {
		w.quiet = t
	}
}

func (w *world) isDown() bool { return w.now.Before(w.down) }

// outage kills the broker: what it had not persisted of the offsets is gone, and nothing is answered for d.
func (w *world) outage(d time.Duration) {
	w.note("outage %s", d)
	w.down = w.now.Add(d)
	w.calmsAfter(w.down)
	w.committed = maps.Clone(w.persisted)
}

// persist is what a broker does with its offsets every 5 s.
func (w *world) persist() {
	w.after(5*time.Second, "persist", func() {
		if !w.isDown() {
			w.persisted = maps.Clone(w.committed)
		}
		w.persist()
	})
}

// reset sets the group back, as an operator does while all are at work.
func (w *world) reset() {
	w.calmsAfter(w.now)
	for _, q := range w.queues(topic) {
		to := w.rng.Int64N(w.committed[q] + 1)
		w.note("reset %s to %d", q, to)
		w.committed[q], w.persisted[q] = to, to
		for _, m := range w.members {
			if wk := m.workers[q]; wk != nil && wk.own != nil {
				m.later(w.between(0, 200*time.Millisecond), "reset", func() { m.reset(wk, to) })
				wk.stale = true
			}
		}
	}
}

// faults keeps breaking things until the world is calm.
func (w *world) faults() {
	w.after(w.between(200*time.Millisecond, 8*time.Second), "fault", func() {
		if w.calm {
			return
		}
		switch n := w.rng.IntN(9); {
		case len(w.members) == 0:
			w.join()
		case n == 0 && len(w.members) > 1:
			w.kill(w.members[w.rng.IntN(len(w.members))])
		case n == 1 && len(w.members) < 5:
			w.join()
		case n == 2 && len(w.members) > 1:
			w.members[w.rng.IntN(len(w.members))].leave()
		case n == 3:
			w.members[w.rng.IntN(len(w.members))].broken = w.now.Add(w.between(2*time.Second, 15*time.Second))
		case n == 4:
			lengths := []time.Duration{5 * time.Second, 40 * time.Second, 75 * time.Second, 150 * time.Second}
			w.freeze(w.members[w.rng.IntN(len(w.members))], lengths[w.rng.IntN(len(lengths))])
		case n == 5:
			w.outage(w.between(500*time.Millisecond, 20*time.Second))
		case n == 6 && w.rng.IntN(3) == 0:
			w.reset()
		default:
			w.members[w.rng.IntN(len(w.members))].crash()
		}
		w.faults()
	})
}

func (w *world) produce(every time.Duration, until time.Time) {
	if w.now.After(until) {
		return
	}
	qs := w.queues(topic)
	n := w.rng.IntN(8)
	if w.isDown() {
		n = 0
	}
	for range n {
		w.produced++
		w.born[w.produced] = w.now
		if w.calm && poison(message{id: w.produced}) { // whose proof might come too late
			w.dead[w.produced] = true
			continue
		}
		w.store(qs[w.rng.IntN(len(qs))], message{id: w.produced, attempt: 1})
	}
	w.after(every, "produce", func() { w.produce(every, until) })
}
