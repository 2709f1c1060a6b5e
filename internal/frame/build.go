package frame

import (
	"slices"
	"strings"
	"unsafe"
)

// Record is one record on its way into a Builder. What is zero costs nothing when no record of the batch uses it.
type Record struct {
	Topic, Broker, Tag      string
	QueueID                 uint32
	Offset                  uint64
	BornMillis, StoreMillis uint64
	Attempt                 uint32
	Strand                  uint32
	Trace                   []byte // TraceSize bytes, or empty
	ID, Keys                string
	Properties              []byte // RocketMQ's text form
	Body                    []byte
}

// Builder fills Records record by record. The zero Builder is ready; Reset keeps its memory, so a Builder that is used
// again allocates nothing per record. It is not safe for concurrent use.
type Builder struct {
	records Records
	index   map[string]uint32 // of records.Dict, for the entries that the last record did not have
	ids     []byte            // of borrowed records
}

// Records returns what was appended. It is valid until the next Append or Reset.
func (b *Builder) Records() *Records { return &b.records }

// Len returns how many records were appended.
func (b *Builder) Len() int { return b.records.Len() }

// PayloadSize returns the bytes of ids, keys, properties and bodies so far: what a limit on a batch's bytes counts.
func (b *Builder) PayloadSize() int { return b.records.payloadSize() }

// Reset empties the builder and keeps its memory.
func (b *Builder) Reset() {
	b.records.Reset()
	clear(b.index)
	b.ids = b.ids[:0]
}

// Append copies one record. Text that is not UTF-8 is repaired in topic, broker and tag, because the contract's strings
// are UTF-8; id, keys, properties and body are bytes and stay as they are.
func (b *Builder) Append(rec *Record) {
	b.columns(rec)
	r := &b.records
	p := r.Payload
	p = append(p, rec.ID...)
	idEnd := len(p)
	p = append(p, rec.Keys...)
	keysEnd := len(p)
	p = append(p, rec.Properties...)
	propertiesEnd := len(p)
	p = append(p, rec.Body...)
	r.End = append(r.End, uint32(idEnd), uint32(keysEnd), uint32(propertiesEnd), uint32(len(p)))
	r.Payload = p
}

// Borrow is Append that copies neither keys, properties nor body: they are the caller's until the next Reset and must not
// change before. So the payload is copied once, into the frame. One Builder takes either Append or Borrow between resets.
func (b *Builder) Borrow(rec *Record) {
	b.columns(rec)
	r := &b.records
	start := len(b.ids)
	b.ids = append(b.ids, rec.ID...)
	id, keys := b.ids[start:len(b.ids):len(b.ids)], unsafe.Slice(unsafe.StringData(rec.Keys), len(rec.Keys))
	r.Parts = append(r.Parts, id, keys, rec.Properties, rec.Body)
	end := uint32(0)
	if n := len(r.End); n > 0 {
		end = r.End[n-1]
	}
	for _, part := range r.Parts[len(r.Parts)-4:] {
		end += uint32(len(part))
		r.End = append(r.End, end)
	}
}

// columns appends what does not stand in the payload.
func (b *Builder) columns(rec *Record) {
	r := &b.records
	i := r.Len()
	if len(r.Dict) == 0 {
		r.Dict = append(r.Dict, "")
	}
	r.Topic = put(r.Topic, i, b.intern(rec.Topic, r.Topic))
	r.Broker = put(r.Broker, i, b.intern(rec.Broker, r.Broker))
	r.Tag = put(r.Tag, i, b.intern(rec.Tag, r.Tag))
	r.QueueID = put(r.QueueID, i, rec.QueueID)
	r.Offset = put(r.Offset, i, rec.Offset)
	r.BornMillis = put(r.BornMillis, i, rec.BornMillis)
	r.StoreMillis = put(r.StoreMillis, i, rec.StoreMillis)
	r.Attempt = put(r.Attempt, i, rec.Attempt)
	r.Strand = put(r.Strand, i, rec.Strand)
	if len(rec.Trace) == TraceSize || len(r.Trace) > 0 {
		r.Trace = extend(r.Trace, i*TraceSize)
		if len(rec.Trace) == TraceSize {
			r.Trace = append(r.Trace, rec.Trace...)
		} else {
			r.Trace = extend(r.Trace, (i+1)*TraceSize)
		}
	}
}

// intern returns the index of s in the dictionary. Neighbors mostly share topic, broker and tag, so the last entry of the
// column is tried before the map.
func (b *Builder) intern(s string, column []uint32) uint32 {
	if s == "" {
		return 0
	}
	r := &b.records
	if n := len(column); n > 0 && r.Dict[column[n-1]] == s {
		return column[n-1]
	}
	if i, ok := b.index[s]; ok {
		return i
	}
	i := uint32(len(r.Dict))
	r.Dict = append(r.Dict, strings.ToValidUTF8(s, "\uFFFD"))
	if b.index == nil {
		b.index = make(map[string]uint32)
	}
	b.index[s] = i
	return i
}

// put appends the value of record i to a column that may still be empty because all records before had zero.
func put[T uint32 | uint64](column []T, i int, v T) []T {
	if v == 0 && len(column) == 0 {
		return column
	}
	if missing := i - len(column); missing > 0 {
		column = slices.Grow(column, missing+1)[:i]
		clear(column[i-missing:])
	}
	return append(column, v)
}

// extend appends zeros up to n bytes.
func extend(b []byte, n int) []byte {
	if len(b) >= n {
		return b
	}
	old := len(b)
	b = slices.Grow(b, n-old)[:n]
	clear(b[old:])
	return b
}
