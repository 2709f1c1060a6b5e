package telemetry

import (
	"fmt"
	"math"
	"testing"
)

func TestParseTraceparent(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	for _, c := range []struct {
		in      string
		ok      bool
		sampled bool
	}{
		{"00-" + id + "-01", true, true},
		{"00-" + id + "-00", true, false},
		{"00-" + id + "-03", true, true}, // random flag of level 2
		{"cc-" + id + "-01-later", true, true},
		{"00-" + id + "-01-later", false, false}, // version 00 has four fields
		{"cc-" + id + "-01later", false, false},
		{"ff-" + id + "-01", false, false},
		{"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false}, // upper case
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false},
		{"00-" + id, false, false},
		{"", false, false},
	} {
		tid, sid, flags, ok := parseTraceparent([]byte(c.in))
		if ok != c.ok || (ok && flags.IsSampled() != c.sampled) {
			t.Errorf("%q: ok %v sampled %v, want %v %v", c.in, ok, flags.IsSampled(), c.ok, c.sampled)
		}
		if ok && tid.String()+"-"+sid.String() != id {
			t.Errorf("%q: read %s-%s", c.in, tid, sid)
		}
	}
}

// TestTraceOf_meetsAndSpreads: the same identity gives the same trace everywhere, and ratio sampling over such ids takes
// the share it should, for identities as brokers make them (a host, then a growing offset).
func TestTraceOf_meetsAndSpreads(t *testing.T) {
	t.Parallel()
	const n = 200_000
	seen := make(map[[16]byte]bool, n)
	taken := 0
	for i := range n {
		identity := fmt.Sprintf("7F00000100002A9F%016X", i*337)
		tid, sid := traceOf(identity)
		again, _ := traceOf(identity)
		if tid != again || !tid.IsValid() || !sid.IsValid() {
			t.Fatalf("%s: %s, then %s", identity, tid, again)
		}
		if seen[tid] {
			t.Fatalf("%s: trace %s is taken", identity, tid)
		}
		seen[tid] = true
		if sampled(tid, 0.01) {
			taken++
		}
	}
	if got := float64(taken) / n; math.Abs(got-0.01) > 0.002 {
		t.Errorf("sampled %.4f of the messages, want about 0.01", got)
	}
	tid, _ := traceOf("x")
	if !sampled(tid, 1) || sampled(tid, 0) {
		t.Error("ratio 1 takes all and ratio 0 none")
	}
}

func BenchmarkParseTraceparent(b *testing.B) {
	in := []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, ok := parseTraceparent(in); !ok {
			b.Fatal("not parsed")
		}
	}
}
