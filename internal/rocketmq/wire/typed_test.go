package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// fill gives each field of a header a value of its own and returns how many fields of the wire that makes.
func fill(v reflect.Value, n int) int {
	for i := range v.NumField() {
		field := v.Field(i)
		switch v.Type().Field(i).Name {
		case "Op", "Lite", "Delete", "InNameServer", "Other":
			continue
		case "Common":
			n = fill(field, n)
			continue
		}
		n++
		if present := field; field.Kind() == reflect.Struct {
			present.FieldByName("Present").SetBool(true)
			field = field.FieldByName("Value")
		}
		switch field.Kind() {
		case reflect.String:
			field.SetString("text " + strconv.Itoa(n))
		case reflect.Bool:
			field.SetBool(true)
		default:
			field.SetInt(int64(-1000 - n))
		}
	}
	return n
}

// TestHeadersCarryEveryField fills every field of every header: what is written is read again, and no two fields share a name.
func TestHeadersCarryEveryField(t *testing.T) {
	t.Parallel()
	headers := 0
	for code := range RequestCode(1000) {
		made := []func() Header{func() Header { return NewResponseHeader(code) }}
		if NewHeader(code) != nil {
			made = append(made, func() Header { return NewHeader(code) })
		}
		for _, header := range made {
			h, again := header(), header()
			n := fill(reflect.ValueOf(h).Elem(), 0)
			fields := EncodeFields(h)
			if len(fields) != n || len(fields.Map()) != n {
				t.Errorf("%T: %d fields became %d with %d names", h, n, len(fields), len(fields.Map()))
			}
			if err := DecodeFields(fields, again); err != nil || !reflect.DeepEqual(h, again) {
				t.Errorf("%T: %+v became %+v (%v)", h, h, again, err)
			}
			headers++
		}
	}
	if headers < 1050 {
		t.Errorf("only %d headers", headers)
	}
}

func TestSendForms(t *testing.T) {
	t.Parallel()
	s := SendRequest{ProducerGroup: "PG", Topic: "T", Common: Common{BrokerName: Some("broker-a")}}
	if s.RequestCode() != ReqSendMessageV2 {
		t.Errorf("the default is %s", s.RequestCode())
	}
	for op, names := range map[RequestCode][2]string{
		ReqSendMessage: {"topic", "bname"}, ReqSendReplyMessage: {"topic", "bname"},
		ReqSendMessageV2: {"b", "n"}, ReqSendBatchMessage: {"b", "n"}, ReqSendReplyMessageV2: {"b", "n"},
	} {
		s.Op = op
		f := EncodeFields(&s)
		if f.Get(names[0]) != "T" || f.Get(names[1]) != "broker-a" {
			t.Errorf("%s: %v", op, f)
		}
	}
}

// TestCutMessages cuts recorded messages everywhere: no part of one is taken for a whole one.
func TestCutMessages(t *testing.T) {
	t.Parallel()
	for _, r := range recordedMessages(t) {
		raw := unhex(t, r.Hex)
		for i := range raw {
			var m Message
			if n, err := m.Decode(raw[:i:i]); n != 0 || !errors.Is(err, ErrMalformed) {
				t.Fatalf("[%d] %d of %d bytes: size %d, %v", r.FrameSeq, i, len(raw), n, err)
			}
		}
	}
}

// TestCutFrames cuts recorded headers everywhere.
func TestCutFrames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range recordedFrames(t) {
		kind := r.Name + r.Encoding + r.Dir
		if seen[kind] {
			continue
		}
		seen[kind] = true
		frame := unhex(t, r.Frame)
		size := int(frame[5])<<16 | int(frame[6])<<8 | int(frame[7])
		for i := range size {
			var c Command
			if err := c.Decode(frame[PrefixSize : PrefixSize+headerMark+i]); !errors.Is(err, ErrMalformed) {
				t.Fatalf("[%d] %d of %d bytes of the header: %v", r.Seq, i, size, err)
			}
			// The same with a length that fits what is left.
			if err := c.Decode(content(Encoding(frame[4]), i, frame[8:8+i]...)); !errors.Is(err, ErrMalformed) {
				t.Fatalf("[%d] a header of %d bytes, cut from %d: %v", r.Seq, i, size, err)
			}
		}
	}
}

// TestBrokenMessages damages one message of three: only the damage to its size or magic hides what follows.
func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	good := stored(t, plainMessage())
	at := func(i int, values ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[i:], values)
		return b
	}
	alone := map[string][]byte{
		"born port beyond 16 bits":  at(52, 0, 1, 0, 0),
		"store port beyond 16 bits": at(68, 255, 255, 255, 255),
		"IPv6 bit on IPv4":          at(39, byte(SysFlagBornV6)),
		"body too long":             at(84, 0, 0, 0, 9),
		"body of negative length":   at(84, 255, 255, 255, 255),
		"topic of negative length":  at(89, 0x80),
		"properties too long":       at(91, 0, 1),
		"wide topic by mistake":     at(7, 0xab),
	}
	for name, bad := range alone {
		checkWalk(t, append(append(bytes.Clone(good), bad...), good...), []bool{false, true, false})
		if _, err := new(Message).Decode(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, bad := range map[string][]byte{
		"size too small": at(0, 0, 0, 0, 90), "size too large": at(0, 0, 0, 1, 0), "negative size": at(0, 255), "end of file": at(4, 0xcb, 0xd4, 0x31, 0x94),
	} {
		if n, err := new(Message).Decode(bad); n != 0 || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: size %d, %v", name, n, err)
		}
	}
}

func TestNotStorable(t *testing.T) {
	t.Parallel()
	dst := []byte("kept")
	for name, change := range map[string]func(*Message){
		"topic beyond 16 bits": func(m *Message) { m.Topic = make([]byte, maxTopicV2+1) },
		"no store host":        func(m *Message) { m.StoreHost = netip.AddrPort{} },
		"IPv6 store host":      func(m *Message) { m.StoreHost = netip.MustParseAddrPort("[::1]:1") },
	} {
		m := plainMessage()
		change(m)
		if out, err := m.Append(dst); !errors.Is(err, ErrNotEncodable) || !bytes.Equal(out, dst) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	for _, p := range []BatchPart{{Properties: make([]byte, MaxProperties+1)}, {Body: make([]byte, MaxFrame)}} {
		if out, err := p.Append(dst); !errors.Is(err, ErrNotEncodable) || !bytes.Equal(out, dst) {
			t.Errorf("a part of %d bytes: %v", len(p.Body)+len(p.Properties), err)
		}
	}
	// A topic of 127 bytes is the longest that the first magic takes.
	for n, wide := range map[int]bool{127: false, 128: true} {
		m := plainMessage()
		m.Topic = []byte(strings.Repeat("t", n))
		var got Message
		if _, err := got.Decode(stored(t, m)); err != nil || got.WideTopic != wide || !bytes.Equal(got.Topic, m.Topic) {
			t.Errorf("topic of %d bytes: wide %t, %v", n, got.WideTopic, err)
		}
	}
}

// TestBrokenBatchPart ends a batch at its broken part.
func TestBrokenBatchPart(t *testing.T) {
	t.Parallel()
	part := BatchPart{Body: []byte("one"), Properties: []byte("a\x01b\x02")}
	body, err := part.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := plainMessage()
	m.SysFlag, m.QueueOffset = SysFlagInnerBatch|SysFlagNeedUnwrap, 10
	for _, broken := range [][]byte{{0, 0}, append(bytes.Clone(body[:16]), 255, 255, 255, 255, 0, 0)} {
		var offsets []int64
		var failed error
		for p, err := range m.Parts(append(bytes.Clone(body), broken...)) {
			if err != nil {
				failed = err
				continue
			}
			offsets = append(offsets, p.QueueOffset)
		}
		if len(offsets) != 1 || offsets[0] != 10 || !errors.Is(failed, ErrMalformed) {
			t.Errorf("%x: offsets %v, %v", broken, offsets, failed)
		}
	}
	for _, err := range m.Parts(body) {
		if err != nil {
			t.Error(err)
		}
		break // a reader may stop
	}
	for range m.AllProperties() {
		break
	}
}
