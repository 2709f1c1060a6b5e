package pluginhost

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/streamd/streamd/internal/frame"
)

func sentLedger(t *testing.T, sizes ...int) *ledger {
	t.Helper()
	l := newLedger()
	l.grant(1000)
	for i, n := range sizes {
		if err := l.send(uint64(i+1), n, time.Unix(100, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func outputs(t *testing.T, bodies ...string) frame.Records {
	t.Helper()
	var b frame.Builder
	for _, body := range bodies {
		b.Append(&frame.Record{Topic: "Out", Body: []byte(body)})
	}
	return *b.Records()
}

func TestLedger_impossibleAnswersAreNamed(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]frame.Results{
		"never sent":     {Seq: 9, AckRuns: []uint32{0, 1}},
		"outside":        {Seq: 1, AckRuns: []uint32{2, 2}},
		"run overflows":  {Seq: 1, AckRuns: []uint32{1, 4294967295}},
		"verdict":        {Seq: 1, Verdicts: []frame.Verdict{{Index: 3, Kind: frame.VerdictRetry}}},
		"odd runs":       {Seq: 1, AckRuns: []uint32{0}},
		"foreign cause":  {Seq: 1, AckRuns: []uint32{0, 1}, Outputs: outputs(t, "x"), Cause: []uint32{7}},
		"unsettled ones": {Seq: 1, AckRuns: []uint32{0, 1}, Outputs: outputs(t, "x"), Cause: []uint32{1}},
	} {
		var broken *violation
		if _, err := sentLedger(t, 3).answer(&r, time.Unix(101, 0)); !errors.As(err, &broken) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLedger_secondAnswersAreDropped(t *testing.T) {
	t.Parallel()
	l := sentLedger(t, 4)
	now := time.Unix(101, 0)
	if fresh, err := l.answer(&frame.Results{Seq: 1, AckRuns: []uint32{1, 1}}, now); !fresh || err != nil {
		t.Fatal(fresh, err)
	}
	r := &frame.Results{
		Seq: 1, AckRuns: []uint32{0, 3}, Verdicts: []frame.Verdict{{Index: 2, Kind: frame.VerdictReject}, {Index: 3, Kind: frame.VerdictRetry}},
		Outputs: outputs(t, "zero", "one", "three"), Cause: []uint32{0, 1, 3},
		OutputDelay: []time.Duration{1, 2, 3}, OutputShardingKey: []string{"a", "b", "c"},
	}
	if fresh, err := l.answer(r, now); !fresh || err != nil {
		t.Fatal(fresh, err)
	}
	if !slices.Equal(r.AckRuns, []uint32{0, 1, 2, 1}) || len(r.Verdicts) != 1 || r.Verdicts[0].Index != 3 {
		t.Errorf("left: runs %v, verdicts %v", r.AckRuns, r.Verdicts)
	}
	if r.Outputs.Len() != 2 || string(r.Outputs.Body(1)) != "three" || !slices.Equal(r.Cause, []uint32{0, 3}) ||
		!slices.Equal(r.OutputDelay, []time.Duration{1, 3}) || !slices.Equal(r.OutputShardingKey, []string{"a", "c"}) {
		t.Errorf("outputs left: %d, causes %v, delays %v, keys %v", r.Outputs.Len(), r.Cause, r.OutputDelay, r.OutputShardingKey)
	}
	if l.duplicates != 2 || l.records != 0 || len(l.out) != 0 {
		t.Errorf("%d duplicates, %d records out", l.duplicates, l.records)
	}
	if fresh, err := l.answer(&frame.Results{Seq: 1, AckRuns: []uint32{0, 4}}, now); fresh || err != nil || l.duplicates != 6 {
		t.Errorf("late answer: %t, %v, %d duplicates", fresh, err, l.duplicates)
	}
}

func TestLedger_overdue(t *testing.T) {
	t.Parallel()
	l := sentLedger(t, 2, 2)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	const limit = 10 * time.Second
	if _, _, late := l.overdue(at(110), limit); late {
		t.Error("late at the limit")
	}
	ref, since, late := l.overdue(at(111), limit)
	if !late || ref != (frame.Ref{Seq: 1}) || !since.Equal(at(100)) {
		t.Errorf("%v since %v, %t", ref, since, late)
	}
	if _, err := l.answer(&frame.Results{Seq: 1, AckRuns: []uint32{0, 1}}, at(111)); err != nil {
		t.Fatal(err)
	}
	if known, err := l.start(frame.Ref{Seq: 2, Index: 1}, at(105)); !known || err != nil {
		t.Fatal(known, err)
	}
	if known, err := l.start(frame.Ref{Seq: 1, Index: 0}, at(105)); known || err != nil {
		t.Error("a start of an answered record counts", err)
	}
	if _, err := l.start(frame.Ref{Seq: 3}, at(105)); err == nil {
		t.Error("a start of what was never sent")
	}
	if ref, _, late := l.overdue(at(116), limit); !late || ref != (frame.Ref{Seq: 2, Index: 1}) {
		t.Errorf("the long runner: %v, %t", ref, late)
	}
	if got := l.longRunners(at(116), limit); len(got) != 1 || got[0] != (frame.Ref{Seq: 2, Index: 1}) {
		t.Errorf("long runners %v", got)
	}
	if _, err := l.answer(&frame.Results{Seq: 2, AckRuns: []uint32{0, 2}}, at(117)); err != nil {
		t.Fatal(err)
	}
	if ref, _, late := l.overdue(at(128), limit); !late || ref != (frame.Ref{Seq: 1, Index: 1}) {
		t.Errorf("the silent one: %v, %t", ref, late)
	}
}

// A plugin that says again and again that a record runs does not put off its end so.
func TestLedger_startedCountsOnce(t *testing.T) {
	t.Parallel()
	l := sentLedger(t, 1, 1)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	record := frame.Ref{Seq: 1}
	for s := int64(100); s < 110; s++ {
		if known, err := l.start(record, at(s)); known != (s == 100) || err != nil {
			t.Errorf("said at %d: %t, %v", s, known, err)
		}
	}
	if _, err := l.answer(&frame.Results{Seq: 2, AckRuns: []uint32{0, 1}}, at(110)); err != nil {
		t.Fatal(err)
	}
	if ref, since, late := l.overdue(at(111), 10*time.Second); !late || ref != record || !since.Equal(at(100)) {
		t.Errorf("%v since %v, %t", ref, since, late)
	}
}

func TestLedger_suspects(t *testing.T) {
	t.Parallel()
	l := sentLedger(t, 3, 3)
	if _, err := l.answer(&frame.Results{Seq: 1, AckRuns: []uint32{1, 1}}, time.Unix(101, 0)); err != nil {
		t.Fatal(err)
	}
	got := l.suspects([]frame.Run{{Seq: 1, Index: 0, Count: 2}, {Seq: 2, Index: 2, Count: 60000}, {Seq: 77, Count: 5}}, true)
	if want := []frame.Ref{{Seq: 1, Index: 0}, {Seq: 2, Index: 2}}; !slices.Equal(got, want) {
		t.Errorf("suspects %v, want %v: unanswered records that were sent", got, want)
	}
	if got := l.suspects(nil, false); len(got) != 5 {
		t.Errorf("an unreadable page makes %d suspects, want all 5 unanswered", len(got))
	}
}

// Whatever a plugin answers: what is out is what was sent less what was answered, each record is passed on once at most,
// and never more is out than was granted.
func TestLedger_properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		granted, sent, seq := 0, 0, uint64(0)
		sizes := map[uint64]int{}
		passed := map[frame.Ref]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				granted += l.grant(uint64(rapid.IntRange(0, 100).Draw(t, "grant")))
			case 1:
				n := rapid.IntRange(1, 70).Draw(t, "records")
				if err := l.send(seq+1, n, time.Unix(1, 0)); err == nil {
					seq++
					sizes[seq] = n
					sent += n
				} else if !errors.Is(err, frame.ErrNoCredit) || sent+n <= granted {
					t.Fatalf("%d granted, %d sent, %d more: %v", granted, sent, n, err)
				}
			case 2:
				r := &frame.Results{Seq: uint64(rapid.IntRange(0, int(seq)+1).Draw(t, "seq"))}
				for range rapid.IntRange(0, 3).Draw(t, "runs") {
					r.AckRuns = append(r.AckRuns, uint32(rapid.IntRange(0, 80).Draw(t, "start")), uint32(rapid.IntRange(0, 20).Draw(t, "count")))
				}
				for range rapid.IntRange(0, 3).Draw(t, "verdicts") {
					r.Verdicts = append(r.Verdicts, frame.Verdict{Index: uint32(rapid.IntRange(0, 80).Draw(t, "index")), Kind: frame.VerdictRetry})
				}
				fresh, err := l.answer(r, time.Unix(2, 0))
				if err != nil || !fresh {
					continue
				}
				pass(t, passed, sizes, r)
			}
			if l.records != sent-len(passed) {
				t.Fatalf("%d records out, %d sent, %d answered", l.records, sent, len(passed))
			}
			if sent > granted || l.credits != granted-sent {
				t.Fatalf("%d sent, %d granted, %d left", sent, granted, l.credits)
			}
		}
	})
}

// pass notes what results pass on.
func pass(t *rapid.T, passed map[frame.Ref]bool, sizes map[uint64]int, r *frame.Results) {
	once := func(i uint32) {
		ref := frame.Ref{Seq: r.Seq, Index: i}
		if passed[ref] || int(i) >= sizes[r.Seq] {
			t.Fatalf("%v is passed on again, or was never sent", ref)
		}
		passed[ref] = true
	}
	for i := 0; i < len(r.AckRuns); i += 2 {
		for j := range r.AckRuns[i+1] {
			once(r.AckRuns[i] + j)
		}
	}
	for _, v := range r.Verdicts {
		once(v.Index)
	}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	cert := string(make([]byte, 60))
	for name, tc := range map[string]struct {
		line  string
		ok    bool
		wrong bool
	}{
		"plain":         {"1|1|unix|/run/x/p|grpc", true, false},
		"with TLS":      {"1|1|unix|/run/x/p|grpc|" + cert + "|false", true, false},
		"text":          {"Welcome", false, false},
		"table":         {"a|b|c|d", false, false},
		"core":          {"2|1|unix|/run/x/p|grpc", true, true},
		"version":       {"1|2|unix|/run/x/p|grpc", true, true},
		"version word":  {"1|x|unix|/run/x/p|grpc", false, false},
		"net/rpc":       {"1|1|unix|/run/x/p|netrpc", true, true},
		"short, netrpc": {"1|1|unix|/run/x/p", true, true},
	} {
		if _, ok, err := parseHandshake(tc.line); ok != tc.ok || (err != nil) != tc.wrong {
			t.Errorf("%s: ok %t, error %v", name, ok, err)
		}
	}
	for name, tc := range map[string]struct {
		h     handshake
		tls   bool
		wrong bool
	}{
		"unix":           {handshake{"unix", "/run/x/p", false}, false, false},
		"unix, TLS":      {handshake{"unix", "/run/x/p", true}, true, false},
		"tcp, TLS":       {handshake{"tcp", "127.0.0.1:1", true}, true, false},
		"tcp, plain":     {handshake{"tcp", "127.0.0.1:1", false}, false, true},
		"elsewhere":      {handshake{"unix", "/tmp/p", false}, false, true},
		"no certificate": {handshake{"unix", "/run/x/p", false}, true, true},
		"insists":        {handshake{"unix", "/run/x/p", true}, false, true},
		"vsock":          {handshake{"vsock", "3", true}, true, true},
	} {
		if err := tc.h.check(tc.tls, "/run/x"); (err != nil) != tc.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
