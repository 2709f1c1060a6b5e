package queue

import (
	"bytes"
	"math"
)

// Properties are a message's property text and where in it those stand that the engine reads.
type Properties struct {
	Text []byte // RocketMQ's text form; aliases the message

	tags, keys, uniqKey, retryTopic, originID, shardingKey, traceParent span
}

// span is a part of the text, which has at most 32,767 bytes on the wire; empty = not there.
type span struct{ from, to uint16 }

func (p *Properties) of(s span) []byte { return p.Text[s.from:s.to:s.to] }

// Tags is the message's tag; each of these is empty when the message has no such property, and aliases the text.
func (p *Properties) Tags() []byte { return p.of(p.tags) }

// Keys are the producer's keys, separated by spaces.
func (p *Properties) Keys() []byte { return p.of(p.keys) }

func (p *Properties) keysSize() int { return int(p.keys.to - p.keys.from) }

// UniqKey is the producer's id of the message.
func (p *Properties) UniqKey() []byte { return p.of(p.uniqKey) }

// RetryTopic is the topic that a message of a retry topic came from.
func (p *Properties) RetryTopic() []byte { return p.of(p.retryTopic) }

// OriginID is the id of the first copy of a message that was stored again.
func (p *Properties) OriginID() []byte { return p.of(p.originID) }

// ShardingKey is what the producer chose the queue by.
func (p *Properties) ShardingKey() []byte { return p.of(p.shardingKey) }

// TraceParent is the W3C trace context.
func (p *Properties) TraceParent() []byte { return p.of(p.traceParent) }

// The separators of RocketMQ's property text (MessageDecoder).
const (
	nameEnd  = 1
	valueEnd = 2
)

// ScanProperties reads a property text in one pass. The last of several equal names wins, as in Java; a pair without a
// separator is passed over, as is the missing last separator of 4.9 brokers. Of a text longer than any stored one it reads
// nothing.
func ScanProperties(text []byte) Properties {
	p := Properties{Text: text}
	if len(text) > math.MaxUint16 {
		return p
	}
	for from := 0; from < len(text); {
		end := bytes.IndexByte(text[from:], valueEnd)
		if end < 0 {
			end = len(text) - from
		}
		if mid := bytes.IndexByte(text[from:from+end], nameEnd); mid >= 0 {
			if at := p.place(text[from : from+mid]); at != nil {
				*at = span{uint16(from + mid + 1), uint16(from + end)} //nolint:gosec // bounded above
			}
		}
		from += end + 1
	}
	return p
}

// place is where the property of a name is kept; nil when the engine does not read it.
func (p *Properties) place(name []byte) *span {
	switch string(name) {
	case "TAGS":
		return &p.tags
	case "KEYS":
		return &p.keys
	case "UNIQ_KEY":
		return &p.uniqKey
	case "RETRY_TOPIC":
		return &p.retryTopic
	case "ORIGIN_MESSAGE_ID":
		return &p.originID
	case "__SHARDINGKEY":
		return &p.shardingKey
	case "traceparent":
		return &p.traceParent
	}
	return nil
}
