package frame_test

import (
	"bytes"
	goruntime "runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/streamd/streamd/internal/frame"
)

func TestBuilderKeepsEveryPart(t *testing.T) {
	var b frame.Builder
	in := []frame.Record{
		{ID: "a"},
		{
			Topic: "T", Broker: "b", Tag: "x", QueueID: 3, Offset: 1 << 40, BornMillis: 5, StoreMillis: 6, Attempt: 2, Strand: 9,
			Trace: bytes.Repeat([]byte{7}, frame.TraceSize), ID: "id", Keys: "k", Properties: []byte("p"), Body: []byte("body"),
		},
		{Topic: "U", Tag: "x"},
		{Topic: "T"},
	}
	for i := range in {
		b.Append(&in[i])
	}
	r := b.Records()
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "T", "b", "x", "U"}; !cmp.Equal(r.Dict, want) {
		t.Errorf("dictionary %q, want %q", r.Dict, want)
	}
	in[0].Trace, in[2].Trace, in[3].Trace = make([]byte, frame.TraceSize), make([]byte, frame.TraceSize), make([]byte, frame.TraceSize)
	for i := range in {
		if got := r.Record(i); !cmp.Equal(got, in[i], emptyAsNil) {
			t.Errorf("record %d: %s", i, cmp.Diff(got, in[i], emptyAsNil))
		}
	}
	if r.PayloadSize(1) != len("id")+len("k")+len("p")+len("body") || b.PayloadSize() != len(r.Payload) {
		t.Errorf("sizes %d, %d", r.PayloadSize(1), b.PayloadSize())
	}
}

func TestBorrowedRecordsMakeTheSameFrame(t *testing.T) {
	src := sampleRecords(300)
	var copied, borrowed frame.Builder
	for round := range 2 { // a second time in memory that was used
		copied.Reset()
		borrowed.Reset()
		for i := range src.Len() {
			rec := src.Record(i)
			copied.Append(&rec)
			borrowed.Borrow(&rec)
		}
		r := borrowed.Records()
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		one, two := frame.Batch{Seq: 7, Records: *copied.Records()}, frame.Batch{Seq: 7, Records: *r}
		e, f := frame.EncodeBatch(&one), frame.EncodeBatch(&two)
		got := f.Append(nil)
		if !bytes.Equal(e.Append(nil), got) || f.Size() != len(got) {
			t.Fatalf("round %d: %d bytes borrowed, %d copied", round, f.Size(), e.Size())
		}
		if borrowed.PayloadSize() != copied.PayloadSize() {
			t.Errorf("payload of %d bytes borrowed, %d copied", borrowed.PayloadSize(), copied.PayloadSize())
		}
		for i := range src.Len() {
			if want, have := src.Record(i), r.Record(i); !cmp.Equal(have, want, emptyAsNil) {
				t.Fatalf("record %d: %s", i, cmp.Diff(have, want, emptyAsNil))
			}
		}
	}
}

func TestBuilderRepairsTextOfTheDictionary(t *testing.T) {
	var b frame.Builder
	b.Append(&frame.Record{Topic: "T", Tag: "\xffx", ID: "\xff"})
	b.Append(&frame.Record{Topic: "T", Tag: "\xffx"})
	r := b.Records()
	if r.TagOf(1) != "\uFFFDx" || len(r.Dict) != 3 || string(r.ID(0)) != "\xff" {
		t.Errorf("dictionary %q, id %q", r.Dict, r.ID(0))
	}
}

func TestSliceAndRangeAgree(t *testing.T) {
	r := sampleRecords(10)
	var view frame.Records
	var b frame.Builder
	for _, c := range [][2]int{{0, 10}, {0, 0}, {3, 7}, {9, 10}, {10, 10}} {
		r.Slice(&view, c[0], c[1])
		b.Reset()
		b.AppendRange(r, c[0], c[1])
		if err := view.Validate(); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if view.Len() != c[1]-c[0] || b.Len() != view.Len() {
			t.Fatalf("%v: %d and %d records", c, view.Len(), b.Len())
		}
		for i := range view.Len() {
			want, fromView, fromCopy := r.Record(c[0]+i), view.Record(i), b.Records().Record(i)
			if want.Trace != nil && fromCopy.Trace == nil {
				fromCopy.Trace = make([]byte, frame.TraceSize)
			}
			if !cmp.Equal(fromView, want, emptyAsNil) || !cmp.Equal(fromCopy, want, emptyAsNil) {
				t.Errorf("%v, record %d: %s%s", c, i, cmp.Diff(fromView, want, emptyAsNil), cmp.Diff(fromCopy, want, emptyAsNil))
			}
		}
	}
}

func TestSteadyStateAllocatesNothingPerRecord(t *testing.T) {
	var b frame.Builder
	rec := frame.Record{
		Topic: "Orders", Broker: "broker-a", Tag: "paid", QueueID: 3, Offset: 77, Attempt: 1, BornMillis: 5,
		StoreMillis: 6, ID: "0123456789abcdef", Keys: "k", Properties: []byte("p"), Body: make([]byte, 1024),
	}
	var buffer []byte
	fill := func() {
		b.Reset()
		for range 256 {
			b.Append(&rec)
		}
		batch := frame.Batch{Seq: 1, Records: *b.Records()}
		e := frame.EncodeBatch(&batch)
		buffer = e.Append(buffer[:0])
	}
	fill()
	if n := testing.AllocsPerRun(20, fill); n > 2 {
		t.Errorf("%v allocations for 256 records written", n)
	}
	_, body, _ := frame.One(buffer)
	var got frame.Batch
	if n := testing.AllocsPerRun(20, func() {
		if err := frame.DecodeBatch(body, &got); err != nil {
			t.Fatal(err)
		}
	}); n > 6 {
		t.Errorf("%v allocations for 256 records read", n)
	}
}

// TestHostileSizesAllocateLittle feeds messages that claim much with few bytes.
func TestHostileSizesAllocateLittle(t *testing.T) {
	manyWords := append([]byte{0x12, 0x80, 0x80, 0x40}, bytes.Repeat([]byte{0x0a, 0x00}, 1<<19)...)
	tags := append([]byte{0x12, 0x84, 0x80, 0x40, 0x22, 0x80, 0x80, 0x40}, bytes.Repeat([]byte{1}, 1<<20)...)
	huge := []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for name, data := range map[string][]byte{"words": manyWords, "tags": tags, "length": huge} {
		var b frame.Batch
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		err := frame.DecodeBatch(data, &b)
		goruntime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(2*len(data)+64<<10) {
			t.Errorf("%s: %d bytes allocated for %d that arrived", name, got, len(data))
		}
	}
}
