package wire

import (
	"bytes"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// decodeRecorded decodes a recorded frame and fails the test when it does not decode.
func decodeRecorded(tb testing.TB, r *recordedFrame) *Command {
	tb.Helper()
	frame := unhex(tb, r.Frame)
	n, err := FrameLength(frame)
	if err != nil || n != len(frame)-PrefixSize {
		tb.Fatalf("[%d] FrameLength = %d, %v; the frame has %d bytes", r.Seq, n, err, len(frame))
	}
	var c Command
	if err := c.Decode(frame[PrefixSize:]); err != nil {
		tb.Fatalf("[%d] %s: %v", r.Seq, r.Name, err)
	}
	return &c
}

func TestRecordedFramesDecode(t *testing.T) {
	t.Parallel()
	for _, r := range recordedFrames(t) {
		c := decodeRecorded(t, &r)
		d := r.Decoded
		if c.Code != r.Code || c.Opaque != r.Opaque || c.Flag != d.Flag || c.Version != d.Version {
			t.Errorf("[%d] %s: code, opaque, flag, version = %d %d %d %d", r.Seq, r.Name, c.Code, c.Opaque, c.Flag, c.Version)
		}
		if c.Language.String() != d.Language || c.Encoding.String() != r.Encoding {
			t.Errorf("[%d] %s: language %s, encoding %s", r.Seq, r.Name, c.Language, c.Encoding)
		}
		if c.IsResponse() != r.IsResponse || c.IsOneway() != r.IsOneway {
			t.Errorf("[%d] %s: response %t, oneway %t", r.Seq, r.Name, c.IsResponse(), c.IsOneway())
		}
		if got, want := c.Remark != "" || c.EmptyRemark, d.Remark != nil; got != want || want && c.Remark != *d.Remark {
			t.Errorf("[%d] %s: remark %q (there: %t)", r.Seq, r.Name, c.Remark, got)
		}
		if (c.Ext == nil) != (d.ExtFields == nil) || !maps.Equal(c.Ext.Map(), d.ExtFields) {
			t.Errorf("[%d] %s: fields %v, want %v", r.Seq, r.Name, c.Ext, d.ExtFields)
		}
		if got := len(c.Ext) - len(c.Ext.Map()); got != len(d.Duplicates) {
			t.Errorf("[%d] %s: %d repeated fields, want %d", r.Seq, r.Name, got, len(d.Duplicates))
		}
		if name := codeName(c); name != r.Name {
			t.Errorf("[%d] code %d has the name %q, want %q", r.Seq, c.Code, name, r.Name)
		}
	}
}

func codeName(c *Command) string {
	if c.IsResponse() {
		return c.ResponseCode().String()
	}
	return c.RequestCode().String()
}

func TestRecordedFramesEncode(t *testing.T) {
	t.Parallel()
	equal := 0
	for _, r := range recordedFrames(t) {
		c := decodeRecorded(t, &r)
		out, err := AppendFrame(nil, c)
		if err != nil {
			t.Fatalf("[%d] %s: %v", r.Seq, r.Name, err)
		}
		var again Command
		if err := again.Decode(out[PrefixSize:]); err != nil {
			t.Fatalf("[%d] %s: decoding what was encoded: %v", r.Seq, r.Name, err)
		}
		if !reflect.DeepEqual(c, &again) {
			t.Errorf("[%d] %s: %+v became %+v", r.Seq, r.Name, c, &again)
		}
		// Java's JSON has one form, and so has the binary header; only the Go client orders a JSON header's members otherwise.
		if c.Encoding == EncodingJSON && strings.HasPrefix(r.Client, "go ") && c.Language == LanguageGo {
			continue
		}
		equal++
		if want := unhex(t, r.Frame); !bytes.Equal(out, want) {
			t.Errorf("[%d] %s: encoded\n%q, recorded\n%q", r.Seq, r.Name, out, want)
		}
	}
	if equal < 1900 {
		t.Errorf("only %d frames were compared byte for byte", equal)
	}
}
