package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

func keyed(offset int64, key string) queue.Delivery {
	var text []byte
	if key != "" {
		text, _ = wire.AppendProperty(nil, "__SHARDINGKEY", key)
	}
	return queue.Delivery{Offset: offset, Attempt: 1, Topic: "T", Body: []byte("x"), Props: queue.ScanProperties(text)}
}

func (r *rig) offerOrdered(order queue.Order, id int32, keys ...string) []Action {
	o := queue.NewOwnership(sdk.Queue{Topic: "T", Broker: "b", ID: id}, 1, 0, nil, make(chan struct{}, 1))
	o.Order = order
	r.own[id] = o
	ds := make([]queue.Delivery, len(keys))
	for i := range ds {
		ds[i] = keyed(int64(i), keys[i])
	}
	o.Admit(ds, int64(len(ds)), r.now)
	return r.c.Step(r.now, Input{Kind: InOffer, Own: o, Deliveries: ds})
}

func sends(as []Action) (batches [][]int64) {
	for _, a := range as {
		if a.Kind == ActSend {
			offsets := make([]int64, len(a.Items))
			for i, d := range a.Items {
				offsets[i] = d.Offset
			}
			batches = append(batches, offsets)
		}
	}
	return batches
}

func acked(seq uint64, from, n uint32) frame.Event {
	return frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: seq, AckRuns: []uint32{from, n}}}
}

func verdicts(seq uint64, vs ...frame.Verdict) frame.Event {
	return frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: seq, Verdicts: vs}}
}

// The OR-P01 of the fault list: what follows a failed message waits until that is settled, whatever the plugin's capacity.
func TestStrandWaitsForItsHead(t *testing.T) {
	r := newRig(Settings{BatchMax: 4, BatchBytes: 1 << 20})
	r.open(1, 100, frame.LaneInfo{})
	as := r.offerOrdered(queue.OrderQueue, 0, "", "", "", "", "", "")
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{0, 1, 2, 3}) {
		t.Fatalf("sent %v", got)
	}
	strand := as[0].Items[0].Strand
	for _, d := range as[0].Items {
		if d.Strand != strand || strand == 0 {
			t.Errorf("strand %d of offset %d, want %d", d.Strand, d.Offset, strand)
		}
	}
	head := as[0].Items[1]
	as = r.event(1, acked(1, 0, 1))
	if got := sends(as); len(got) != 0 {
		t.Errorf("sent %v while the strand is out", got)
	}
	// In whatever order the plugin names them, they stand in order again.
	as = r.event(1, verdicts(1, frame.Verdict{Index: 2, Kind: frame.VerdictUntouched}, frame.Verdict{Index: 1, Kind: frame.VerdictRetry}, frame.Verdict{Index: 3, Kind: frame.VerdictUntouched}))
	if count(as, ActVerdict) != 1 || len(sends(as)) != 0 {
		t.Errorf("after the failure: %+v", as)
	}
	if at := r.c.Next(r.now); !at.IsZero() {
		t.Errorf("a blocked strand wants a step at %s", at)
	}
	as = r.c.Step(r.now, Input{Kind: InAgain, One: head})
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{1, 2, 3, 4}) {
		t.Errorf("sent %v after the pause", got)
	}
	r.event(1, verdicts(2, frame.Verdict{Index: 0, Kind: frame.VerdictReject}, frame.Verdict{Index: 1, Kind: frame.VerdictUntouched}, frame.Verdict{Index: 2, Kind: frame.VerdictUntouched}, frame.Verdict{Index: 3, Kind: frame.VerdictUntouched}))
	as = r.c.Step(r.now, Input{Kind: InDone, Own: r.own[0], Strand: Strand{Number: strand}})
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{2, 3, 4, 5}) {
		t.Errorf("sent %v after the head was dead-lettered", got)
	}
	r.event(1, acked(3, 0, 4))
	if len(r.c.strands) != 0 || r.c.Ready() != 0 {
		t.Errorf("%d strands left, %d ready", len(r.c.strands), r.c.Ready())
	}
}

func TestKeysRunInParallel(t *testing.T) {
	r := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20})
	r.open(1, 100, frame.LaneInfo{})
	as := r.offerOrdered(queue.OrderKey, 0, "a", "b", "a", "", "b", "")
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{0, 2, 1, 4, 3, 5}) {
		t.Fatalf("sent %v", got)
	}
	items := slices.Clone(as[0].Items)
	r.event(1, verdicts(1, frame.Verdict{Index: 0, Kind: frame.VerdictRetry}, frame.Verdict{Index: 1, Kind: frame.VerdictUntouched}))
	r.event(1, acked(1, 2, 4))
	more := make([]queue.Delivery, 4)
	for i, key := range []string{"a", "b", "c", ""} {
		more[i] = keyed(int64(6+i), key)
	}
	r.own[0].Admit(more, 10, r.now)
	as = r.c.Step(r.now, Input{Kind: InOffer, Own: r.own[0], Deliveries: more})
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{7, 8, 9}) {
		t.Errorf("sent %v while key a waits", got)
	}
	as = r.c.Step(r.now, Input{Kind: InAgain, One: items[0]})
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{0, 2, 6}) {
		t.Errorf("sent %v of key a", got)
	}
}

// Nothing starts once the lock may be somebody else's, and it goes on when the lock is renewed after all.
func TestNothingStartsAfterTheLease(t *testing.T) {
	r := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20})
	r.open(1, 0, frame.LaneInfo{})
	r.offerOrdered(queue.OrderQueue, 0, "", "")
	own := r.own[0]
	own.Extend(r.now.Add(time.Second))
	r.now = r.now.Add(time.Second)
	if as := r.event(1, frame.Event{Kind: frame.EventCredit, Credits: 10}); len(sends(as)) != 0 {
		t.Errorf("sent %v after the lease", sends(as))
	}
	if at := r.c.Next(r.now); !at.IsZero() {
		t.Errorf("wants a step at %s", at)
	}
	own.Extend(r.now.Add(time.Second))
	if as := r.c.Step(r.now, Input{Kind: InOffer, Own: own}); len(sends(as)) != 1 {
		t.Errorf("sent %v after the renewal", sends(as))
	}
}

// A handler that goes on with a message that was taken from it holds up its strand, also for the next epoch.
func TestNextEpochWaitsForHandlersOfTheLast(t *testing.T) {
	r := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20})
	r.open(1, 100, frame.LaneInfo{})
	r.offerOrdered(queue.OrderKey, 0, "a", "b")
	as := r.c.Step(r.now, Input{Kind: InRevoke, Own: r.own[0], Cut: true})
	if count(as, ActCancel) != 1 || count(as, ActDrop) != 1 || r.c.Idle() {
		t.Errorf("cut: %+v", as)
	}
	if as := r.offerOrdered(queue.OrderKey, 0, "a", "b", "c"); !slices.Equal(sends(as)[0], []int64{2}) {
		t.Errorf("sent %v while a and b still run", sends(as))
	}
	if as := r.event(1, acked(1, 1, 1)); !slices.Equal(sends(as)[0], []int64{1}) {
		t.Errorf("sent %v after b's answer", sends(as))
	}
	r.event(1, frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash}})
	r.c.Step(r.now, Input{Kind: InOpened, Lane: 2})
	if as := r.event(2, frame.Event{Kind: frame.EventCredit, Credits: 10}); !slices.Equal(sends(as)[0], []int64{2, 1, 0}) && len(sends(as)[0]) != 3 {
		t.Errorf("sent %v once the process was gone", sends(as))
	}
}

// The next dispatcher gets what is not sent, and knows of what is at the settler.
func TestStrandsGoOverToTheNextDispatcher(t *testing.T) {
	r := newRig(Settings{BatchMax: 2, BatchBytes: 1 << 20})
	r.open(1, 100, frame.LaneInfo{})
	as := r.offerOrdered(queue.OrderKey, 0, "a", "a", "a", "b", "b", "b")
	head := as[0].Items[0]
	r.c.Step(r.now, Input{Kind: InQuiesce})
	r.event(1, verdicts(1, frame.Verdict{Index: 0, Kind: frame.VerdictRetry}, frame.Verdict{Index: 1, Kind: frame.VerdictUntouched}))
	if r.c.Idle() {
		t.Error("idle while b is out")
	}
	if as := r.event(1, acked(2, 0, 2)); len(sends(as)) != 0 || !r.c.Idle() {
		t.Errorf("sent %v", sends(as))
	}
	left := r.c.left()
	next := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20})
	next.open(1, 100, frame.LaneInfo{})
	for o, strands := range left.Strands {
		for _, st := range strands {
			next.c.Step(next.now, Input{Kind: InAdopt, Own: o, Strand: st})
		}
	}
	var sent []int64
	for _, d := range left.Waiting {
		for _, b := range sends(next.c.Step(next.now, Input{Kind: InMove, One: d})) {
			sent = append(sent, b...)
		}
	}
	if !slices.Equal(sent, []int64{5}) {
		t.Errorf("sent %v, want b's last alone", sent)
	}
	if got := sends(next.c.Step(next.now, Input{Kind: InAgain, One: head})); len(got) != 1 || !slices.Equal(got[0], []int64{0, 1, 2}) {
		t.Errorf("sent %v of key a", got)
	}
}

// A handler that pays no heed to its deadline answers late and goes on with what follows. None of that counts: what was given
// up comes again, and what follows it comes again after it.
func TestWhatFollowsAMessageThatIsOverdueComesAgainAfterIt(t *testing.T) {
	r := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20, Deadline: 2 * time.Second})
	r.open(1, 100, frame.LaneInfo{})
	as := r.offerOrdered(queue.OrderKey, 0, "a", "a", "b", "a")
	if got := sends(as); len(got) != 1 || !slices.Equal(got[0], []int64{0, 1, 3, 2}) {
		t.Fatalf("sent %v", got)
	}
	head := as[0].Items[0]
	r.event(1, frame.Event{Kind: frame.EventStarted, Ref: frame.Ref{Seq: 1, Index: 0}})
	r.now = r.now.Add(2 * time.Second)
	as = r.c.Step(r.now, Input{Kind: InTick})
	if count(as, ActVerdict) != 1 || count(as, ActReturn) != 2 || count(as, ActCancel) != 1 || len(sends(as)) != 0 {
		t.Fatalf("at the deadline: %+v", as)
	}
	for _, a := range as {
		if a.Kind == ActCancel && !slices.Equal(slices.Sorted(slices.Values(a.Index)), []uint32{0, 1, 2}) {
			t.Errorf("canceled %v", a.Index)
		}
	}
	if as := r.c.Step(r.now, Input{Kind: InAgain, One: head}); len(sends(as)) != 0 {
		t.Errorf("sent %v while the handler still has the message", sends(as))
	}
	if as := r.event(1, acked(1, 0, 2)); count(as, ActAck) != 0 || len(sends(as)) != 0 {
		t.Errorf("after two late answers: %+v", as)
	}
	as = r.event(1, acked(1, 2, 2))
	if got := sends(as); count(as, ActAck) != 1 || len(got) != 1 || !slices.Equal(got[0], []int64{0, 1, 3}) {
		t.Errorf("after the last one: %+v", as)
	}
}

// What comes back before a suspect goes before it: the suspect waits for it, and nobody looks again and again meanwhile.
func TestSuspectWaitsForWhatComesBackBeforeIt(t *testing.T) {
	crash := frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseCrash, Suspects: []frame.Ref{{Seq: 1, Index: 1}}}}
	for name, comesBack := range map[string]func(r *rig, first *queue.Delivery){
		"its output cannot be stored": func(r *rig, first *queue.Delivery) {
			r.event(1, frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: 1, AckRuns: []uint32{0, 1}, Cause: []uint32{0}}})
			r.event(1, crash)
			r.open(2, 100, frame.LaneInfo{})
			if as := r.solo(3); len(sends(as)) != 0 {
				t.Errorf("sent %v while the first message is at the settler", sends(as))
			}
			r.c.Step(r.now, Input{Kind: InBroken, One: first})
			if as := r.c.Step(r.now, Input{Kind: InTick}); len(sends(as)) != 0 || !r.c.Next(r.now).IsZero() {
				t.Errorf("sent %v before the next try of the first message, next step %s", sends(as), r.c.Next(r.now))
			}
			first.Attempt++
			first.Trial().Failed = r.now
			if got := sends(r.c.Step(r.now, Input{Kind: InAgain, One: first})); len(got) != 1 || !slices.Equal(got[0], []int64{0}) {
				t.Errorf("sent %v when the first message came back", got)
			}
		},
		"its answer is lost": func(r *rig, _ *queue.Delivery) {
			r.event(1, crash)
			if got := sends(r.open(2, 100, frame.LaneInfo{})); len(got) != 1 || !slices.Equal(got[0], []int64{0}) {
				t.Errorf("sent %v after the crash", got)
			}
			if as := r.solo(3); len(sends(as)) != 0 {
				t.Errorf("sent %v while the first message is out", sends(as))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(Settings{BatchMax: 8, BatchBytes: 1 << 20})
			r.open(1, 100, frame.LaneInfo{})
			as := r.offerOrdered(queue.OrderQueue, 0, "", "", "")
			comesBack(r, as[0].Items[0])
			strand := r.c.suspects[0].Strand
			if as := r.c.Step(r.now, Input{Kind: InTick}); len(sends(as)) != 0 || !r.c.Next(r.now).IsZero() {
				t.Errorf("sent %v while the first message is out, next step %s", sends(as), r.c.Next(r.now))
			}
			got := sends(r.event(2, acked(1, 0, 1)))
			if len(got) == 0 { // it was tried again: the settler has it
				got = sends(r.c.Step(r.now, Input{Kind: InDone, Own: r.own[0], Strand: Strand{Number: strand}}))
			}
			if len(got) != 1 || !slices.Equal(got[0], []int64{1}) {
				t.Errorf("sent %v after the first message, want the suspect alone", got)
			}
			r.c.Step(r.now, Input{Kind: InEvent, Lane: 3, Event: acked(1, 0, 1)})
			if len(r.c.suspects) != 0 || r.c.Ready() != 0 {
				t.Errorf("%d suspects, %d ready", len(r.c.suspects), r.c.Ready())
			}
		})
	}
}
