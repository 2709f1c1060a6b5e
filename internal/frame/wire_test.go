package frame_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

func sampleRecords(n int) *frame.Records {
	var b frame.Builder
	for i := range n {
		rec := frame.Record{
			Topic: "Orders", Broker: "broker-a", QueueID: uint32(i % 8), Offset: uint64(i) * 1000,
			BornMillis: 1_700_000_000_000 + uint64(i), StoreMillis: 1_700_000_000_100, Attempt: 1,
			ID: "7F000001000018B4AAC2", Keys: "k1 k2", Properties: []byte("TAGS\x01paid\x02"), Body: bytes.Repeat([]byte{byte(i)}, i),
		}
		if i%3 == 2 {
			rec.Tag, rec.Strand = "paid", uint32(i)
			rec.Trace = bytes.Repeat([]byte{byte(i)}, frame.TraceSize)
		}
		b.Append(&rec)
	}
	return b.Records()
}

func sampleResults() *frame.Results {
	return &frame.Results{
		Seq: 9, AckRuns: []uint32{0, 3, 200, 1},
		Verdicts: []frame.Verdict{
			{Index: 3, Kind: frame.VerdictRetry, Delay: 1500 * time.Millisecond, Class: "timeout", Text: "db away"},
			{Index: 4, Kind: frame.VerdictReject, Class: "bad", Text: "no such customer"},
			{Index: 0, Kind: frame.VerdictUntouched},
			{Index: 5, Kind: frame.VerdictRetry},
		},
		Outputs: *sampleRecords(2), Cause: []uint32{0, 200},
		OutputDelay: []time.Duration{0, time.Second}, OutputShardingKey: []string{"", "c-7"},
	}
}

// fromProto turns what generated code read into columns.
func fromProto(r *pluginv1.Records) frame.Records {
	return frame.Records{
		Dict: r.GetDict(), Topic: r.GetTopic(), Broker: r.GetBroker(), Tag: r.GetTag(), QueueID: r.GetQueueId(),
		Offset: r.GetOffset(), BornMillis: r.GetBornMs(), StoreMillis: r.GetStoreMs(), Attempt: r.GetAttempt(),
		Strand: r.GetStrand(), End: r.GetEnd(), Trace: r.GetTrace(), Payload: r.GetPayload(),
	}
}

func batchFromProto(b *pluginv1.Batch) frame.Batch {
	budget := time.Duration(math.MaxInt64)
	if b.GetBudgetMs() <= math.MaxInt64/uint64(time.Millisecond) {
		budget = time.Duration(b.GetBudgetMs()) * time.Millisecond
	}
	return frame.Batch{Seq: b.GetSeq(), Budget: budget, Records: fromProto(b.GetRecords())}
}

func resultsFromProto(r *pluginv1.Results) frame.Results {
	out := frame.Results{
		Seq: r.GetSeq(), AckRuns: r.GetAckRuns(), Outputs: fromProto(r.GetOutputs()), Cause: r.GetCause(),
		OutputShardingKey: r.GetOutputShardingKey(),
	}
	toDuration := func(ms uint64) time.Duration {
		if ms > math.MaxInt64/uint64(time.Millisecond) {
			return math.MaxInt64
		}
		return time.Duration(ms) * time.Millisecond
	}
	for _, ms := range r.GetOutputDelayMs() {
		out.OutputDelay = append(out.OutputDelay, toDuration(ms))
	}
	for _, v := range r.GetVerdicts() {
		w := frame.Verdict{Index: v.GetIndex()}
		switch a := v.GetV().(type) {
		case *pluginv1.Verdict_Retry:
			w.Kind, w.Delay = frame.VerdictRetry, toDuration(a.Retry.GetDelayMs())
			w.Class, w.Text = a.Retry.GetClass(), a.Retry.GetText()
		case *pluginv1.Verdict_Reject:
			w.Kind, w.Class, w.Text = frame.VerdictReject, a.Reject.GetClass(), a.Reject.GetText()
		case *pluginv1.Verdict_Untouched:
			w.Kind = frame.VerdictUntouched
		}
		out.Verdicts = append(out.Verdicts, w)
	}
	return out
}

var emptyAsNil = cmp.FilterPath(func(cmp.Path) bool { return true }, cmp.FilterValues(func(a, b any) bool {
	return isEmptySlice(a) && isEmptySlice(b)
}, cmp.Ignore()))

func isEmptySlice(v any) bool {
	switch s := v.(type) {
	case []uint32:
		return len(s) == 0
	case []uint64:
		return len(s) == 0
	case []byte:
		return len(s) == 0
	case []string:
		return len(s) == 0
	case []time.Duration:
		return len(s) == 0
	case []frame.Verdict:
		return len(s) == 0
	default:
		return false
	}
}

func TestGeneratedCodeReadsOurBatch(t *testing.T) {
	for _, n := range []int{0, 1, 3, 200} {
		batch := frame.Batch{Seq: 300, Budget: time.Minute, Records: *sampleRecords(n)}
		e := frame.EncodeBatch(&batch)
		data := e.Append(nil)
		if len(data) != e.Length {
			t.Errorf("%d records: counted %d bytes, wrote %d", n, e.Length, len(data))
		}
		var host pluginv1.HostFrame
		if err := proto.Unmarshal(data, &host); err != nil {
			t.Fatal(err)
		}
		if got := batchFromProto(host.GetBatch()); !cmp.Equal(got, batch, emptyAsNil) {
			t.Errorf("%d records: %s", n, cmp.Diff(got, batch, emptyAsNil))
		}
		if len(host.ProtoReflect().GetUnknown()) > 0 {
			t.Error("our frame has fields that the contract does not know")
		}
	}
}

func TestWeReadGeneratedBatch(t *testing.T) {
	batch := frame.Batch{Seq: 1, Budget: time.Second, Records: *sampleRecords(50)}
	e := frame.EncodeBatch(&batch)
	var host pluginv1.HostFrame
	if err := proto.Unmarshal(e.Append(nil), &host); err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(host.GetBatch())
	if err != nil {
		t.Fatal(err)
	}
	// A newer peer's fields, of every wire type, change nothing.
	body = protowire.AppendTag(body, 100, protowire.BytesType)
	body = protowire.AppendBytes(body, []byte("new"))
	body = protowire.AppendTag(body, 101, protowire.StartGroupType)
	body = protowire.AppendTag(body, 1, protowire.Fixed32Type)
	body = protowire.AppendFixed32(body, 7)
	body = protowire.AppendTag(body, 101, protowire.EndGroupType)
	var got frame.Batch
	if err := frame.DecodeBatch(body, &got); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(got, batch, emptyAsNil) {
		t.Error(cmp.Diff(got, batch, emptyAsNil))
	}
}

func TestWeReadUnpackedColumns(t *testing.T) {
	var records []byte
	for _, end := range []uint32{1, 1, 1, 3, 4, 4, 4, 6} {
		records = protowire.AppendTag(records, 11, protowire.Fixed32Type)
		records = protowire.AppendFixed32(records, end)
	}
	for _, offset := range []uint64{1 << 40, 7} {
		records = protowire.AppendTag(records, 6, protowire.VarintType)
		records = protowire.AppendVarint(records, offset)
		records = protowire.AppendTag(records, 7, protowire.Fixed64Type)
		records = protowire.AppendFixed64(records, offset)
	}
	records = protowire.AppendTag(records, 13, protowire.BytesType)
	records = protowire.AppendBytes(records, []byte("abbcdd"))
	body := protowire.AppendTag(nil, 2, protowire.BytesType)
	body = protowire.AppendBytes(body, records)
	var got frame.Batch
	if err := frame.DecodeBatch(body, &got); err != nil {
		t.Fatal(err)
	}
	r := &got.Records
	if r.Len() != 2 || string(r.ID(1)) != "c" || string(r.Body(0)) != "bb" || r.OffsetOf(0) != 1<<40 || r.BornMillisOf(1) != 7 {
		t.Errorf("read %+v", r)
	}
}

func TestResultsBothWays(t *testing.T) {
	for name, results := range map[string]*frame.Results{"full": sampleResults(), "empty": {}, "acks": {Seq: 1, AckRuns: []uint32{0, 256}}} {
		e := frame.EncodeResults(results)
		data := e.Append(nil)
		if len(data) != e.Length {
			t.Errorf("%s: counted %d bytes, wrote %d", name, e.Length, len(data))
		}
		var plugin pluginv1.PluginFrame
		if err := proto.Unmarshal(data, &plugin); err != nil {
			t.Fatal(err)
		}
		if got := resultsFromProto(plugin.GetResults()); !cmp.Equal(&got, results, emptyAsNil) {
			t.Errorf("%s, generated code read: %s", name, cmp.Diff(&got, results, emptyAsNil))
		}
		body, err := proto.Marshal(plugin.GetResults())
		if err != nil {
			t.Fatal(err)
		}
		var got frame.Results
		if err := frame.DecodeResults(body, &got, 256); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(&got, results, emptyAsNil) {
			t.Errorf("%s, we read: %s", name, cmp.Diff(&got, results, emptyAsNil))
		}
	}
}

func TestSmallFrames(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want proto.Message
	}{
		{"cancel", frame.AppendCancel(nil, 7, []uint32{1, 300}), &pluginv1.HostFrame{F: &pluginv1.HostFrame_Cancel{
			Cancel: &pluginv1.Cancel{Seq: 7, Index: []uint32{1, 300}},
		}}},
		{"host credit", frame.AppendHostCredit(nil, 1<<20), &pluginv1.HostFrame{F: &pluginv1.HostFrame_Outputs{
			Outputs: &pluginv1.Credit{N: 1 << 20},
		}}},
		{"plugin credit", frame.AppendPluginCredit(nil, 0), &pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Records{
			Records: &pluginv1.Credit{},
		}}},
		{"started", frame.AppendStarted(nil, frame.Ref{Seq: 5, Index: 200}), &pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Started{
			Started: &pluginv1.Started{Seq: 5, Index: 200},
		}}},
	} {
		got := c.want.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(c.data, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, got, protocmp.Transform()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	_, body, ok := frame.One(frame.AppendCancel(nil, 7, []uint32{1, 300}))
	seq, index, err := frame.DecodeCancel(body)
	if !ok || err != nil || seq != 7 || !cmp.Equal(index, []uint32{1, 300}) {
		t.Errorf("cancel read as %d %v, %v %v", seq, index, ok, err)
	}
	_, body, _ = frame.One(frame.AppendStarted(nil, frame.Ref{Seq: 5, Index: 200}))
	if ref, err := frame.DecodeStarted(body); err != nil || ref != (frame.Ref{Seq: 5, Index: 200}) {
		t.Errorf("started read as %v, %v", ref, err)
	}
	_, body, _ = frame.One(frame.AppendPluginCredit(nil, 900))
	if n, err := frame.DecodeNumber(body); err != nil || n != 900 {
		t.Errorf("credit read as %d, %v", n, err)
	}
	two := append(frame.AppendPluginCredit(nil, 1), frame.AppendPluginCredit(nil, 2)...)
	if _, _, ok := frame.One(two); ok {
		t.Error("two fields in one frame are for the generated code to decide")
	}
}

func TestDecodeNamesTheColumn(t *testing.T) {
	encode := func(change func(*frame.Records)) []byte {
		r := sampleRecords(3)
		change(r)
		batch := frame.Batch{Seq: 4, Records: *r}
		e := frame.EncodeBatch(&batch)
		_, body, _ := frame.One(e.Append(nil))
		return body
	}
	for want, change := range map[string]func(*frame.Records){
		"column topic has 2 entries":           func(r *frame.Records) { r.Topic = r.Topic[:2] },
		"column store_ms has 1 entries":        func(r *frame.Records) { r.StoreMillis = r.StoreMillis[:1] },
		"column trace has 26 bytes":            func(r *frame.Records) { r.Trace = r.Trace[:26] },
		"column end has 11 entries":            func(r *frame.Records) { r.End = r.End[:11] },
		"column end goes back":                 func(r *frame.Records) { r.End[5] = 0 },
		"column end stops at":                  func(r *frame.Records) { r.Payload = append(r.Payload, 1) },
		"column tag names entry 99":            func(r *frame.Records) { r.Tag[2] = 99 },
		"column broker names entry 4294967295": func(r *frame.Records) { r.Broker[0] = math.MaxUint32 },
		"column dict: text is not UTF-8":       func(r *frame.Records) { r.Dict[1] = "\xff" },
	} {
		var got frame.Batch
		if err := frame.DecodeBatch(encode(change), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestResultsNameTheColumn(t *testing.T) {
	for want, change := range map[string]func(*frame.Results){
		"column cause has 1 entries":               func(r *frame.Results) { r.Cause = r.Cause[:1] },
		"column output_sharding_key has 1 entries": func(r *frame.Results) { r.OutputShardingKey = r.OutputShardingKey[:1] },
		"column output_delay_ms has 3 entries":     func(r *frame.Results) { r.OutputDelay = make([]time.Duration, 3); r.OutputDelay[2] = 1 },
		"verdict without an answer":                func(r *frame.Results) { r.Verdicts[0].Kind = frame.VerdictAck },
		"301 runs and verdicts for at most 256":    func(r *frame.Results) { r.Verdicts, r.AckRuns = make([]frame.Verdict, 301), nil },
	} {
		r := sampleResults()
		change(r)
		e := frame.EncodeResults(r)
		_, body, _ := frame.One(e.Append(nil))
		var got frame.Results
		if err := frame.DecodeResults(body, &got, 256); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for want, change := range map[string]func(*frame.Results){
		"column ack_runs answers records 200 to 200": func(*frame.Results) {},
		"column verdicts answers record 150":         func(r *frame.Results) { r.AckRuns, r.Verdicts[1].Index = nil, 150 },
		"column cause says that output 1":            func(r *frame.Results) { r.AckRuns = nil },
		"column ack_runs has 3 entries":              func(r *frame.Results) { r.AckRuns = r.AckRuns[:3] },
		"ack_runs answers records 1 to 4294967295":   func(r *frame.Results) { r.AckRuns = []uint32{1, math.MaxUint32} },
	} {
		r := sampleResults()
		change(r)
		if err := r.Check(100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err := sampleResults().Check(201); err != nil {
		t.Error(err)
	}
}

// A handler may emit next to nothing, many times, with every column there is: what its SDK writes must not be taken for an
// attack, which would end its lane again and again. Columns without outputs are one.
func TestResultsOfTinyOutputs(t *testing.T) {
	for _, body := range []string{"", "1", "12"} {
		var b frame.Builder
		r := &frame.Results{Seq: 1, AckRuns: []uint32{0, 1}}
		for i := range 4096 {
			b.Append(&frame.Record{Topic: "Out", Tag: "t", Body: []byte(body)})
			r.Cause = append(r.Cause, 0)
			r.OutputDelay = append(r.OutputDelay, time.Duration(i%2)*time.Millisecond)
			r.OutputShardingKey = append(r.OutputShardingKey, "")
		}
		r.Outputs = *b.Records()
		e := frame.EncodeResults(r)
		_, message, _ := frame.One(e.Append(nil))
		var got frame.Results
		if err := frame.DecodeResults(message, &got, 1); err != nil || got.Outputs.Len() != 4096 {
			t.Errorf("bodies of %d bytes: %d outputs, %v", len(body), got.Outputs.Len(), err)
		}
	}
	for name, field := range map[string][]byte{"keys": {7<<3 | 2, 0}, "delays": {6 << 3, 1}, "causes": {5 << 3, 1}} {
		var got frame.Results
		if err := frame.DecodeResults(bytes.Repeat(field, 1<<16), &got, 1); err == nil {
			t.Errorf("%s without outputs are taken", name)
		}
	}
}
