package wire

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
)

func TestRecordedMessages(t *testing.T) {
	t.Parallel()
	for _, r := range recordedMessages(t) {
		raw := unhex(t, r.Hex)
		var m Message
		n, err := m.Decode(append(bytes.Clone(raw), "what follows"...))
		if err != nil || n != len(raw) || n != r.TotalSize {
			t.Errorf("[%d] %v: Decode = %d, %v; want %d", r.FrameSeq, r.Kind, n, err, r.TotalSize)
			continue
		}
		got := recordedShort{string(m.Topic), m.QueueID, m.QueueOffset, m.LogOffset, m.SysFlag, m.ReconsumeTimes}
		if got != r.recordedShort {
			t.Errorf("[%d] %v: %+v, want %+v", r.FrameSeq, r.Kind, got, r.recordedShort)
		}
		if m.Flag != r.Flag || m.BornMillis != r.BornMillis || m.StoreMillis != r.StoreMillis ||
			m.PreparedTransactionOffset != r.Prepared || m.BodyCRC != r.BodyCRC {
			t.Errorf("[%d] %v: %+v", r.FrameSeq, r.Kind, m)
		}
		if m.BornHost.String() != r.BornHost || m.StoreHost.String() != r.StoreHost {
			t.Errorf("[%d] %v: hosts %s %s, want %s %s", r.FrameSeq, r.Kind, m.BornHost, m.StoreHost, r.BornHost, r.StoreHost)
		}
		if err := m.CheckCRC(); err != nil {
			t.Errorf("[%d] %v: %v", r.FrameSeq, r.Kind, err)
		}
		if fmt.Sprintf("%x", m.Body) != r.BodyHex || fmt.Sprintf("%x", m.Properties) != r.PropertiesHex {
			t.Errorf("[%d] %v: body or properties differ", r.FrameSeq, r.Kind)
		}
		if m.WideTopic != (r.Magic == "daa320ab") {
			t.Errorf("[%d] %v: WideTopic = %t with magic %s", r.FrameSeq, r.Kind, m.WideTopic, r.Magic)
		}
		checkRecordedProperties(t, &r, &m)
		if m.ID() != r.ID || m.OffsetID() != r.OffsetID {
			t.Errorf("[%d] %v: ids %s %s, want %s %s", r.FrameSeq, r.Kind, m.ID(), m.OffsetID(), r.ID, r.OffsetID)
		}
		if out, err := m.Append(nil); err != nil || !bytes.Equal(out, raw) {
			t.Errorf("[%d] %v: encoded %x (%v), recorded %x", r.FrameSeq, r.Kind, out, err, raw)
		}
	}
}

func checkRecordedProperties(t *testing.T, r *recordedMessage, m *Message) {
	t.Helper()
	if got := PropertyMap(m.Properties); !maps.Equal(got, r.Properties) {
		t.Errorf("[%d] %v: properties %v, want %v", r.FrameSeq, r.Kind, got, r.Properties)
	}
	for name, want := range r.Properties {
		if got, ok := m.Property(name); !ok || string(got) != want {
			t.Errorf("[%d] %v: property %s = %q, want %q", r.FrameSeq, r.Kind, name, got, want)
		}
	}
	if r.Pairs == nil {
		return
	}
	var pairs [][2]string
	for name, value := range m.AllProperties() {
		pairs = append(pairs, [2]string{string(name), string(value)})
	}
	if fmt.Sprint(pairs) != fmt.Sprint(r.Pairs) {
		t.Errorf("[%d] %v: pairs %q, want %q", r.FrameSeq, r.Kind, pairs, r.Pairs)
	}
}
