package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// Plugins, crashes, deadlines, resets and failures in random order: a message never starts before the earlier ones of its
// strand have ended well, and never while the handler has another of it. At the end all are handled.
func TestOrderHoldsWhateverHappens(t *testing.T) {
	for seed := range uint64(100) {
		m := newModel(t, seed)
		for range 400 {
			m.chance()
		}
		m.settleDown()
		if t.Failed() {
			t.Fatalf("seed %d, order %d", seed, m.order)
		}
	}
}

// record is a message in the hands of the plugin.
type record struct {
	id       strandID
	q        int32
	offset   int64
	running  bool
	answered bool
}

type modelLane struct {
	solo    bool
	flights map[uint64][]*record
	order   []uint64
}

// model plays the plugin, the settler and the owner of the queues around a core.
type model struct {
	t        *testing.T
	rnd      *rand.Rand
	c        *Core
	now      time.Time
	order    queue.Order
	nextLane LaneID
	lanes    map[LaneID]*modelLane
	inputs   []Input
	held     []*queue.Delivery
	rejected map[*queue.Delivery]bool
	keys     [3][]string // by queue and offset
	finished [3]map[int64]bool
	owns     [3]*queue.Ownership
	running  map[strandID]int
	calm     bool
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	m := &model{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1000, 0), order: queue.OrderQueue + queue.Order(seed%2),
		c: NewCore(Settings{BatchMax: 1 + int(seed%5), BatchBytes: 1 << 20, Deadline: 10 * time.Second}), lanes: map[LaneID]*modelLane{},
		rejected: map[*queue.Delivery]bool{}, running: map[strandID]int{},
	}
	for q := range m.keys {
		m.finished[q] = map[int64]bool{}
		m.begin(int32(q))
	}
	m.open(false)
	return m
}

// begin begins an epoch of a queue where everything below is handled.
func (m *model) begin(q int32) {
	first := int64(0)
	for m.finished[q][first] {
		first++
	}
	own := queue.NewOwnership(sdk.Queue{Topic: "T", Broker: "b", ID: q}, 1, first, nil, make(chan struct{}, 1))
	own.Order = m.order
	m.owns[q] = own
	m.offer(q, first)
}

func (m *model) offer(q int32, from int64) {
	n := int64(len(m.keys[q]))
	ds := make([]queue.Delivery, n-from)
	for i := range ds {
		ds[i] = keyed(from+int64(i), m.keys[q][from+int64(i)])
	}
	m.owns[q].Admit(ds, n, m.now)
	m.step(Input{Kind: InOffer, Own: m.owns[q], Deliveries: ds})
}

func (m *model) open(solo bool) {
	m.nextLane++
	credits := 20
	if solo {
		credits = 1
	}
	m.lanes[m.nextLane] = &modelLane{solo: solo, flights: map[uint64][]*record{}}
	m.step(Input{Kind: InOpened, Lane: m.nextLane, Solo: solo})
	m.event(m.nextLane, frame.Event{Kind: frame.EventCredit, Credits: credits})
}

func (m *model) event(id LaneID, e frame.Event) { m.step(Input{Kind: InEvent, Lane: id, Event: e}) }

// step gives the core an input, and what the world answers to its actions.
func (m *model) step(in Input) {
	m.inputs = append(m.inputs, in)
	if len(m.inputs) > 1 {
		return // the one that is at work takes it
	}
	for len(m.inputs) > 0 {
		for _, a := range m.c.Step(m.now, m.inputs[0]) {
			m.act(a)
		}
		m.inputs = m.inputs[1:]
	}
}

func (m *model) act(a Action) {
	switch a.Kind {
	case ActSend:
		l := m.lanes[a.Lane]
		records := make([]*record, len(a.Items))
		for i, d := range a.Items {
			records[i] = &record{id: idOf(d), q: d.Own.Queue.ID, offset: d.Offset}
		}
		l.flights[a.Seq], l.order = records, append(l.order, a.Seq)
	case ActAck:
		for _, d := range a.Items {
			m.finished[d.Own.Queue.ID][d.Offset] = true
		}
	case ActVerdict:
		if a.Verdict.Kind == frame.VerdictAck {
			m.finished[a.D.Own.Queue.ID][a.D.Offset] = true
			m.inputs = append(m.inputs, Input{Kind: InDone, Own: a.D.Own, Strand: Strand{Number: a.D.Strand}})
			return
		}
		m.held = append(m.held, a.D)
		m.rejected[a.D] = a.Verdict.Kind == frame.VerdictReject
	case ActCancel:
		for _, i := range a.Index {
			if r := m.lanes[a.Lane].flights[a.Seq][i]; !r.running && !r.answered {
				r.answered = true
				m.inputs = append(m.inputs, Input{Kind: InEvent, Lane: a.Lane, Event: verdicts(a.Seq, frame.Verdict{Index: i, Kind: frame.VerdictUntouched})},
					Input{Kind: InEvent, Lane: a.Lane, Event: frame.Event{Kind: frame.EventCredit, Credits: 1}})
			}
		}
	case ActOpenSolo:
		m.nextLane++
		m.lanes[m.nextLane] = &modelLane{solo: true, flights: map[uint64][]*record{}}
		m.inputs = append(m.inputs, Input{Kind: InOpened, Lane: m.nextLane, Solo: true}, Input{Kind: InEvent, Lane: m.nextLane, Event: frame.Event{Kind: frame.EventCredit, Credits: 1}})
	case ActClose:
		delete(m.lanes, a.Lane)
		m.inputs = append(m.inputs, Input{Kind: InEvent, Lane: a.Lane, Event: frame.Event{Kind: frame.EventDrained}})
	default:
	}
}

// chance lets something happen.
func (m *model) chance() {
	switch k := m.rnd.IntN(100); {
	case k < 15:
		q := int32(m.rnd.IntN(len(m.keys)))
		from := int64(len(m.keys[q]))
		for range 1 + m.rnd.IntN(6) {
			m.keys[q] = append(m.keys[q], []string{"", "a", "b", "c"}[m.rnd.IntN(4)])
		}
		m.offer(q, from)
	case k < 45:
		m.start()
	case k < 75:
		m.answer()
	case k < 88:
		m.settle()
	case k < 90:
		m.crash()
	case k < 92:
		q := int32(m.rnd.IntN(len(m.keys)))
		m.cut(q)
		m.begin(q)
	case k < 95:
		m.now = m.now.Add(12 * time.Second) // past deadlines of what was told to run
		m.step(Input{Kind: InTick})
	default:
		m.now = m.now.Add(time.Second)
		m.step(Input{Kind: InTick})
	}
}

func (m *model) cut(q int32) {
	own := m.owns[q]
	own.End()
	kept := m.held[:0]
	for _, d := range m.held {
		if d.Own != own {
			kept = append(kept, d)
		}
	}
	m.held = kept
	m.step(Input{Kind: InRevoke, Own: own, Cut: true})
}

// each visits the records that the plugin has, in the order of their batches.
func (m *model) each(f func(id LaneID, l *modelLane, seq uint64, i int, r *record) bool) {
	for id := LaneID(1); id <= m.nextLane; id++ {
		l := m.lanes[id]
		if l == nil {
			continue
		}
		for _, seq := range l.order {
			for i, r := range l.flights[seq] {
				if !r.answered && f(id, l, seq, i, r) {
					return
				}
			}
		}
	}
}

// start starts a record that is the first of its strand in its batch.
func (m *model) start() {
	skip := m.rnd.IntN(3)
	m.each(func(id LaneID, l *modelLane, seq uint64, i int, r *record) bool {
		for _, before := range l.flights[seq][:i] {
			if before.id == r.id && !before.answered {
				return false
			}
		}
		if skip--; r.running || skip >= 0 && !m.calm {
			return false
		}
		m.check(r)
		r.running = true
		m.running[r.id]++
		if m.rnd.IntN(3) == 0 {
			m.event(id, frame.Event{Kind: frame.EventStarted, Ref: frame.Ref{Seq: seq, Index: uint32(i)}})
		}
		return true
	})
}

func (m *model) check(r *record) {
	if m.running[r.id] > 0 {
		m.t.Errorf("offset %d of %v starts while the handler has another of the strand", r.offset, r.id)
	}
	for o := range r.offset {
		same := m.order == queue.OrderQueue || m.keys[r.q][o] == r.id.key
		if same && !m.finished[r.q][o] {
			m.t.Errorf("offset %d of %v starts before offset %d has ended well", r.offset, r.id, o)
		}
	}
}

// answer ends a record that runs: mostly well.
func (m *model) answer() {
	skip := m.rnd.IntN(3)
	m.each(func(id LaneID, l *modelLane, seq uint64, i int, r *record) bool {
		if skip--; !r.running || skip >= 0 && !m.calm {
			return false
		}
		r.running, r.answered = false, true
		m.running[r.id]--
		answered := 1
		if m.calm || m.rnd.IntN(4) > 0 {
			m.event(id, acked(seq, uint32(i), 1)) // which ends it well unless that comes too late
		} else {
			vs := []frame.Verdict{{Index: uint32(i), Kind: frame.VerdictRetry + frame.VerdictKind(m.rnd.IntN(2))}}
			for k, after := range l.flights[seq][i+1:] {
				if after.id == r.id && !after.answered {
					after.answered = true
					answered++
					vs = append(vs, frame.Verdict{Index: uint32(i + 1 + k), Kind: frame.VerdictUntouched})
				}
			}
			m.event(id, verdicts(seq, vs...))
		}
		m.event(id, frame.Event{Kind: frame.EventCredit, Credits: answered})
		return true
	})
}

// settle ends what a message waits for at the settler.
func (m *model) settle() {
	if len(m.held) == 0 {
		return
	}
	i := m.rnd.IntN(len(m.held))
	d := m.held[i]
	m.held = append(m.held[:i], m.held[i+1:]...)
	if m.rejected[d] {
		m.finished[d.Own.Queue.ID][d.Offset] = true
		m.step(Input{Kind: InDone, Own: d.Own, Strand: Strand{Number: d.Strand}})
		return
	}
	d.Trial().Failed = m.now
	m.step(Input{Kind: InAgain, One: d})
}

// crash ends a process; what ran is suspect.
func (m *model) crash() {
	for id := LaneID(1); id <= m.nextLane; id++ {
		l := m.lanes[id]
		if l == nil || len(l.order) == 0 || m.rnd.IntN(2) == 0 {
			continue
		}
		lost := &frame.Lost{Cause: frame.CauseCrash, Text: "exit status 2"}
		for _, seq := range l.order {
			for i, r := range l.flights[seq] {
				if r.running {
					m.running[r.id]--
					k := i
					if m.rnd.IntN(2) == 0 { // the answer to it is lost, and what follows it is what ran
						k += max(0, slices.IndexFunc(l.flights[seq][i:], func(o *record) bool { return o != r && o.id == r.id && !o.answered }))
					}
					lost.Suspects = append(lost.Suspects, frame.Ref{Seq: seq, Index: uint32(k)})
				}
			}
		}
		delete(m.lanes, id)
		m.event(id, frame.Event{Kind: frame.EventLost, Lost: lost})
		if !l.solo {
			m.open(false)
		}
		return
	}
}

// settleDown lets everything end well.
func (m *model) settleDown() {
	m.calm = true
	for range 5000 {
		m.start()
		m.answer()
		m.settle()
		m.now = m.now.Add(time.Second)
		m.step(Input{Kind: InTick})
		if m.complete() == "" {
			return
		}
	}
	m.t.Error(m.complete())
}

func (m *model) complete() string {
	for q := range m.keys {
		for o := range m.keys[q] {
			if !m.finished[q][int64(o)] {
				return "offset " + strconv.Itoa(o) + " of queue " + strconv.Itoa(q) + " is not handled"
			}
		}
	}
	if len(m.c.ghosts) > 0 || len(m.c.strands) > 0 || m.c.Ready() > 0 || m.c.Suspects() > 0 {
		return fmt.Sprintf("left: %d ghosts, %d strands, %d ready, %d suspects", len(m.c.ghosts), len(m.c.strands), m.c.Ready(), m.c.Suspects())
	}
	return ""
}
