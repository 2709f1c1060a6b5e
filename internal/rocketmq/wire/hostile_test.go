package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	goruntime "runtime"
	"strings"
	"testing"
)

// allocated returns how many bytes f allocates. Tests that use it must not be parallel.
func allocated(f func()) int {
	least := math.MaxInt
	for range 8 { // the least: a library's pool is emptied now and then, under the race detector often
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		f()
		goruntime.ReadMemStats(&after)
		least = min(least, int(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}

// content makes a frame's content with a stated header length.
func content(e Encoding, stated int, rest ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(e)<<24|uint32(stated)), rest...)
}

func binaryHeader(remark, block uint32, rest ...byte) []byte {
	h := append(make([]byte, 13), binary.BigEndian.AppendUint32(nil, remark)...)
	h = binary.BigEndian.AppendUint32(h, block)
	h = append(h, rest...)
	return content(EncodingBinary, len(h), h...)
}

// TestHostileLengths states lengths that no bytes follow. Beyond a small constant nothing may be allocated for them: the
// limit is twice of what arrived.
func TestHostileLengths(t *testing.T) {
	const constant = 8 << 10 // error texts, and the room for a usual number of fields
	key := []byte{0, 1, 'k'}
	tests := map[string]struct {
		input  []byte
		decode func([]byte) error
	}{
		"header longer than the frame": {content(EncodingJSON, 1<<24-1, '{'), decodeCommand},
		"unknown encoding":             {content(7, 0), decodeCommand},
		"remark of 2 GiB":              {binaryHeader(1<<31-1, 0), decodeCommand},
		"remark of negative length":    {binaryHeader(1<<31, 0), decodeCommand},
		"fields of 2 GiB":              {binaryHeader(0, 1<<31-1), decodeCommand},
		"value of 2 GiB":               {binaryHeader(0, 7, append(key, 0x7f, 255, 255, 255)...), decodeCommand},
		"key of 32 KiB":                {binaryHeader(0, 3, 0x7f, 255, 'k'), decodeCommand},
		"key of negative length":       {binaryHeader(0, 3, 255, 255, 'k'), decodeCommand},
		"many empty fields":            {binaryHeader(0, 6<<16, make([]byte, 6<<16)...), decodeCommand},
		"many empty JSON fields":       {jsonContent(`{"extFields":{` + strings.Repeat(`"":"",`, 1<<16) + `"":""}}`), decodeCommand},
		"deep JSON":                    {jsonContent(`{"x":` + strings.Repeat("[", 1<<20) + `}`), decodeCommand},
		"deep JSON objects":            {jsonContent(strings.Repeat(`{"x":`, 1<<18)), decodeCommand},
		"message of 2 GiB":             {stated(MinMessage, 0, 1<<31-1), decodeMessage},
		"message of negative length":   {stated(MinMessage, 0, 1<<31), decodeMessage},
		"body of 2 GiB":                {stated(MinMessage, 84, 1<<31-1), decodeMessage},
		"body of negative length":      {stated(MinMessage, 84, 1<<32-1), decodeMessage},
		"part of 2 GiB":                {stated(64, 0, 1<<31-1), decodeBatch},
		"part's body of 2 GiB":         {stated(64, 16, 1<<31-1), decodeBatch},
		"body of empty objects":        {[]byte(`{"subscriptionSet":[` + strings.Repeat("{},", 1<<16) + `{}]}`), decodeInfo},
		"unfinished table":             {[]byte(`{"mqTable":` + strings.Repeat(`{{`, 1<<12)), decodeInfo},
	}
	for name, tt := range tests {
		var err error
		n := allocated(func() { err = tt.decode(tt.input) })
		if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
		if limit := 2*len(tt.input) + constant; n > limit {
			t.Errorf("%s: %d bytes allocated for %d that arrived", name, n, len(tt.input))
		}
	}
}

// stated makes a message or part of size bytes whose length at a place is n; its own length and magic are right.
func stated(size, at int, n uint32) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, uint32(size))
	if size == MinMessage {
		binary.BigEndian.PutUint32(b[4:], magicV1)
	}
	binary.BigEndian.PutUint32(b[at:], n)
	return b
}

func jsonContent(header string) []byte { return content(EncodingJSON, len(header), []byte(header)...) }

func decodeCommand(b []byte) error { return new(Command).Decode(b) }

func decodeMessage(b []byte) error {
	_, err := new(Message).Decode(b)
	return err
}

func decodeBatch(b []byte) error {
	for _, err := range BatchParts(b) {
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeInfo(b []byte) error { return DecodeBody(b, &ConsumerRunningInfo{}) }

// TestWalkAllocatesNothing holds the hot path of a pull to its promise.
func TestWalkAllocatesNothing(t *testing.T) {
	frame := benchPullResponse(t, 32, EncodingJSON)
	var c Command
	if err := c.Decode(frame[PrefixSize:]); err != nil {
		t.Fatal(err)
	}
	names := []string{PropTags, PropUniqueKey}
	values := make([][]byte, len(names))
	id := make([]byte, 0, 64)
	got := testing.AllocsPerRun(100, func() {
		var m Message
		for body := c.Body; len(body) > 0; {
			n, err := m.Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.Property(PropKeys); !ok || m.CheckCRC() != nil {
				t.Fatal("no keys, or a wrong sum")
			}
			FindProperties(m.Properties, names, values)
			for name := range m.AllProperties() {
				_ = name
			}
			id = m.AppendIdentity(id[:0])
			body = body[n:]
		}
	})
	if got != 0 {
		t.Errorf("%v allocations for a walk over 32 messages", got)
	}
	var again Command
	again.Ext = make(Fields, 0, 8)
	if got := testing.AllocsPerRun(100, func() {
		if err := again.Decode(frame[PrefixSize:]); err != nil {
			t.Fatal(err)
		}
	}); got > 1 {
		t.Errorf("%v allocations for a header, want its text alone", got)
	}
}

// TestAppendFrameAllocatesNothing encodes into a buffer that is large enough.
func TestAppendFrameAllocatesNothing(t *testing.T) {
	c := NewRequest(&ConsumerListRequest{Group: "CG\x01"}, []byte("body"))
	buf := make([]byte, 0, 1024)
	for _, e := range []Encoding{EncodingJSON, EncodingBinary} {
		c.Encoding = e
		if got := testing.AllocsPerRun(100, func() {
			if _, err := AppendFrame(buf, c); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations", e, got)
		}
	}
}

func TestFrameLengths(t *testing.T) {
	t.Parallel()
	tests := []struct {
		prefix string
		want   int
		err    error
	}{
		{"00000004", 4, nil},
		{"00000003", 0, ErrMalformed},
		{"00000000", 0, ErrMalformed},
		{"ffffffff", 0, ErrMalformed},
		{"7fffffff", 0, ErrTooLarge},
		{"00fffffc", MaxFrame - 4, nil},
		{"00fffffd", 0, ErrTooLarge},
		{"47455420", 0, ErrTooLarge}, // "GET "
		{"16030101", 0, ErrTooLarge}, // a TLS hello
	}
	for _, tt := range tests {
		got, err := FrameLength(unhex(t, tt.prefix))
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %v; want %d, %v", tt.prefix, got, err, tt.want, tt.err)
		}
	}
}

func TestFrameTooLargeToSend(t *testing.T) {
	t.Parallel()
	c := NewRequest(&ConsumerListRequest{Group: "CG"}, nil)
	empty, err := AppendHeader(nil, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AppendHeader(nil, c, MaxFrame-len(empty)); err != nil {
		t.Errorf("the largest frame: %v", err)
	}
	dst := []byte("kept")
	out, err := AppendHeader(dst, c, MaxFrame-len(empty)+1)
	if !errors.Is(err, ErrTooLarge) || !bytes.Equal(out, dst) {
		t.Errorf("one byte more: %q, %v", out, err)
	}
}

func TestNotEncodableInBinary(t *testing.T) {
	t.Parallel()
	dst := []byte("kept")
	for _, c := range []Command{
		{Code: 200050, Encoding: EncodingBinary},
		{Version: 1 << 15, Encoding: EncodingBinary},
		{Ext: Fields{{strings.Repeat("k", 1<<15), ""}}, Encoding: EncodingBinary},
		{Encoding: 9},
	} {
		if out, err := AppendFrame(dst, &c); !errors.Is(err, ErrNotEncodable) || !bytes.Equal(out, dst) {
			t.Errorf("code %d: %q, %v", c.Code, out, err)
		}
	}
}

func TestGrowFrame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, want, grown int }{
		{0, 100, 100}, {0, MaxFrame, 64 << 10}, {64 << 10, MaxFrame, 128 << 10}, {MaxFrame / 2, MaxFrame - 5, MaxFrame - 5},
	} {
		if got := GrowFrame(tt.have, tt.want); got != tt.grown {
			t.Errorf("GrowFrame(%d, %d) = %d, want %d", tt.have, tt.want, got, tt.grown)
		}
	}
}
