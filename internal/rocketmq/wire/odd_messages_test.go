package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The scenarios ME-P01 to ME-P10: odd messages that tripped others.

func plainMessage() *Message {
	return &Message{
		BornHost: netip.MustParseAddrPort("10.1.2.3:4"), StoreHost: netip.MustParseAddrPort("10.0.0.5:10911"),
		Topic: []byte("T"), Body: []byte("b"), BodyCRC: BodyCRC([]byte("b")),
	}
}

func stored(t *testing.T, m *Message) []byte {
	t.Helper()
	out, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ME-P01: an empty body is a body, also when sysFlag says that it is compressed.
func TestEmptyBody(t *testing.T) {
	t.Parallel()
	for _, flag := range []int32{0, CompressionZlib.SysFlag(), CompressionLZ4.SysFlag(), CompressionZstd.SysFlag()} {
		m := plainMessage()
		m.Body, m.BodyCRC, m.SysFlag = nil, BodyCRC(nil), flag
		var got Message
		if _, err := got.Decode(stored(t, m)); err != nil {
			t.Fatal(err)
		}
		body, err := NewInflater(10).AppendBody(nil, &got)
		if err != nil || len(body) != 0 || got.CheckCRC() != nil {
			t.Errorf("sysFlag %#x: body %q, %v", flag, body, err)
		}
	}
}

// ME-P02, ME-P04: properties are read as Java's decoder reads them.
func TestOddProperties(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want map[string]string
	}{
		"none":                     {"", map[string]string{}},
		"no last separator":        {"a\x01b\x02DELAY\x014", map[string]string{"a": "b", "DELAY": "4"}},
		"doubled separators":       {"a\x01b\x02\x02c\x01d\x02\x02", map[string]string{"a": "b", "c": "d"}},
		"key without value":        {"a\x01\x02c\x01d\x02", map[string]string{"c": "d"}},
		"key without link":         {"a\x02c\x01d\x02", map[string]string{"c": "d"}},
		"value without key":        {"\x01v\x02c\x01d\x02", map[string]string{"c": "d"}},
		"link in a value":          {"a\x01b\x01c\x02", map[string]string{"a": "b\x01c"}},
		"value that is a link":     {"a\x01\x01\x02", map[string]string{"a": "\x01"}},
		"value ending in byte 2":   {"a\x01b\x02\x02c\x01d", map[string]string{"a": "b", "c": "d"}},
		"last duplicate wins":      {"k\x011\x02k\x012\x02", map[string]string{"k": "2"}},
		"empty duplicate does not": {"k\x011\x02k\x01\x02", map[string]string{"k": "1"}},
		"only separators":          {"\x01\x02\x01\x02\x02\x01", map[string]string{}},
		"not UTF-8":                {"a\x01\xff\xfe\x02", map[string]string{"a": "\xff\xfe"}},
		"name that is a prefix":    {"KEYSX\x01x\x02KEYS\x01y\x02KEY\x01z", map[string]string{"KEYSX": "x", "KEYS": "y", "KEY": "z"}},
	}
	for name, tt := range tests {
		m := plainMessage()
		m.Properties = []byte(tt.text)
		var got Message
		if _, err := got.Decode(stored(t, m)); err != nil {
			t.Fatal(err)
		}
		if read := PropertyMap(got.Properties); !maps.Equal(read, tt.want) {
			t.Errorf("%s: %q, want %q", name, read, tt.want)
		}
		for k, want := range tt.want {
			if v, ok := got.Property(k); !ok || string(v) != want {
				t.Errorf("%s: property %q = %q (%t), want %q", name, k, v, ok, want)
			}
		}
		for _, k := range []string{"", "absent", "K", "\x01"} {
			if v, ok := got.Property(k); ok {
				t.Errorf("%s: property %q = %q, it has none", name, k, v)
			}
		}
	}
}

func TestAppendProperty(t *testing.T) {
	t.Parallel()
	text, err := AppendProperty([]byte("DELAY\x014"), "trace", "x")
	if err != nil || string(text) != "DELAY\x014\x02trace\x01x\x02" {
		t.Errorf("%q, %v: the unfinished property must stay apart", text, err)
	}
	for _, bad := range [][2]string{{"", "v"}, {"k", ""}, {"k\x01", "v"}, {"k", "v\x02"}, {"k\x02", "v"}, {"k", "\x01"}} {
		if out, err := AppendProperty([]byte("a\x01b"), bad[0], bad[1]); !errors.Is(err, ErrNotEncodable) || string(out) != "a\x01b" {
			t.Errorf("%q: %q, %v", bad, out, err)
		}
	}
}

func TestSetProperty(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, name, value, want string }{
		{"", "a", "1", "a\x011\x02"},
		{"a\x010\x02b\x012", "a", "1", "b\x012\x02a\x011\x02"},
		{"a\x010\x02b\x012\x02a\x013\x02", "a", "", "b\x012\x02"},
		{"odd\x02b\x01\x01\x02", "a", "1", "odd\x02b\x01\x01\x02a\x011\x02"},
	}
	for _, tt := range tests {
		text := []byte(tt.text)
		got, err := SetProperty(text, tt.name, tt.value)
		if err != nil || string(got) != tt.want || string(text) != tt.text {
			t.Errorf("SetProperty(%q, %q, %q) = %q, %v; want %q", tt.text, tt.name, tt.value, got, err, tt.want)
		}
	}
	if _, err := SetProperty(nil, "a", "\x02"); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("a separator as value: %v", err)
	}
}

// ME-P03: a property block beyond 16 bits is refused on writing; a negative length costs that one message on reading.
func TestLongProperties(t *testing.T) {
	t.Parallel()
	m := plainMessage()
	m.Properties = []byte("k\x01" + strings.Repeat("v", MaxProperties-3) + "\x02")
	first := stored(t, m)
	m.Properties = append(m.Properties, 'x')
	if _, err := m.Append(nil); !errors.Is(err, ErrNotEncodable) || !strings.Contains(err.Error(), "32767") {
		t.Errorf("one byte more: %v", err)
	}
	broken := bytes.Clone(first)
	broken[len(first)-MaxProperties-2] = 0x80 // 32767 becomes negative
	all := append(append(broken, first...), stored(t, plainMessage())...)
	wantErrors := []bool{true, false, false}
	checkWalk(t, all, wantErrors)
}

// checkWalk walks over stored messages, some of which are broken.
func checkWalk(t *testing.T, body []byte, broken []bool) {
	t.Helper()
	for i, want := range broken {
		var m Message
		n, err := m.Decode(body)
		if n == 0 || (err != nil) != want || err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("message %d: size %d, error %v", i, n, err)
		}
		body = body[n:]
	}
	if len(body) != 0 {
		t.Errorf("%d bytes left", len(body))
	}
}

// ME-P05: what is flagged wrongly fails alone, and says how.
func TestWrongCompression(t *testing.T) {
	t.Parallel()
	z := NewInflater(1 << 10)
	good := func(c Compression) []byte {
		d, err := NewDeflater(c)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Append(nil, []byte("good"))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []Compression{CompressionUntyped, CompressionLZ4, CompressionZstd, CompressionZlib} {
		for range 2 { // once more with the memory of the first
			m := Message{SysFlag: c.SysFlag(), Body: []byte("plain text, flagged as compressed")}
			if out, err := z.AppendBody([]byte("kept"), &m); !errors.Is(err, ErrMalformed) || string(out) != "kept" {
				t.Errorf("%s, plain: %q, %v", c, out, err)
			}
			m.Body = good(c)
			if out, err := z.AppendBody(nil, &m); err != nil || string(out) != "good" {
				t.Errorf("%s, good: %q, %v", c, out, err)
			}
			m.Body = m.Body[:len(m.Body)-1]
			if out, err := z.AppendBody(nil, &m); !errors.Is(err, ErrMalformed) || len(out) != 0 {
				t.Errorf("%s, cut: %q, %v", c, out, err)
			}
		}
	}
	m := Message{SysFlag: Compression(5).SysFlag(), Body: []byte("x")}
	if _, err := z.AppendBody(nil, &m); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "5") {
		t.Errorf("unknown type: %v", err)
	}
}

// ME-P06: the two address bits are independent, and the message behind still decodes.
func TestAddressFamilies(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParseAddrPort("10.0.0.5:10911"), netip.MustParseAddrPort("[2001:db8::5]:10911")
	for _, flags := range []int32{0, SysFlagBornV6, SysFlagStoreV6, SysFlagBornV6 | SysFlagStoreV6} {
		m := plainMessage()
		m.SysFlag, m.BornHost, m.StoreHost = flags, v4, v4
		digits := offsetIDv4
		if flags&SysFlagBornV6 != 0 {
			m.BornHost = v6
		}
		if flags&SysFlagStoreV6 != 0 {
			m.StoreHost, digits = v6, offsetIDv6
		}
		one := stored(t, m)
		if len(one) != m.Size() {
			t.Errorf("flags %#x: %d bytes, Size says %d", flags, len(one), m.Size())
		}
		body := slices.Concat(one, stored(t, plainMessage()))
		checkWalk(t, body, []bool{false, false})
		var got Message
		if _, err := got.Decode(body); err != nil || got.BornHost != m.BornHost || got.StoreHost != m.StoreHost {
			t.Errorf("flags %#x: hosts %s %s (%v)", flags, got.BornHost, got.StoreHost, err)
		}
		host, offset, err := ParseOffsetID(got.OffsetID())
		if len(got.OffsetID()) != digits || host != m.StoreHost || offset != m.LogOffset || err != nil {
			t.Errorf("flags %#x: id %s reads as %s %d (%v)", flags, got.OffsetID(), host, offset, err)
		}
	}
	m := plainMessage()
	m.BornHost = v6
	if _, err := m.Append(nil); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("IPv6 without its bit: %v", err)
	}
	m.BornHost = netip.AddrPort{}
	if _, err := m.Append(nil); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("no host: %v", err)
	}
}

// ME-P07: keys in are keys out; those with blanks are refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"a", "b"}, {"a"}, {"订单", "é", "a|b"}} {
		text, err := JoinKeys(keys)
		if err != nil {
			t.Fatal(err)
		}
		m := plainMessage()
		if m.Properties, err = AppendProperty(nil, PropKeys, text); err != nil {
			t.Fatal(err)
		}
		if got := m.Keys(); fmt.Sprint(got) != fmt.Sprint(keys) {
			t.Errorf("%q became %q", keys, got)
		}
	}
	for _, keys := range [][]string{{"a b"}, {"a", ""}, {"a\tb"}} {
		if _, err := JoinKeys(keys); !errors.Is(err, ErrNotEncodable) {
			t.Errorf("%q: %v", keys, err)
		}
	}
	if text, err := JoinKeys(nil); text != "" || err != nil {
		t.Errorf("no keys: %q, %v", text, err)
	}
}

// ME-P08: tag expressions, and the width of the hash.
func TestTagExpressions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("tag", 100)
	tests := []struct {
		expression string
		sub        string
		tags       []string
	}{
		{"A||B", "A||B", []string{"A", "B"}},
		{"A || B", "A || B", []string{"A", "B"}},
		{" A |B", " A |B", []string{"A |B"}},
		{"A || || B ||", "A || || B ||", []string{"A", "B"}},
		{"A || A", "A || A", []string{"A"}},
		{"*", "*", nil},
		{"", "*", nil},
		{"  ", "*", nil},
		{long, long, []string{long}},
		{"AND", "AND", []string{"AND"}},
	}
	for _, tt := range tests {
		s, err := NewSubscriptionData("T", "", tt.expression, 7)
		if err != nil {
			t.Errorf("%q: %v", tt.expression, err)
			continue
		}
		if s.SubString != tt.sub || fmt.Sprint(s.TagsSet) != fmt.Sprint(tt.tags) || s.SubVersion != 7 || s.ExpressionType != ExpressionTag {
			t.Errorf("%q: %+v", tt.expression, s)
		}
		if len(s.CodeSet) != len(tt.tags) {
			t.Errorf("%q: codes %v", tt.expression, s.CodeSet)
		}
		for i, tag := range tt.tags {
			if s.CodeSet[i] != TagHash(tag) {
				t.Errorf("%q: code %d, want %d", tt.expression, s.CodeSet[i], TagHash(tag))
			}
		}
	}
	for _, bad := range []string{"||", " || ", "Tag='x' AND y=1", "a > 3", "NOT x", "a IS b", "x between y"} {
		if s, err := NewSubscriptionData("T", ExpressionTag, bad, 1); !errors.Is(err, ErrFilter) {
			t.Errorf("%q: %+v, %v", bad, s, err)
		}
	}
	if h := TagHash(long); h != -1666005120 {
		t.Errorf("hash of a long tag = %d", h)
	}
}

func TestSQLExpressions(t *testing.T) {
	t.Parallel()
	s, err := NewSubscriptionData("T", ExpressionSQL92, "a > 3", 1)
	if err != nil || s.SubString != "a > 3" || len(s.TagsSet)+len(s.CodeSet) != 0 || !s.Matches(nil) {
		t.Errorf("%+v, %v", s, err)
	}
	for typ, expression := range map[string]string{ExpressionSQL92: " ", "XPATH": "a"} {
		if _, err := NewSubscriptionData("T", typ, expression, 1); !errors.Is(err, ErrFilter) {
			t.Errorf("%s %q: %v", typ, expression, err)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expression, tag string
		want            bool
	}{
		{"*", "", true},
		{"*", "x", true},
		{"A || B", "A", true},
		{"A || B", "A ", false},
		{"A || B", "A|B", false},
		{"A || B", "", false},
		{"Aa", "BB", false}, // both hash to 2112
	}
	for _, tt := range tests {
		s, err := NewSubscriptionData("T", ExpressionTag, tt.expression, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches([]byte(tt.tag)); got != tt.want {
			t.Errorf("%q on tag %q: %t", tt.expression, tt.tag, got)
		}
	}
}

// ME-P09: the usual limit of a body passes, several of them fit a frame, more than a frame is refused.
func TestSizeLimits(t *testing.T) {
	t.Parallel()
	m := plainMessage()
	for _, size := range []int{MaxBody - 1, MaxBody, MaxBody + 1} {
		m.Body = make([]byte, size)
		checkWalk(t, stored(t, m), []bool{false})
	}
	m.Body = make([]byte, MaxBody)
	c := Command{Body: bytes.Repeat(stored(t, m), 3)}
	if _, err := AppendFrame(nil, &c); err != nil {
		t.Errorf("three messages of the largest size: %v", err)
	}
	c.Body = bytes.Repeat(stored(t, m), 4)
	if _, err := AppendFrame(nil, &c); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "16777216") {
		t.Errorf("four: %v", err)
	}
	m.Body = make([]byte, MaxFrame)
	if _, err := m.Append(nil); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("a message beyond a frame: %v", err)
	}
}

// ME-P10: names as brokers take them.
func TestNames(t *testing.T) {
	t.Parallel()
	good := []string{"T", "%RETRY%CG", "a|b-c_d", strings.Repeat("x", 127)}
	for _, name := range good {
		if err := ValidateTopic(name); err != nil {
			t.Errorf("topic %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a.b", "a/b", "a ", " a", "订单", "a+b", strings.Repeat("x", 128)} {
		if err := ValidateTopic(name); !errors.Is(err, ErrName) {
			t.Errorf("topic %q: %v", name, err)
		}
	}
	if err := ValidateGroup(strings.Repeat("g", 120)); err != nil {
		t.Error(err)
	}
	if err := ValidateGroup(strings.Repeat("g", 121)); !errors.Is(err, ErrName) || !strings.Contains(err.Error(), "120") {
		t.Errorf("group of 121: %v", err)
	}
	if err := ValidateKnownGroup(strings.Repeat("g", 255)); err != nil {
		t.Errorf("group of 255 that 5.3.3 let somebody make: %v", err)
	}
	if err := ValidateKnownGroup(strings.Repeat("g", 256)); !errors.Is(err, ErrName) || !strings.Contains(err.Error(), "255") {
		t.Errorf("group of 256: %v", err)
	}
	if err := ValidateTopic("a b"); !strings.Contains(err.Error(), "byte 1") {
		t.Errorf("the place is missing: %v", err)
	}
}

func TestSystemTopics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		topic                        string
		retry, dlq, system, sendable bool
	}{
		{"T", false, false, false, true},
		{RetryTopic("CG"), true, false, false, true},
		{DLQTopic("CG"), false, true, false, true},
		{DefaultTopic, false, false, true, true},
		{ScheduleTopic, false, false, true, false},
		{HalfTopic, false, false, true, false},
		{TimerTopic, false, false, true, true},
		{"rmq_sys_x", false, false, true, true},
	}
	for _, tt := range tests {
		got := []bool{IsRetryTopic(tt.topic), IsDLQTopic(tt.topic), IsSystemTopic(tt.topic), IsSendable(tt.topic)}
		if want := []bool{tt.retry, tt.dlq, tt.system, tt.sendable}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", tt.topic, got, want)
		}
	}
}
