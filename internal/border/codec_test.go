package border

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

func link(t *testing.T) *Link {
	t.Helper()
	l, err := NewLink()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// split cuts data as the transport does, in pieces.
func split(data []byte) mem.BufferSlice {
	var out mem.BufferSlice
	for len(data) > 0 {
		n := min(100, len(data))
		out = append(out, mem.SliceBuffer(data[:n]))
		data = data[n:]
	}
	return out
}

func TestBatchCrossesTheCodec(t *testing.T) {
	c := link(t).Codec
	var b frame.Builder
	for range 20 {
		b.Append(&frame.Record{Topic: "T", ID: "id", Body: bytes.Repeat([]byte("x"), 1000)})
	}
	batch := frame.Batch{Seq: 7, Budget: time.Second, Records: *b.Records()}
	e := frame.EncodeBatch(&batch)
	data, err := c.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	in := HostFrames()
	if err := c.Unmarshal(split(data.Materialize()), in); err != nil {
		t.Fatal(err)
	}
	var got frame.Batch
	if err := frame.DecodeBatch(in.Message, &got); err != nil {
		t.Fatal(err)
	}
	if in.Number != frame.HostBatch || got.Seq != 7 || got.Records.Len() != 20 {
		t.Errorf("field %d, batch %d with %d records", in.Number, got.Seq, got.Records.Len())
	}
	data.Free()
	whole := c.Encode(&e)
	var host pluginv1.HostFrame
	if err := c.Unmarshal(whole.buffers, &host); err != nil || host.GetBatch().GetSeq() != 7 {
		t.Errorf("stock stubs read batch %d, %v", host.GetBatch().GetSeq(), err)
	}
	whole.Free()
}

func TestColdAndUnusualFrames(t *testing.T) {
	c := link(t).Codec
	open := &pluginv1.HostFrame{F: &pluginv1.HostFrame_Open{Open: &pluginv1.Open{Stream: "orders", Credits: 128}}}
	data, err := c.Marshal(open)
	if err != nil {
		t.Fatal(err)
	}
	in := HostFrames()
	if err := c.Unmarshal(data, in); err != nil {
		t.Fatal(err)
	}
	if got, ok := in.Cold.(*pluginv1.Open); in.Number != 1 || !ok || got.GetStream() != "orders" || in.Message != nil {
		t.Errorf("open arrived as field %d, %v", in.Number, in.Cold)
	}
	// A newer host adds an unknown field beside the batch: still a batch.
	seq := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), seq)
	raw = protowire.AppendVarint(protowire.AppendTag(raw, 99, protowire.VarintType), 1)
	if err := c.Unmarshal(split(raw), in); err != nil {
		t.Fatal(err)
	}
	var batch frame.Batch
	if err := frame.DecodeBatch(in.Message, &batch); err != nil || batch.Seq != 3 || in.Cold != nil {
		t.Errorf("batch %d, %v", batch.Seq, err)
	}
}

func TestUnknownFramesAreNamed(t *testing.T) {
	c := link(t).Codec
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 50, protowire.BytesType), []byte("x"))
	err := c.Unmarshal(split(unknown), PluginFrames())
	if err == nil || !strings.Contains(err.Error(), "field 50") {
		t.Errorf("an unknown frame gave %v", err)
	}
	if err := c.Unmarshal(split([]byte{0xff}), PluginFrames()); err == nil {
		t.Error("garbage must be refused")
	}
}

func TestUnaryCallsUseStandardProtobuf(t *testing.T) {
	c := link(t).Codec
	in := &pluginv1.ConfigureRequest{Instance: "billing", ConfigJson: bytes.Repeat([]byte("{}"), 4000)}
	data, err := c.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out pluginv1.ConfigureRequest
	if err := c.Unmarshal(data, &out); err != nil || !proto.Equal(in, &out) {
		t.Errorf("read %v, %v", &out, err)
	}
	raw, err := c.Marshal(Raw(frame.AppendPluginCredit(nil, 5)))
	if err != nil {
		t.Fatal(err)
	}
	answer := PluginFrames()
	if err := c.Unmarshal(raw, answer); err != nil || answer.Number != frame.PluginCredit {
		t.Errorf("raw credit read as field %d, %v", answer.Number, err)
	}
}
