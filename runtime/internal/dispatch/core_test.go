package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

type rig struct {
	c   *Core
	now time.Time
	own map[int32]*queue.Ownership
}

func newRig(s Settings) *rig {
	return &rig{c: NewCore(s), now: time.Unix(1000, 0), own: map[int32]*queue.Ownership{}}
}

func (r *rig) offer(id int32, n int) []Action {
	q := sdk.Queue{Topic: "T", Broker: "b", ID: id}
	o := r.own[id]
	if o == nil {
		o = queue.NewOwnership(q, 1, 0, nil, make(chan struct{}, 1))
		r.own[id] = o
	}
	ds := make([]queue.Delivery, n)
	for i := range ds {
		ds[i] = queue.Delivery{Offset: int64(i), Attempt: 1, Body: make([]byte, 10)}
	}
	o.Admit(ds, int64(n), r.now)
	return r.c.Step(r.now, Input{Kind: InOffer, Own: o, Deliveries: ds})
}

func (r *rig) open(id LaneID, credits int, info frame.LaneInfo) []Action {
	r.c.Step(r.now, Input{Kind: InOpened, Lane: id, Info: info})
	return r.event(id, frame.Event{Kind: frame.EventCredit, Credits: credits})
}

func (r *rig) event(id LaneID, e frame.Event) []Action {
	return r.c.Step(r.now, Input{Kind: InEvent, Lane: id, Event: e})
}

func sent(as []Action) (n int, queues map[int32]int) {
	queues = map[int32]int{}
	for _, a := range as {
		if a.Kind == ActSend {
			n += len(a.Items)
			for _, d := range a.Items {
				queues[d.Own.Queue.ID]++
			}
		}
	}
	return n, queues
}

func count(as []Action, k ActionKind) (n int) {
	for _, a := range as {
		if a.Kind == k {
			n++
		}
	}
	return n
}

func TestBatchesAreFilledFairly(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 1 << 20})
	for id := range int32(8) {
		r.offer(id, 1000)
	}
	n, queues := sent(r.open(1, 128, frame.LaneInfo{}))
	if n != 128 {
		t.Fatalf("%d sent, want the 128 granted", n)
	}
	for id := range int32(8) {
		if queues[id] != 16 {
			t.Errorf("queue %d got %d of 128: %v", id, queues[id], queues)
		}
	}
}

func TestLingerOnlyWhileTheLaneHasWork(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 1 << 20, Linger: time.Millisecond})
	r.open(1, 100, frame.LaneInfo{})
	if n, _ := sent(r.offer(0, 1)); n != 1 {
		t.Errorf("%d sent on an idle lane, want 1 at once", n)
	}
	if n, _ := sent(r.offer(1, 1)); n != 0 {
		t.Errorf("%d sent while one is out, want none yet", n)
	}
	if at := r.c.Next(r.now); at.Sub(r.now) != time.Millisecond {
		t.Errorf("next step at %s", at)
	}
	r.now = r.now.Add(time.Millisecond)
	if n, _ := sent(r.c.Step(r.now, Input{Kind: InTick})); n != 1 {
		t.Errorf("%d sent after the linger, want 1", n)
	}
	r.offer(2, 31)
	if n, _ := sent(r.offer(3, 1)); n != 32 {
		t.Errorf("%d sent when the batch was full, want 32", n)
	}
}

func TestBatchesAreBoundedByBytes(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 300})
	r.offer(0, 10) // 74 bytes each
	as := r.open(1, 100, frame.LaneInfo{})
	if got := count(as, ActSend); got != 3 {
		t.Errorf("%d batches, want 3 of at most 4 records", got)
	}
}

func TestRecordBeyondTheFrameIsRejected(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 300})
	r.offer(0, 2)
	as := r.open(1, 100, frame.LaneInfo{MaxBytes: 500})
	if count(as, ActVerdict) != 2 || as[1].Verdict.Kind != frame.VerdictReject || as[1].Verdict.Class != "too_large" || count(as, ActSend) != 0 {
		t.Errorf("%+v", as)
	}
}

func TestAnswersAreTakenOnce(t *testing.T) {
	r := newRig(Settings{BatchMax: 4, BatchBytes: 1 << 20})
	r.offer(0, 4)
	r.open(1, 4, frame.LaneInfo{})
	res := &frame.Results{Seq: 1, AckRuns: []uint32{0, 2, 3, 100}, Verdicts: []frame.Verdict{{Index: 2, Kind: frame.VerdictRetry}, {Index: 2, Kind: frame.VerdictReject}}}
	as := r.event(1, frame.Event{Kind: frame.EventResults, Results: res})
	if count(as, ActAck) != 1 || len(as[0].Items) != 3 || count(as, ActVerdict) != 1 {
		t.Errorf("%+v", as)
	}
	late := r.c.Counters().Late
	if again := r.event(1, frame.Event{Kind: frame.EventResults, Results: res}); len(again) != 0 || r.c.Counters().Late <= late {
		t.Errorf("a second answer did %+v", again)
	}
	if as := r.event(9, frame.Event{Kind: frame.EventResults, Results: res}); len(as) != 0 {
		t.Errorf("an answer of a lane that never was did %+v", as)
	}
}

func TestLostLaneGivesBackInOrder(t *testing.T) {
	r := newRig(Settings{BatchMax: 4, BatchBytes: 1 << 20})
	r.offer(0, 12)
	r.open(1, 8, frame.LaneInfo{})
	r.event(1, frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: 1, AckRuns: []uint32{1, 1}}})
	r.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseProtocol}})
	var order []int64
	for _, a := range r.open(2, 100, frame.LaneInfo{}) {
		for _, d := range a.Items {
			order = append(order, d.Offset)
		}
	}
	want := []int64{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for i := range want {
		if len(order) != len(want) || order[i] != want[i] {
			t.Fatalf("sent again as %v, want %v", order, want)
		}
	}
}

func TestRevokeDropsWhatIsNotSentAndForgets(t *testing.T) {
	r := newRig(Settings{BatchMax: 4, BatchBytes: 1 << 20})
	r.open(1, 4, frame.LaneInfo{})
	r.offer(0, 10)
	o := r.own[0]
	o.Close()
	as := r.c.Step(r.now, Input{Kind: InRevoke, Own: o})
	if count(as, ActRevoke) != 1 || count(as, ActDrop) != 1 || as[0].Out || len(as[0].Items) != 6 {
		t.Errorf("%+v", as)
	}
	as = r.c.Step(r.now, Input{Kind: InRevoke, Own: o, Cut: true})
	if count(as, ActCancel) != 1 || count(as, ActDrop) != 1 {
		t.Errorf("%+v", as)
	}
	if len(r.c.sources) != 0 {
		t.Errorf("%d sources are not forgotten", len(r.c.sources))
	}
	as = r.event(1, frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: 1, AckRuns: []uint32{0, 4}}})
	if len(as) != 0 || r.c.Counters().Late != 4 {
		t.Errorf("answers after the cut did %+v, %d late", as, r.c.Counters().Late)
	}
}

// A batch that no frame carries would end its lane, and the next one, for ever.
func TestBatchFitsTheFrame(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 1 << 20})
	r.offer(0, 10) // 74 bytes each
	as := r.open(1, 100, frame.LaneInfo{MaxBytes: 3000})
	if n, _ := sent(as); n != 10 || count(as, ActSend) != 5 {
		t.Errorf("%d records in %d batches, want 10 in 5", n, count(as, ActSend))
	}
}

// A solo lane without a credit is waited for: a wake-up that is due already would come again and again, for nothing.
func TestSoloLaneWithoutCreditIsWaitedFor(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 300})
	r.offer(0, 2)
	r.open(1, 100, frame.LaneInfo{})
	r.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: []frame.Ref{{Seq: 1}, {Seq: 1, Index: 1}}}})
	r.c.Step(r.now, Input{Kind: InOpened, Lane: 2, Solo: true})
	if at := r.c.Next(r.now); !at.IsZero() && !at.After(r.now) {
		t.Errorf("due at %s, it is %s", at, r.now)
	}
	if n, _ := sent(r.event(2, frame.Event{Kind: frame.EventCredit, Credits: 1})); n != 1 {
		t.Errorf("%d records sent, want 1 alone", n)
	}
}

// A plugin that dies on every message is known to be broken after a few, also when many are suspected: none of them comes alone
// a second time before all others did.
func TestBrokenIsKnownAfterAFewOfManySuspects(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 1 << 20})
	r.offer(0, 20)
	r.open(1, 100, frame.LaneInfo{})
	all := make([]frame.Ref, 20)
	for i := range all {
		all[i] = frame.Ref{Seq: 1, Index: uint32(i)}
	}
	r.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: all}})
	for crashes := 1; crashes <= soloCrashesToBroken; crashes++ {
		if text, broken := r.c.Broken(); broken {
			t.Fatalf("broken before its solo crash %d: %s", crashes, text)
		}
		r.now = r.now.Add(longSoloPause)
		lane := LaneID(1 + crashes)
		r.c.Step(r.now, Input{Kind: InOpened, Lane: lane, Solo: true})
		r.event(lane, frame.Event{Kind: frame.EventCredit, Credits: 1})
		r.event(lane, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Text: "no database", Suspects: []frame.Ref{{Seq: uint64(1)}}}})
	}
	if text, broken := r.c.Broken(); !broken || !strings.Contains(text, "no database") || !strings.Contains(text, "3 times in a row") {
		t.Errorf("broken %t: %s", broken, text)
	}
}

// A suspect that the solo process gives back untouched, since it is replaced, is a suspect still: it would take others with it.
func TestSuspectThatComesBackUntouchedRunsAlone(t *testing.T) {
	r := newRig(Settings{BatchMax: 32, BatchBytes: 1 << 20})
	r.offer(0, 2)
	r.open(1, 100, frame.LaneInfo{})
	r.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: []frame.Ref{{Seq: 1}}}})
	r.solo(2)
	r.event(2, frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: 1, Verdicts: []frame.Verdict{{Kind: frame.VerdictUntouched}}}})
	as := r.open(3, 100, frame.LaneInfo{})
	if n, _ := sent(as); n != 1 || as[0].Items[0].Offset != 1 || r.c.Suspects() != 1 {
		t.Errorf("%d sent, %d suspects: %+v", n, r.c.Suspects(), as)
	}
}

// solo opens a solo lane with its one credit.
func (r *rig) solo(id LaneID) []Action {
	r.now = r.now.Add(longSoloPause)
	r.c.Step(r.now, Input{Kind: InOpened, Lane: id, Solo: true})
	return r.event(id, frame.Event{Kind: frame.EventCredit, Credits: 1})
}

// dies ends a solo lane with its first message.
func (r *rig) dies(id LaneID) []Action {
	return r.event(id, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: []frame.Ref{{Seq: 1}}}})
}

// ack has a plugin ack n messages of a queue on a lane of their own.
func (r *rig) ack(id LaneID, n int) {
	r.offer(int32(id), n)
	r.open(id, n, frame.LaneInfo{})
	r.event(id, frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: 1, AckRuns: []uint32{0, uint32(n)}}})
}

// A suspect moves to the dispatcher that replaces its own, which has counted acks of its own: the proof is made there anew, and
// what either counted before is none.
func TestProofIsMadeWhereTheSuspectIs(t *testing.T) {
	for name, before := range map[string]struct{ first, second int }{"few there": {first: 100}, "many there": {second: 100}} {
		t.Run(name, func(t *testing.T) {
			s := Settings{BatchMax: 200, BatchBytes: 1 << 20}
			old, next := newRig(s), newRig(s)
			old.ack(1, 1+before.first)
			next.ack(1, 1+before.second)
			old.offer(0, 1)
			old.open(2, 0, frame.LaneInfo{})
			old.event(1, frame.Event{Kind: frame.EventCredit, Credits: 1})
			old.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: []frame.Ref{{Seq: 2}}}})
			old.solo(3)
			old.dies(3)
			for _, a := range old.c.Step(old.now, Input{Kind: InSurrender}) {
				for _, d := range a.Items {
					next.c.Step(next.now, Input{Kind: InMove, One: d})
				}
			}
			next.solo(3)
			next.dies(3)
			if n := next.c.Counters().Poisoned; n != 0 || next.c.Suspects() != 1 {
				t.Fatalf("%d poisoned after one crash here, %d suspects", n, next.c.Suspects())
			}
			next.ack(4, 1)
			next.solo(5)
			next.dies(5)
			if n := next.c.Counters().Poisoned; n != 1 {
				t.Errorf("%d poisoned after the proof, want 1", n)
			}
		})
	}
}
