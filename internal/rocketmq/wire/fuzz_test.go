package wire

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// Each decoder is fuzzed, with seeds from the recorded frames: no panic, and what was read is written again as it was.

// seedFrames returns a few recorded frames of each code.
func seedFrames(f *testing.F) []recordedFrame {
	f.Helper()
	type kind struct {
		code     int32
		response bool
		encoding string
	}
	seen := map[kind]int{}
	var seeds []recordedFrame
	for _, r := range recordedFrames(f) {
		k := kind{r.Code + r.RequestCode<<8, r.IsResponse, r.Encoding}
		if seen[k]++; seen[k] <= 2 {
			seeds = append(seeds, r)
		}
	}
	return seeds
}

func FuzzCommand(f *testing.F) {
	for _, r := range seedFrames(f) {
		f.Add(unhex(f, r.Frame)[PrefixSize:])
	}
	f.Add(jsonContent(`{"code":"5","extFields":{"a":{"b":[1]},"c":null},"remark":"\ud83d\ude00","language":77}`))
	f.Add(binaryHeader(1<<31, 0))
	f.Fuzz(func(t *testing.T, content []byte) {
		var c Command
		if err := c.Decode(content); err != nil {
			return
		}
		out, err := AppendFrame(nil, &c)
		if err != nil {
			t.Fatalf("encoding %+v: %v", c, err)
		}
		n, err := FrameLength(out)
		if err != nil || n != len(out)-PrefixSize {
			t.Fatalf("FrameLength = %d, %v for %d bytes", n, err, len(out))
		}
		var again Command
		if err := again.Decode(out[PrefixSize:]); err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v became %+v (%v)", c, again, err)
		}
		if c.Encoding == EncodingBinary && len(c.Ext) > 0 && !bytes.Equal(out[PrefixSize:], content) {
			t.Fatalf("a binary header was written as %x, read from %x", out[PrefixSize:], content)
		}
	})
}

func FuzzFields(f *testing.F) {
	for _, r := range seedFrames(f) {
		f.Add(r.Code, r.IsResponse, unhex(f, r.Frame)[PrefixSize:])
	}
	f.Fuzz(func(t *testing.T, code int32, response bool, content []byte) {
		var c Command
		if err := c.Decode(content); err != nil {
			return
		}
		first, second := NewResponseHeader(RequestCode(code)), NewResponseHeader(RequestCode(code))
		if !response {
			request, again := NewHeader(RequestCode(code)), NewHeader(RequestCode(code))
			if request == nil {
				return
			}
			first, second = request, again
		}
		if err := DecodeFields(c.Ext, first); err != nil {
			return
		}
		fields := EncodeFields(first)
		if err := DecodeFields(fields, second); err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v became %+v (%v)", first, second, err)
		}
	})
}

func FuzzMessage(f *testing.F) {
	for _, m := range recordedMessages(f) {
		f.Add(unhex(f, m.Hex))
	}
	f.Fuzz(func(t *testing.T, buf []byte) {
		for len(buf) > 0 {
			var m Message
			n, err := m.Decode(buf)
			if n == 0 {
				if err == nil {
					t.Fatal("no size and no error")
				}
				return
			}
			if err == nil {
				out, err := m.Append(nil)
				if err != nil || !bytes.Equal(out, buf[:n]) || m.Size() != n {
					t.Fatalf("%x was written as %x (%v), Size %d", buf[:n], out, err, m.Size())
				}
				useMessage(t, &m)
			}
			buf = buf[n:]
		}
	})
}

// useMessage calls all that reads a message.
func useMessage(t *testing.T, m *Message) {
	t.Helper()
	_, _, _, _, _ = m.ID(), m.Keys(), m.Tag(), m.OriginTopic(), m.Attempt()
	if err := m.CheckCRC(); err == nil && len(m.Body) > 0 && BodyCRC(m.Body) != m.BodyCRC {
		t.Fatal("the sum is not looked at")
	}
	if _, err := m.CheckMessageCRC(); err != nil && !strings.Contains(string(m.Properties), PropCRC) {
		t.Fatalf("no sum, and yet %v", err)
	}
	if _, ok := m.Property(PropOriginMessageID); !ok && Identity(m) != m.OffsetID() {
		t.Fatal("an identity that comes from nowhere")
	}
	for p, err := range m.Parts(m.Body) {
		if err == nil && !bytes.Equal(p.Topic, m.Topic) {
			t.Fatal("a part of another topic")
		}
	}
}

// javaProperties reads properties in the plainest way that does what Java's decoder does.
func javaProperties(text string) map[string]string {
	m := map[string]string{}
	for item := range strings.SplitSeq(text, "\x02") {
		if k, v, ok := strings.Cut(item, "\x01"); ok && k != "" && v != "" {
			m[k] = v
		}
	}
	return m
}

func FuzzProperties(f *testing.F) {
	for _, m := range recordedMessages(f) {
		f.Add(unhex(f, m.PropertiesHex), PropTags, "value")
	}
	f.Add([]byte("k\x01\x01\x02\x02a\x01b"), "k", "")
	f.Fuzz(func(t *testing.T, text []byte, name, value string) {
		want := javaProperties(string(text))
		if got := PropertyMap(text); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		values := make([][]byte, 2)
		names := []string{name, PropKeys}
		FindProperties(text, names, values)
		for i, n := range names {
			got, ok := FindProperty(text, n)
			wanted, there := want[n]
			if ok != there || string(got) != wanted || (values[i] != nil) != there || string(values[i]) != wanted {
				t.Fatalf("%q: property %q = %q and %q, want %q", text, n, got, values[i], wanted)
			}
		}
		out, err := SetProperty(text, name, value)
		if err != nil {
			return
		}
		delete(want, name)
		if value != "" {
			want[name] = value
		}
		if got := PropertyMap(out); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q with %q=%q: %q, want %q", text, name, value, got, want)
		}
	})
}

func FuzzBatch(f *testing.F) {
	for _, r := range recordedFrames(f) {
		if r.Decoded.Batch != nil {
			var c Command
			if err := c.Decode(unhex(f, r.Frame)[PrefixSize:]); err != nil {
				f.Fatal(err)
			}
			f.Add(c.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var out []byte
		for p, err := range BatchParts(body) {
			if err != nil {
				return
			}
			if out, err = p.Append(out); err != nil {
				t.Fatal(err)
			}
		}
		// Magic and sum of a part are not kept: they are zero in all that is sent.
		want := bytes.Clone(body)
		for at := 0; at < len(want); {
			clear(want[at+4 : at+12])
			at += int(binary.BigEndian.Uint32(want[at:]))
		}
		if !bytes.Equal(out, want) {
			t.Fatalf("%x was written as %x", want, out)
		}
	})
}

func FuzzInflate(f *testing.F) {
	for _, c := range methods() {
		d, err := NewDeflater(c)
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range []string{"", "streamd", strings.Repeat("streamd ", 1000)} {
			packed, err := d.Append(nil, []byte(text))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packed, byte(c))
		}
	}
	const limit = 4 << 10
	f.Fuzz(func(t *testing.T, src []byte, c byte) {
		z := NewInflater(limit)
		out, err := z.Append([]byte("kept"), src, Compression(c))
		if !bytes.HasPrefix(out, []byte("kept")) || len(out) > limit+4 || err != nil && len(out) != 4 {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		again, err2 := z.Append(nil, src, Compression(c))
		if (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(again, out[4:]) {
			t.Fatalf("the second time %d bytes, %v; the first %d, %v", len(again), err2, len(out)-4, err)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, r := range seedFrames(f) {
		if r.Decoded.Body == nil {
			continue
		}
		var c Command
		if err := c.Decode(unhex(f, r.Frame)[PrefixSize:]); err != nil {
			f.Fatal(err)
		}
		code := r.Code
		if r.IsResponse {
			code = r.RequestCode
		}
		f.Add(code, r.IsResponse, c.Body)
	}
	f.Fuzz(func(t *testing.T, code int32, response bool, text []byte) {
		if std, err := Normalize(text); err == nil {
			again, err := Normalize(std)
			if err != nil || !bytes.Equal(again, std) {
				t.Fatalf("%q became %q (%v)", std, again, err)
			}
		}
		first, second := newBody(RequestCode(code), response), newBody(RequestCode(code), response)
		if first == nil || DecodeBody(text, first) != nil {
			return
		}
		for _, d := range []Dialect{Fastjson, Standard} {
			out, err := EncodeBody(first, d)
			if err != nil {
				t.Fatalf("encoding %+v: %v", first, err)
			}
			if err := DecodeBody(out, second); err != nil {
				t.Fatalf("reading %s: %v", out, err)
			}
			rewritten, err := EncodeBody(second, d)
			if err != nil || !bytes.Equal(rewritten, out) {
				t.Fatalf("%s became %s (%v)", out, rewritten, err)
			}
			second = newBody(RequestCode(code), response)
		}
	})
}

func FuzzTags(f *testing.F) {
	for _, e := range []string{"", "*", "A || B", "||", " A |B", "Tag='x' AND y=1", "订单||😀"} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := NewSubscriptionData("T", ExpressionTag, expression, 1)
		if err != nil {
			return
		}
		for _, tag := range s.TagsSet {
			if !s.Matches([]byte(tag)) || strings.TrimSpace(tag) != tag || tag == "" {
				t.Fatalf("%q has the tag %q", expression, tag)
			}
		}
		again, err := ParseTags(strings.Join(s.TagsSet, "||"))
		if err != nil || strings.Join(again, "||") != strings.Join(s.TagsSet, "||") {
			t.Fatalf("%q became %q (%v)", s.TagsSet, again, err)
		}
	})
}

func FuzzIDs(f *testing.F) {
	f.Add("0A00000500002A9F000000000001E240")
	f.Add("20010DB800000000000000000000000500002A9F0000000000001000")
	f.Fuzz(func(t *testing.T, id string) {
		host, offset, err := ParseOffsetID(id)
		if err != nil {
			return
		}
		if got := string(AppendOffsetID(nil, host, offset)); !strings.EqualFold(got, id) {
			t.Fatalf("%s became %s", id, got)
		}
	})
}
