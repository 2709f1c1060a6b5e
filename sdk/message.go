package sdk

import (
	"bytes"
	"iter"
	"strings"
	"time"
)

// Source is the batch that messages are read from; i is the message's place in it. serve and sdktest bring one, authors
// never see it. All methods may be called concurrently, and what they return never changes.
type Source interface {
	ID(i int) []byte
	Keys(i int) []byte
	Properties(i int) []byte // RocketMQ's text form: name U+0001 value U+0002 ...
	Body(i int) []byte
	TopicOf(i int) string
	BrokerOf(i int) string
	TagOf(i int) string
	QueueIDOf(i int) uint32
	OffsetOf(i int) uint64
	BornMillisOf(i int) uint64
	StoreMillisOf(i int) uint64
	AttemptOf(i int) uint32
	TraceOf(i int) []byte // trace id (16), span id (8), flags (1), or nil
}

// Message is one delivery of one message. Its accessors may be used concurrently and after the handler has returned;
// Emit may not.
type Message struct {
	source  Source
	index   int
	outputs []Output
}

// NewMessages returns the first n messages of a batch. It is for serve and sdktest.
func NewMessages(source Source, n int) []Message {
	messages := make([]Message, n)
	for i := range messages {
		messages[i] = Message{source: source, index: i}
	}
	return messages
}

// ID identifies the message over all its attempts: what to use against handling it twice.
func (m *Message) ID() string { return string(m.source.ID(m.index)) }

// Topic is the topic that the message was sent to, also when it comes back from a retry topic.
func (m *Message) Topic() string { return m.source.TopicOf(m.index) }

// Tag is the message's tag, "" when it has none.
func (m *Message) Tag() string { return m.source.TagOf(m.index) }

// Keys are the keys that the producer gave for lookup.
func (m *Message) Keys() []string { return strings.Fields(string(m.source.Keys(m.index))) }

// Body is the content. It must not be changed; it stays valid after the handler has returned.
func (m *Message) Body() []byte { return m.source.Body(m.index) }

// Attempt counts deliveries of the message to a handler; the first is 1.
func (m *Message) Attempt() int { return int(m.source.AttemptOf(m.index)) }

// BornAt is when the producer made the message, by its clock. The zero time when unknown.
func (m *Message) BornAt() time.Time { return at(m.source.BornMillisOf(m.index)) }

// StoredAt is when the broker stored the message, by its clock. The zero time when unknown.
func (m *Message) StoredAt() time.Time { return at(m.source.StoreMillisOf(m.index)) }

func at(millis uint64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(millis))
}

// Queue is the queue that the message was read from. For a retry this is a queue of the group's retry topic, while Topic
// stays the original one only if the host restored it; use Topic and Tag for routing, not the queue.
func (m *Message) Queue() Queue {
	return Queue{Topic: m.Topic(), Broker: m.source.BrokerOf(m.index), ID: int32(m.source.QueueIDOf(m.index))}
}

// Offset is the message's place in its queue.
func (m *Message) Offset() int64 { return int64(m.source.OffsetOf(m.index)) }

// Separators of RocketMQ's text form of properties (MessageDecoder.NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR).
const (
	nameEnd  = '\x01'
	valueEnd = '\x02'
)

// Property returns a property by name; ok is false when the message does not have it.
func (m *Message) Property(name string) (value string, ok bool) {
	for n, v := range properties(m.source.Properties(m.index)) {
		if string(n) == name {
			return string(v), true
		}
	}
	return "", false
}

// Properties returns all properties, the system's own included.
func (m *Message) Properties() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for n, v := range properties(m.source.Properties(m.index)) {
			if !yield(string(n), string(v)) {
				return
			}
		}
	}
}

func properties(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for len(text) > 0 {
			var pair []byte
			pair, text, _ = bytes.Cut(text, []byte{valueEnd})
			if name, value, ok := bytes.Cut(pair, []byte{nameEnd}); ok && !yield(name, value) {
				return
			}
		}
	}
}

// TraceContext is the W3C trace context of this attempt.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte // 1 = sampled
}

// TraceContext returns the span of this attempt in the host; ok is false when the host traces nothing. The context that
// the handler gets carries the same.
func (m *Message) TraceContext() (tc TraceContext, ok bool) {
	raw := m.source.TraceOf(m.index)
	if len(raw) != 25 || len(bytes.TrimLeft(raw[:16], "\x00")) == 0 {
		return tc, false
	}
	copy(tc.TraceID[:], raw)
	copy(tc.SpanID[:], raw[16:])
	tc.Flags = raw[24]
	return tc, true
}

// Output is a message that a handler emits.
type Output struct {
	Topic       string // "" = the stream's outputs.topic
	Tag         string
	Keys        []string
	Body        []byte
	Properties  map[string]string
	Delay       time.Duration // deliver not before; 0 = at once
	ShardingKey string        // outputs with the same key go to the same queue
}

// Emit adds an output. It counts only if the message is acknowledged, and it is stored before that message is settled.
// The output must not be changed afterwards. Emit must not be called concurrently for one message, nor after done.
func (m *Message) Emit(o Output) { m.outputs = append(m.outputs, o) }

// Outputs returns what was emitted.
func (m *Message) Outputs() []Output { return m.outputs }
