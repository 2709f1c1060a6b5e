package frame

import "fmt"

// Len returns the number of records.
func (r *Records) Len() int { return len(r.End) / 4 }

// Reset empties all columns and keeps their memory.
func (r *Records) Reset() {
	r.Dict = r.Dict[:0]
	r.Topic, r.Broker, r.Tag, r.QueueID = r.Topic[:0], r.Broker[:0], r.Tag[:0], r.QueueID[:0]
	r.Offset, r.BornMillis, r.StoreMillis = r.Offset[:0], r.BornMillis[:0], r.StoreMillis[:0]
	r.Attempt, r.Strand, r.End = r.Attempt[:0], r.Strand[:0], r.End[:0]
	r.Trace, r.Payload = r.Trace[:0], r.Payload[:0]
	clear(r.Parts) // what was borrowed is its owner's alone again
	r.Parts = r.Parts[:0]
}

// The accessors below want a valid index and columns that pass Validate. What they return aliases the columns.

// ID returns the message id of record i.
func (r *Records) ID(i int) []byte { return r.part(4 * i) }

// Keys returns the keys of record i, separated by spaces.
func (r *Records) Keys(i int) []byte { return r.part(4*i + 1) }

// Properties returns the properties of record i in RocketMQ's text form.
func (r *Records) Properties(i int) []byte { return r.part(4*i + 2) }

// Body returns the body of record i.
func (r *Records) Body(i int) []byte { return r.part(4*i + 3) }

// part returns the payload up to an end, from the end before; its capacity ends there too, so that an append copies.
func (r *Records) part(k int) []byte {
	if len(r.Parts) > 0 {
		return r.Parts[k]
	}
	start := uint32(0)
	if k > 0 {
		start = r.End[k-1]
	}
	return r.Payload[start:r.End[k]:r.End[k]]
}

// payloadSize is the length of Payload, or of what stands in place of it.
func (r *Records) payloadSize() int {
	if len(r.Parts) == 0 {
		return len(r.Payload)
	}
	return int(r.End[len(r.End)-1])
}

// PayloadSize returns the bytes of id, keys, properties and body of record i.
func (r *Records) PayloadSize(i int) int {
	if i == 0 {
		return int(r.End[3])
	}
	return int(r.End[4*i+3] - r.End[4*i-1])
}

// TopicOf returns the topic of record i, "" when it has none.
func (r *Records) TopicOf(i int) string { return r.word(r.Topic, i) }

// BrokerOf returns the broker name of record i.
func (r *Records) BrokerOf(i int) string { return r.word(r.Broker, i) }

// TagOf returns the tag of record i, "" when it has none.
func (r *Records) TagOf(i int) string { return r.word(r.Tag, i) }

func (r *Records) word(column []uint32, i int) string {
	if len(column) == 0 {
		return ""
	}
	return r.Dict[column[i]]
}

// QueueIDOf returns the queue id of record i.
func (r *Records) QueueIDOf(i int) uint32 { return At(r.QueueID, i) }

// OffsetOf returns the offset in the queue of record i.
func (r *Records) OffsetOf(i int) uint64 { return At(r.Offset, i) }

// BornMillisOf returns when the producer made record i, in milliseconds since 1970.
func (r *Records) BornMillisOf(i int) uint64 { return At(r.BornMillis, i) }

// StoreMillisOf returns when the broker stored record i, in milliseconds since 1970.
func (r *Records) StoreMillisOf(i int) uint64 { return At(r.StoreMillis, i) }

// AttemptOf returns the attempt of record i; the first is 1.
func (r *Records) AttemptOf(i int) uint32 { return At(r.Attempt, i) }

// TraceOf returns trace id, span id and flags of record i: TraceSize bytes, or nil.
func (r *Records) TraceOf(i int) []byte {
	if len(r.Trace) == 0 {
		return nil
	}
	return r.Trace[i*TraceSize : (i+1)*TraceSize : (i+1)*TraceSize]
}

// At returns entry i of a column, zero when the column is empty.
func At[T uint32 | uint64](column []T, i int) T {
	if len(column) == 0 {
		return 0
	}
	return column[i]
}

// AppendRange copies records from to to (exclusive) of src. The builder's own dictionary applies.
func (b *Builder) AppendRange(src *Records, from, to int) {
	for i := from; i < to; i++ {
		rec := src.Record(i)
		b.Append(&rec)
	}
}

// Record returns record i in parts; its byte slices alias the columns, its strings id and keys are copies.
func (r *Records) Record(i int) Record {
	return Record{
		Topic: r.TopicOf(i), Broker: r.BrokerOf(i), Tag: r.TagOf(i),
		QueueID: r.QueueIDOf(i), Offset: r.OffsetOf(i),
		BornMillis: r.BornMillisOf(i), StoreMillis: r.StoreMillisOf(i),
		Attempt: r.AttemptOf(i), Strand: At(r.Strand, i), Trace: r.TraceOf(i),
		ID: string(r.ID(i)), Keys: string(r.Keys(i)), Properties: r.Properties(i), Body: r.Body(i),
	}
}

// Slice makes dst a view of records from to to (exclusive). All columns alias r except End, whose memory dst keeps.
func (r *Records) Slice(dst *Records, from, to int) {
	end := dst.End[:0]
	start := uint32(0)
	if from > 0 {
		start = r.End[4*from-1]
	}
	for _, e := range r.End[4*from : 4*to] {
		end = append(end, e-start)
	}
	stop := start
	if len(end) > 0 {
		stop += end[len(end)-1]
	}
	var payload []byte
	if len(r.Parts) == 0 {
		payload = r.Payload[start:stop:stop]
	}
	*dst = Records{
		Dict:  r.Dict,
		Topic: cut(r.Topic, from, to), Broker: cut(r.Broker, from, to), Tag: cut(r.Tag, from, to),
		QueueID: cut(r.QueueID, from, to), Offset: cut(r.Offset, from, to),
		BornMillis: cut(r.BornMillis, from, to), StoreMillis: cut(r.StoreMillis, from, to),
		Attempt: cut(r.Attempt, from, to), Strand: cut(r.Strand, from, to),
		Trace: cut(r.Trace, from*TraceSize, to*TraceSize), End: end, Payload: payload, Parts: cut(r.Parts, 4*from, 4*to),
	}
}

func cut[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return nil
	}
	return column[from:to:to]
}

// Validate checks columns that another process wrote: after it, no accessor can go out of range. The error names the
// column.
func (r *Records) Validate() error {
	n := len(r.End) / 4
	if len(r.End)%4 != 0 {
		return fmt.Errorf("column end has %d entries, which is not four a record", len(r.End))
	}
	for _, c := range [...]struct {
		name    string
		entries int
	}{
		{"topic", len(r.Topic)},
		{"broker", len(r.Broker)},
		{"tag", len(r.Tag)},
		{"queue_id", len(r.QueueID)},
		{"offset", len(r.Offset)},
		{"born_ms", len(r.BornMillis)},
		{"store_ms", len(r.StoreMillis)},
		{"attempt", len(r.Attempt)},
		{"strand", len(r.Strand)},
	} {
		if c.entries != 0 && c.entries != n {
			return fmt.Errorf("column %s has %d entries for %d records", c.name, c.entries, n)
		}
	}
	if len(r.Trace) != 0 && len(r.Trace) != n*TraceSize {
		return fmt.Errorf("column trace has %d bytes for %d records of %d bytes", len(r.Trace), n, TraceSize)
	}
	last := uint32(0)
	for i, e := range r.End {
		if e < last {
			return fmt.Errorf("column end goes back from %d to %d at record %d", last, e, i/4)
		}
		last = e
	}
	if len(r.Parts) == 0 && int(last) != len(r.Payload) {
		return fmt.Errorf("column end stops at %d in a payload of %d bytes", last, len(r.Payload))
	}
	return r.validateWords()
}

func (r *Records) validateWords() error {
	for _, c := range [...]struct {
		name   string
		column []uint32
	}{{"topic", r.Topic}, {"broker", r.Broker}, {"tag", r.Tag}} {
		for i, word := range c.column {
			if int(word) >= len(r.Dict) {
				return fmt.Errorf("column %s names entry %d of a dictionary of %d at record %d", c.name, word, len(r.Dict), i)
			}
		}
	}
	return nil
}
