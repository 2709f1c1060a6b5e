package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// benchMessage is a message as a Java producer of a 1 KiB body makes it.
func benchMessage(offset int64) *Message {
	body := []byte(strings.Repeat("0123456789abcdef", 64))
	properties := fmt.Sprintf("KEYS\x01order-%d\x02UNIQ_KEY\x017F00000104D218B4AAC200002710%04X\x02CLUSTER\x01DefaultCluster\x02WAIT\x01true\x02TAGS\x01TagA\x02TRACE_ON\x01true\x02MSG_REGION\x01DefaultRegion\x02", offset, offset)
	return &Message{
		BodyCRC:     BodyCRC(body),
		QueueID:     3,
		QueueOffset: offset,
		LogOffset:   offset * 1300,
		BornMillis:  1_700_000_000_000,
		BornHost:    netip.MustParseAddrPort("192.168.1.10:50123"),
		StoreMillis: 1_700_000_000_123,
		StoreHost:   netip.MustParseAddrPort("10.0.0.5:10911"),
		Body:        body,
		Topic:       []byte("TopicTest"),
		Properties:  []byte(properties),
	}
}

// benchPullResponse is the frame of a pull answer with n messages as a 5.3.3 broker sends it.
func benchPullResponse(tb testing.TB, n int, e Encoding) []byte {
	tb.Helper()
	c := &Command{
		Language: LanguageJava, Version: int32(Version5_3_3), Opaque: 123456, Flag: FlagResponse, Remark: "FOUND", Encoding: e,
		Ext: Fields{
			{"suggestWhichBrokerId", "0"},
			{"groupSysFlag", "0"},
			{"nextBeginOffset", "1000032"},
			{"maxOffset", "2000000"},
			{"minOffset", "0"},
			{"topicSysFlag", "0"},
		},
	}
	for i := range n {
		var err error
		if c.Body, err = benchMessage(int64(1_000_000 + i)).Append(c.Body); err != nil {
			tb.Fatal(err)
		}
	}
	frame, err := AppendFrame(nil, c)
	if err != nil {
		tb.Fatal(err)
	}
	return frame
}

// BenchmarkPullResponse is all that wire does for one pull of 32 messages: header, typed fields, and a walk over the messages
// with the properties that the engine reads.
func BenchmarkPullResponse(b *testing.B) {
	for _, e := range []Encoding{EncodingJSON, EncodingBinary} {
		b.Run(e.String(), func(b *testing.B) {
			frame := benchPullResponse(b, 32, e)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			var c Command
			for b.Loop() {
				if err := c.Decode(frame[PrefixSize:]); err != nil {
					b.Fatal(err)
				}
				var h PullResponse
				if err := DecodeFields(c.Ext, &h); err != nil {
					b.Fatal(err)
				}
				if n := walk(b, c.Body, true); n != 32 {
					b.Fatal(n)
				}
			}
		})
	}
}

func walk(b *testing.B, body []byte, properties bool) int {
	b.Helper()
	n := 0
	var m Message
	for len(body) > 0 {
		size, err := m.Decode(body)
		if err != nil {
			b.Fatal(err)
		}
		if properties {
			if _, ok := m.Property(PropTags); !ok {
				b.Fatal("no tag")
			}
		}
		body = body[size:]
		n++
	}
	return n
}

func BenchmarkDecodeHeader(b *testing.B) {
	frame := benchPullResponse(b, 0, EncodingJSON)
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		var c Command
		for b.Loop() {
			if err := c.Decode(frame[PrefixSize:]); err != nil {
				b.Fatal(err)
			}
		}
	})
	// What the own reader is measured against, and the reason why it exists.
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var h struct {
				Code, Flag, Opaque, Version int32
				Language, Remark            string
				ExtFields                   map[string]string
			}
			if err := json.Unmarshal(frame[PrefixSize+headerMark:], &h); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeFields(b *testing.B) {
	var c Command
	if err := c.Decode(benchPullResponse(b, 0, EncodingJSON)[PrefixSize:]); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var h PullResponse
		if err := DecodeFields(c.Ext, &h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	frame := benchPullResponse(b, 32, EncodingJSON)
	var c Command
	if err := c.Decode(frame[PrefixSize:]); err != nil {
		b.Fatal(err)
	}
	for _, properties := range []bool{false, true} {
		b.Run(fmt.Sprintf("tag=%t", properties), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				walk(b, c.Body, properties)
			}
		})
	}
}

func BenchmarkFindProperties(b *testing.B) {
	m := benchMessage(1)
	names := []string{PropTags, PropKeys, PropUniqueKey, PropOriginMessageID, "traceparent", PropShardingKey}
	b.Run("one_pass", func(b *testing.B) {
		b.ReportAllocs()
		values := make([][]byte, len(names))
		for b.Loop() {
			FindProperties(m.Properties, names, values)
		}
	})
	b.Run("one_by_one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, name := range names {
				FindProperty(m.Properties, name)
			}
		}
	})
}

func BenchmarkEncodePullRequest(b *testing.B) {
	for _, e := range []Encoding{EncodingJSON, EncodingBinary} {
		b.Run(e.String(), func(b *testing.B) {
			h := PullRequest{
				Group: "CG_demo", Topic: "TopicTest", QueueID: 2, Offset: 1_000_000, MaxMessages: 32, SysFlag: 7, SuspendMillis: 15000,
				Subscription: Some("TagA || TagB"), SubscriptionMillis: 1_700_000_000_000, ExpressionType: Some(ExpressionTag),
				Common: Common{BrokerName: Some("broker-a")},
			}
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				c := NewRequest(&h, nil)
				c.Encoding = e
				var err error
				if out, err = AppendFrame(out[:0], c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	m := benchMessage(1)
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		var err error
		if out, err = m.Append(out[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
