package wire

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// The vectors of remoting-protocol.md 8, which were checked against the real Java and Go classes.

func referenceVector(t *testing.T, section string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/remoting-protocol-8.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ What, Hex string }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	v, ok := all[section]
	if !ok {
		t.Fatalf("no vector %s", section)
	}
	return unhex(t, v.Hex)
}

func TestReferenceFrames(t *testing.T) {
	t.Parallel()
	route := EncodeFields(&RouteRequest{Topic: "TopicTest"})
	pull := PullRequest{
		Group: "CG_demo", Topic: "TopicTest", QueueID: 2, Offset: 100, MaxMessages: 32, SysFlag: PullCommitOffset | PullSuspend,
		CommitOffset: 98, SuspendMillis: 15000, SubscriptionMillis: 1_700_000_000_000, ExpressionType: Some(ExpressionTag),
		MaxBytes: Some(int32(262144)), Common: Common{BrokerName: Some("broker-a")},
	}
	update := UpdateOffsetRequest{
		Group: "CG_demo", Topic: "TopicTest", QueueID: 2, Offset: 101, Common: Common{BrokerName: Some("broker-a")},
	}
	tests := map[string]Command{
		"8.1": {Code: 105, Language: LanguageJava, Version: 479, Opaque: 1, Ext: route},
		"8.2": {Code: 105, Language: LanguageGo, Version: 317, Opaque: 2, Ext: route, Encoding: EncodingBinary},
		"8.3": {Code: 11, Language: LanguageJava, Version: 479, Opaque: 3, Ext: EncodeFields(&pull), Encoding: EncodingBinary},
		"8.9": {Code: 15, Language: LanguageGo, Version: 317, Opaque: 4, Flag: FlagOneway, Ext: EncodeFields(&update), Encoding: EncodingBinary},
		// What Java makes of POP_MESSAGE in this form: the code is cut to 16 bits.
		"8.11": {Code: 3442, Language: LanguageJava, Version: 479, Opaque: 6, Ext: Fields{{"consumerGroup", "CG"}}, Encoding: EncodingBinary},
	}
	for section, want := range tests {
		frame := referenceVector(t, section)
		out, err := AppendFrame(nil, &want)
		if err != nil || !bytes.Equal(out, frame) {
			t.Errorf("%s: encoded %x (%v), want %x", section, out, err, frame)
		}
		var got Command
		if err := got.Decode(frame[PrefixSize:]); err != nil {
			t.Errorf("%s: %v", section, err)
		}
		if got.Code != want.Code || got.Opaque != want.Opaque || got.Flag != want.Flag || len(got.Ext) != len(want.Ext) {
			t.Errorf("%s: %+v, want %+v", section, got, want)
		}
	}
}

func TestReferencePullResponse(t *testing.T) {
	t.Parallel()
	const header = `{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"101","minOffset":"0","maxOffset":"101","topicSysFlag":"0","groupSysFlag":"0"},"flag":1,"language":"JAVA","opaque":3,"remark":"FOUND","serializeTypeCurrentRPC":"JSON","version":479}`
	body := referenceVector(t, "8.4")
	frame := append(unhex(t, "000001e5000000f9"), header...)
	frame = append(frame, body...)
	var c Command
	if err := c.Decode(frame[PrefixSize:]); err != nil {
		t.Fatal(err)
	}
	var h PullResponse
	if err := DecodeFields(c.Ext, &h); err != nil {
		t.Fatal(err)
	}
	want := PullResponse{NextOffset: 101, MaxOffset: 101, TopicSysFlag: Some(int32(0)), GroupSysFlag: Some(int32(0))}
	if h.NextOffset != want.NextOffset || h.MaxOffset != want.MaxOffset || h.MinOffset != 0 || h.TopicSysFlag != want.TopicSysFlag {
		t.Errorf("%+v, want %+v", h, want)
	}
	if c.ResponseCode() != RespSuccess || c.Remark != "FOUND" || !bytes.Equal(c.Body, body) {
		t.Errorf("%+v", c)
	}
	if out, err := AppendFrame(nil, &c); err != nil || !bytes.Equal(out, frame) {
		t.Errorf("encoded %q (%v), want %q", out, err, frame)
	}
}

func TestReferenceMessageV1(t *testing.T) {
	t.Parallel()
	raw := referenceVector(t, "8.4")
	want := Message{
		Raw: raw, BodyCRC: 0x77d18982, QueueID: 2, QueueOffset: 100, LogOffset: 123456,
		BornMillis: 1_700_000_000_000, BornHost: netip.MustParseAddrPort("192.168.1.10:50123"),
		StoreMillis: 1_700_000_000_123, StoreHost: netip.MustParseAddrPort("10.0.0.5:10911"),
		Body: []byte("Hello"), Topic: []byte("TopicTest"), Properties: referenceVector(t, "8.5"),
	}
	checkReferenceMessage(t, raw, &want)
	if id := want.OffsetID(); id != "0A00000500002A9F000000000001E240" {
		t.Errorf("offset id %s", id)
	}
	if id := want.ID(); id != "7F00000104D218B4AAC2000027100001" {
		t.Errorf("id %s", id)
	}
}

func TestReferenceMessageV2(t *testing.T) {
	t.Parallel()
	raw := referenceVector(t, "8.7")
	want := Message{
		Raw: raw, QueueOffset: 7, LogOffset: 4096, SysFlag: 0x331, ReconsumeTimes: 1, BodyCRC: 0x6fa29995,
		BornMillis: 1_700_000_000_000, BornHost: netip.MustParseAddrPort("[2001:db8::1]:40000"),
		StoreMillis: 1_700_000_000_456, StoreHost: netip.MustParseAddrPort("[2001:db8::5]:10911"),
		Body: raw[0x70:0x7c], WideTopic: true, Properties: []byte("TAGS\x01TagB\x02"),
		Topic: []byte("%RETRY%" + strings.Repeat("g", 100) + "_" + strings.Repeat("T", 30)),
	}
	checkReferenceMessage(t, raw, &want)
	body, err := NewInflater(64).AppendBody(nil, &want)
	if err != nil || string(body) != strings.Repeat("A", 64) {
		t.Errorf("body %q, %v", body, err)
	}
	if id := want.OffsetID(); id != "20010DB800000000000000000000000500002A9F0000000000001000" {
		t.Errorf("offset id %s", id)
	}
	if want.Attempt() != 2 || want.Compression() != CompressionZlib {
		t.Errorf("attempt %d, compression %s", want.Attempt(), want.Compression())
	}
}

func checkReferenceMessage(t *testing.T, raw []byte, want *Message) {
	t.Helper()
	var got Message
	if n, err := got.Decode(raw); err != nil || n != len(raw) {
		t.Fatalf("Decode = %d, %v", n, err)
	}
	if got.BornHost != want.BornHost || got.StoreHost != want.StoreHost || got.SysFlag != want.SysFlag || got.LogOffset != want.LogOffset ||
		!bytes.Equal(got.Topic, want.Topic) || !bytes.Equal(got.Properties, want.Properties) || !bytes.Equal(got.Body, want.Body) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := got.CheckCRC(); err != nil {
		t.Error(err)
	}
	if out, err := want.Append(nil); err != nil || !bytes.Equal(out, raw) {
		t.Errorf("encoded %x (%v), want %x", out, err, raw)
	}
}

func TestReferenceBatch(t *testing.T) {
	t.Parallel()
	parts := []BatchPart{
		{Body: []byte("one"), Properties: []byte("TAGS\x01TagA\x02UNIQ_KEY\x017F00000104D218B4AAC2000027100001\x02")},
		{Flag: 7, Body: []byte("two"), Properties: []byte("UNIQ_KEY\x017F00000104D218B4AAC2000027100002\x02")},
	}
	var out []byte
	for _, p := range parts {
		var err error
		if out, err = p.Append(out); err != nil {
			t.Fatal(err)
		}
	}
	if want := referenceVector(t, "8.8"); !bytes.Equal(out, want) {
		t.Errorf("encoded %x, want %x", out, want)
	}
}

func TestReferenceSignedSend(t *testing.T) {
	t.Parallel()
	const header = `{"code":310,"extFields":{"a":"PG_demo","b":"TopicTest","c":"TBW102","d":"4","e":"2","f":"0","g":"1700000000000","h":"0","i":"UNIQ_KEY\u00017F00000104D218B4AAC2000027100001\u0002WAIT\u0001true\u0002TAGS\u0001TagA\u0002","j":"0","k":"false","m":"false","n":"broker-a","AccessKey":"rocketmq","Signature":"E3eonvkT5/3GNmxQX4JSFAXUBjk="},"flag":0,"language":"JAVA","opaque":5,"serializeTypeCurrentRPC":"JSON","version":479}`
	frame := append(unhex(t, "000001ab000001a2"), header...)
	frame = append(frame, "Hello"...)
	var c Command
	if err := c.Decode(frame[PrefixSize:]); err != nil {
		t.Fatal(err)
	}
	var h SendRequest
	if err := DecodeFields(c.Ext, &h); err != nil {
		t.Fatal(err)
	}
	if h.BornMillis != 1_700_000_000_000 || h.BrokerName.Value != "broker-a" || h.Other.Get("AccessKey") != "rocketmq" {
		t.Errorf("%+v", h)
	}
	if tag, _ := FindProperty([]byte(h.Properties.Value), PropTags); string(tag) != "TagA" {
		t.Errorf("tag %q", tag)
	}
	c.Ext = EncodeFields(&h)
	if out, err := AppendFrame(nil, &c); err != nil || !bytes.Equal(out, frame) {
		t.Errorf("encoded %q (%v)", out, err)
	}
}

func TestReferenceTagHashes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{
		"": 0, "TagA": 2598919, "TagB": 2598920, "*": 42, "a": 97, "order": 106006350, "订单": 1129459, "😀": 1772899,
		"TAG_VIP_USER_1234567890": -1708457208,
	} {
		if got := TagHash(text); got != want {
			t.Errorf("TagHash(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestReferenceUniqueID(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	got, err := ParseUniqueID("7F00000104D218B4AAC2000027100001", now)
	want := UniqueID{
		Addr: netip.MustParseAddr("127.0.0.1"), PID: 1234, Loader: 0x18B4AAC2,
		Time: time.Date(2026, 11, 1, 0, 0, 10, 0, time.UTC), Counter: 1,
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	g := NewIDGenerator(want.Addr, int(want.PID), want.Loader)
	if id := g.Next(want.Time); id != "7F00000104D218B4AAC2000027100001" {
		t.Errorf("made %s", id)
	}
}

func TestReferencePropertyCRC(t *testing.T) {
	t.Parallel()
	if got, want := AppendPropertyCRC(nil, 2010220930), unhex(t, "5f5f435243333223013033393032323031303202"); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReferenceFingerprint(t *testing.T) {
	t.Parallel()
	const text = `{"clientID":"10.0.0.1@123#456","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"CG","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB","subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"TopicTest"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"PG"}],"withoutSub":false}`
	var h HeartbeatData
	if err := DecodeBody([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Fingerprint(); err != nil || got != 808946106 {
		t.Errorf("fingerprint %d, %v", got, err)
	}
	if out, err := EncodeBody(&h, Fastjson); err != nil || string(out) != text {
		t.Errorf("encoded %s (%v)", out, err)
	}
}

// TestReferenceCommitLogOffset takes the offset out of an offset id, as the end of a transaction needs it.
func TestReferenceCommitLogOffset(t *testing.T) {
	t.Parallel()
	host, offset, err := ParseOffsetID("0A00000500002A9F000000000001E240")
	if err != nil || offset != 123456 || host != netip.MustParseAddrPort("10.0.0.5:10911") {
		t.Errorf("%s %d %v", host, offset, err)
	}
}
