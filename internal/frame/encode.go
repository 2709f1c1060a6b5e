package frame

import (
	"encoding/binary"
	"math/bits"
)

// Numbers of the fields of HostFrame and PluginFrame that are written and read here without generated code. The others
// are rare; the border's gRPC codec leaves them to the generated code.
const (
	HostBatch     = 2
	HostCancel    = 3
	HostCredit    = 4
	PluginCredit  = 2
	PluginStarted = 3
	PluginResults = 4
)

// Wire types of protobuf.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wireGroup  = 3
	wireEnd    = 4
	wire32     = 5
)

// Fields of Records.
const (
	fieldDict = iota + 1
	fieldTopic
	fieldBroker
	fieldTag
	fieldQueueID
	fieldOffset
	fieldBorn
	fieldStore
	fieldAttempt
	fieldStrand
	fieldEnd
	fieldTrace
	fieldPayload
)

func varintSize(v uint64) int { return (9*bits.Len64(v) + 64) / 64 }

// sizeBytes is the size of a length-delimited field with a number below 16, 0 when it is empty and so left out.
func sizeBytes(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + varintSize(uint64(n)) + n
}

func sizeUint(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + varintSize(v)
}

func sizeColumn[T uint32 | uint64](column []T) int {
	n := 0
	for _, v := range column {
		n += varintSize(uint64(v))
	}
	return n
}

// appendVarint is inlined for the small numbers that most columns hold.
func appendVarint(dst []byte, v uint64) []byte {
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return binary.AppendUvarint(dst, v)
}

func appendHead(dst []byte, field, n int) []byte {
	return appendVarint(append(dst, byte(field<<3|wireBytes)), uint64(n))
}

func appendUint(dst []byte, field int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return appendVarint(append(dst, byte(field<<3|wireVarint)), v)
}

func appendBytes[T string | []byte](dst []byte, field int, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	return append(appendHead(dst, field, len(v)), v...)
}

func appendColumn[T uint32 | uint64](dst []byte, field, size int, column []T) []byte {
	if len(column) == 0 {
		return dst
	}
	dst = appendHead(dst, field, size)
	for _, v := range column {
		dst = appendVarint(dst, uint64(v))
	}
	return dst
}

func appendFixed64(dst []byte, field int, column []uint64) []byte {
	if len(column) == 0 {
		return dst
	}
	dst = appendHead(dst, field, 8*len(column))
	for _, v := range column {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

func appendFixed32(dst []byte, field int, column []uint32) []byte {
	if len(column) == 0 {
		return dst
	}
	dst = appendHead(dst, field, 4*len(column))
	for _, v := range column {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

// recordsSize holds what was counted once, so that a frame is written in one pass into a buffer of the right size.
type recordsSize struct {
	topic, broker, tag, queueID, offset, attempt, strand int
	total                                                int
}

func (r *Records) size() (s recordsSize) {
	for _, word := range r.Dict {
		s.total += 1 + varintSize(uint64(len(word))) + len(word)
	}
	s.topic, s.broker, s.tag = sizeColumn(r.Topic), sizeColumn(r.Broker), sizeColumn(r.Tag)
	s.queueID, s.offset = sizeColumn(r.QueueID), sizeColumn(r.Offset)
	s.attempt, s.strand = sizeColumn(r.Attempt), sizeColumn(r.Strand)
	s.total += sizeBytes(s.topic) + sizeBytes(s.broker) + sizeBytes(s.tag) + sizeBytes(s.queueID) + sizeBytes(s.offset) +
		sizeBytes(s.attempt) + sizeBytes(s.strand) + sizeBytes(8*len(r.BornMillis)) + sizeBytes(8*len(r.StoreMillis)) +
		sizeBytes(4*len(r.End)) + sizeBytes(len(r.Trace)) + sizeBytes(r.payloadSize())
	return s
}

func (r *Records) append(dst []byte, s *recordsSize) []byte {
	for _, word := range r.Dict {
		dst = append(appendHead(dst, fieldDict, len(word)), word...)
	}
	dst = appendColumn(dst, fieldTopic, s.topic, r.Topic)
	dst = appendColumn(dst, fieldBroker, s.broker, r.Broker)
	dst = appendColumn(dst, fieldTag, s.tag, r.Tag)
	dst = appendColumn(dst, fieldQueueID, s.queueID, r.QueueID)
	dst = appendColumn(dst, fieldOffset, s.offset, r.Offset)
	dst = appendFixed64(dst, fieldBorn, r.BornMillis)
	dst = appendFixed64(dst, fieldStore, r.StoreMillis)
	dst = appendColumn(dst, fieldAttempt, s.attempt, r.Attempt)
	dst = appendColumn(dst, fieldStrand, s.strand, r.Strand)
	dst = appendFixed32(dst, fieldEnd, r.End)
	dst = appendBytes(dst, fieldTrace, r.Trace)
	if len(r.Parts) == 0 {
		return appendBytes(dst, fieldPayload, r.Payload)
	}
	if n := r.payloadSize(); n > 0 {
		dst = appendHead(dst, fieldPayload, n)
	}
	for _, part := range r.Parts {
		dst = append(dst, part...)
	}
	return dst
}

// grow returns dst with room for n more bytes.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

// BatchEncoder writes one batch as a HostFrame. It counts first, so that the caller can bring a buffer of the right size.
type BatchEncoder struct {
	batch         *Batch
	records       recordsSize
	budget        uint64
	inner, Length int // Length is the size of the whole frame
}

// EncodeBatch counts a batch.
func EncodeBatch(b *Batch) BatchEncoder {
	e := BatchEncoder{batch: b, records: b.Records.size(), budget: uint64(max(0, b.Budget.Milliseconds()))}
	e.inner = sizeUint(b.Seq) + 1 + varintSize(uint64(e.records.total)) + e.records.total + sizeUint(e.budget)
	e.Length = 1 + varintSize(uint64(e.inner)) + e.inner
	return e
}

// Size returns the length of the frame in bytes.
func (e *BatchEncoder) Size() int { return e.Length }

// Append writes the frame.
func (e *BatchEncoder) Append(dst []byte) []byte {
	dst = appendHead(grow(dst, e.Length), HostBatch, e.inner)
	dst = appendUint(dst, 1, e.batch.Seq)
	// The budget goes before the records, so that the payload is the end of the frame. Any order is valid protobuf.
	dst = appendUint(dst, 3, e.budget)
	dst = appendHead(dst, 2, e.records.total)
	return e.batch.Records.append(dst, &e.records)
}

// AppendCancel writes a HostFrame that cancels records of a batch; no index means the whole batch.
func AppendCancel(dst []byte, seq uint64, index []uint32) []byte {
	column := sizeColumn(index)
	dst = appendHead(dst, HostCancel, sizeUint(seq)+sizeBytes(column))
	return appendColumn(appendUint(dst, 1, seq), 2, column, index)
}

// AppendHostCredit writes a HostFrame that grants bytes of outputs.
func AppendHostCredit(dst []byte, n uint64) []byte {
	return appendUint(appendHead(dst, HostCredit, sizeUint(n)), 1, n)
}

// AppendPluginCredit writes a PluginFrame that grants records.
func AppendPluginCredit(dst []byte, n uint64) []byte {
	return appendUint(appendHead(dst, PluginCredit, sizeUint(n)), 1, n)
}

// AppendStarted writes a PluginFrame that says that a record runs for longer than a second.
func AppendStarted(dst []byte, ref Ref) []byte {
	dst = appendHead(dst, PluginStarted, sizeUint(ref.Seq)+sizeUint(uint64(ref.Index)))
	return appendUint(appendUint(dst, 1, ref.Seq), 2, uint64(ref.Index))
}
