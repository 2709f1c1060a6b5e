package wire

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestRecordedMessageBodies(t *testing.T) {
	t.Parallel()
	walked := 0
	for _, r := range recordedFrames(t) {
		if r.Decoded.Messages == nil {
			continue
		}
		rest, encoded := decodeRecorded(t, &r).Body, []byte{}
		body := rest
		for i, want := range r.Decoded.Messages {
			var m Message
			n, err := m.Decode(rest)
			if err != nil {
				t.Fatalf("[%d] message %d: %v", r.Seq, i, err)
			}
			got := recordedShort{string(m.Topic), m.QueueID, m.QueueOffset, m.LogOffset, m.SysFlag, m.ReconsumeTimes}
			if got != want {
				t.Errorf("[%d] message %d: %+v, want %+v", r.Seq, i, got, want)
			}
			if err := m.CheckCRC(); err != nil {
				t.Errorf("[%d] message %d: %v", r.Seq, i, err)
			}
			if encoded, err = m.Append(encoded); err != nil {
				t.Errorf("[%d] message %d: %v", r.Seq, i, err)
			}
			rest = rest[n:]
			walked++
		}
		if len(rest) != 0 {
			t.Errorf("[%d] %d bytes after the last message", r.Seq, len(rest))
		}
		if !bytes.Equal(encoded, body) {
			t.Errorf("[%d] the messages encode to other bytes", r.Seq)
		}
	}
	if walked < 200 {
		t.Errorf("only %d messages were walked", walked)
	}
}

func TestRecordedBatchBodies(t *testing.T) {
	t.Parallel()
	walked := 0
	for _, r := range recordedFrames(t) {
		if r.Decoded.Batch == nil {
			continue
		}
		body := decodeRecorded(t, &r).Body
		var encoded []byte
		i := 0
		for p, err := range BatchParts(body) {
			if err != nil {
				t.Fatalf("[%d] part %d: %v", r.Seq, i, err)
			}
			want := r.Decoded.Batch[i]
			if p.Flag != want.Flag || fmt.Sprintf("%x", p.Body) != want.Body || !maps.Equal(PropertyMap(p.Properties), want.Properties) {
				t.Errorf("[%d] part %d: %+v, want %+v", r.Seq, i, p, want)
			}
			if encoded, err = p.Append(encoded); err != nil {
				t.Errorf("[%d] part %d: %v", r.Seq, i, err)
			}
			i++
			walked++
		}
		if i != len(r.Decoded.Batch) || !bytes.Equal(encoded, body) {
			t.Errorf("[%d] %d parts, want %d; equal bytes: %t", r.Seq, i, len(r.Decoded.Batch), bytes.Equal(encoded, body))
		}
	}
	if walked < 20 {
		t.Errorf("only %d parts were walked", walked)
	}
}

// TestRecordedCompressedBodies reads what producers compressed: one text of 5700 bytes by each method in the flow compress,
// and one of 6800 that was retried and delayed.
func TestRecordedCompressedBodies(t *testing.T) {
	t.Parallel()
	methods := map[Compression]int{}
	texts := map[int]string{}
	inflater := NewInflater(MaxBody)
	check := func(seq int, m *Message) {
		out, err := inflater.AppendBody([]byte("kept"), m)
		if err != nil {
			t.Errorf("[%d] %v", seq, err)
			return
		}
		text, _ := strings.CutPrefix(string(out), "kept")
		if before, ok := texts[len(text)]; ok && before != text {
			t.Errorf("[%d] differs from the text before", seq)
		}
		texts[len(text)] = text
		methods[m.Compression()]++
	}
	for _, r := range recordedMessages(t) {
		var m Message
		if _, err := m.Decode(unhex(t, r.Hex)); err != nil {
			t.Fatal(err)
		}
		if m.IsCompressed() {
			check(r.FrameSeq, &m)
		}
	}
	for _, r := range recordedFrames(t) {
		code := RequestCode(r.Code)
		if r.Flow != "compress" || r.IsResponse || code != ReqSendMessage && code != ReqSendMessageV2 {
			continue
		}
		c := decodeRecorded(t, &r)
		h := SendRequest{Op: code}
		if err := DecodeFields(c.Ext, &h); err != nil {
			t.Fatal(err)
		}
		check(r.Seq, &Message{SysFlag: h.SysFlag, Body: c.Body})
	}
	for _, c := range []Compression{CompressionUntyped, CompressionLZ4, CompressionZstd, CompressionZlib} {
		if methods[c] == 0 {
			t.Errorf("no body with compression type %d was read", c)
		}
	}
	if len(texts) != 2 || texts[5700] == "" || texts[6800] == "" {
		t.Errorf("%d texts were read, want those of 5700 and 6800 bytes", len(texts))
	}
}

func TestRecordedInnerBatch(t *testing.T) {
	t.Parallel()
	batches := 0
	for _, r := range recordedMessages(t) {
		var m Message
		if _, err := m.Decode(unhex(t, r.Hex)); err != nil {
			t.Fatal(err)
		}
		if !m.IsBatch() {
			continue
		}
		batches++
		want := m.QueueOffset
		count, _ := m.Property(PropInnerCount)
		parts := 0
		for p, err := range m.Parts(m.Body) {
			if err != nil {
				t.Fatal(err)
			}
			if p.QueueOffset != want || string(p.Topic) != string(m.Topic) || p.IsBatch() || p.UniqueKey() == "" || p.CheckCRC() != nil {
				t.Errorf("[%d] part at %d: %+v", r.FrameSeq, want, p)
			}
			want++
			parts++
		}
		if fmt.Sprint(parts) != string(count) {
			t.Errorf("[%d] %d parts, INNER_NUM says %s", r.FrameSeq, parts, count)
		}
	}
	if batches == 0 {
		t.Error("no inner batch was read")
	}
}

func TestRecordedFingerprints(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, r := range recordedFrames(t) {
		if r.IsResponse || RequestCode(r.Code) != ReqHeartbeat || r.Decoded.Body == nil {
			continue
		}
		var h HeartbeatData
		if err := DecodeBody(decodeRecorded(t, &r).Body, &h); err != nil {
			t.Fatal(err)
		}
		if h.HeartbeatFingerprint == 0 || h.WithoutSub {
			continue
		}
		checked++
		if got, err := h.Fingerprint(); err != nil || got != h.HeartbeatFingerprint {
			t.Errorf("[%d] fingerprint %d (%v), recorded %d", r.Seq, got, err, h.HeartbeatFingerprint)
		}
	}
	if checked == 0 {
		t.Error("no fingerprint was checked")
	}
}
