package frame_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// FuzzBatch holds our decoder against the generated one: what we accept it accepts too, with the same content, and our
// encoder brings it back.
func FuzzBatch(f *testing.F) {
	for _, n := range []int{0, 1, 5} {
		batch := frame.Batch{Seq: 3, Budget: 1e9, Records: *sampleRecords(n)}
		e := frame.EncodeBatch(&batch)
		_, body, _ := frame.One(e.Append(nil))
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours frame.Batch
		if frame.DecodeBatch(data, &ours) != nil {
			return
		}
		var theirs pluginv1.Batch
		if err := proto.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("we accept what generated code refuses: %v", err)
		}
		if want := batchFromProto(&theirs); !cmp.Equal(ours, want, emptyAsNil) {
			t.Fatal(cmp.Diff(ours, want, emptyAsNil))
		}
		for i := range ours.Records.Len() {
			rec := ours.Records.Record(i)
			if ours.Records.PayloadSize(i) != len(rec.ID)+len(rec.Keys)+len(rec.Properties)+len(rec.Body) {
				t.Fatal("the parts of a record do not add up")
			}
		}
		e := frame.EncodeBatch(&ours)
		_, body, ok := frame.One(e.Append(nil))
		var again frame.Batch
		if err := frame.DecodeBatch(body, &again); !ok || err != nil || !cmp.Equal(again, ours, emptyAsNil) {
			t.Fatalf("our own frame comes back differently: %v %s", err, cmp.Diff(again, ours, emptyAsNil))
		}
	})
}

func FuzzResults(f *testing.F) {
	for _, r := range []*frame.Results{{}, sampleResults(), {Seq: 1, AckRuns: []uint32{0, 256}}} {
		e := frame.EncodeResults(r)
		_, body, _ := frame.One(e.Append(nil))
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours frame.Results
		if frame.DecodeResults(data, &ours, 1000) != nil {
			return
		}
		var theirs pluginv1.Results
		if err := proto.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("we accept what generated code refuses: %v", err)
		}
		if want := resultsFromProto(&theirs); !cmp.Equal(ours, want, emptyAsNil) {
			t.Fatal(cmp.Diff(ours, want, emptyAsNil))
		}
	})
}

// FuzzSmall feeds the decoders of small messages; they must neither panic nor accept what generated code refuses.
func FuzzSmall(f *testing.F) {
	f.Add(frame.AppendCancel(nil, 7, []uint32{1, 300}))
	f.Add(frame.AppendStarted(nil, frame.Ref{Seq: 1, Index: 2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, body, ok := frame.One(data)
		if !ok {
			body = data
		}
		if seq, index, err := frame.DecodeCancel(body); err == nil {
			var theirs pluginv1.Cancel
			if err := proto.Unmarshal(body, &theirs); err != nil || seq != theirs.GetSeq() || !cmp.Equal(index, theirs.GetIndex(), emptyAsNil) {
				t.Fatalf("cancel %d %v, generated %v, %v", seq, index, &theirs, err)
			}
		}
		if ref, err := frame.DecodeStarted(body); err == nil {
			var theirs pluginv1.Started
			if err := proto.Unmarshal(body, &theirs); err != nil || ref.Seq != theirs.GetSeq() || ref.Index != theirs.GetIndex() {
				t.Fatalf("started %v, generated %v, %v", ref, &theirs, err)
			}
		}
		if n, err := frame.DecodeNumber(body); err == nil {
			var theirs pluginv1.Credit
			if err := proto.Unmarshal(body, &theirs); err != nil || n != theirs.GetN() {
				t.Fatalf("credit %d, generated %v, %v", n, &theirs, err)
			}
		}
	})
}
