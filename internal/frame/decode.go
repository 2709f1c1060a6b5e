package frame

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// slack is what a message may allocate beyond twice its size: small numbers take more room in memory than on the wire, and
// a short frame of many small numbers is nothing to refuse.
const slack = 4 << 10

// stringHeader is what one entry of a []string takes beside its bytes.
const stringHeader = 16

var (
	errTwice = errors.New("records appear twice in one frame")
	errUTF8  = errors.New("text is not UTF-8")
)

// DecodeBatch reads the Batch message of a HostFrame. Trace and Payload alias data; what else is allocated is bounded by
// twice the size of data. The columns are valid afterwards.
func DecodeBatch(data []byte, b *Batch) error {
	*b = Batch{}
	var records []byte
	budget := uint64(0)
	for rest := data; len(rest) > 0; {
		f, after, err := next(rest)
		if err != nil {
			return fmt.Errorf("reading a batch: %w", err)
		}
		rest = after
		switch {
		case f.number == 1 && f.wire == wireVarint:
			b.Seq = f.value
		case f.number == 3 && f.wire == wireVarint:
			budget = f.value
		case f.number == 2 && f.wire == wireBytes:
			if records != nil {
				return fmt.Errorf("reading batch %d: %w", b.Seq, errTwice)
			}
			records = f.bytes
		}
	}
	b.Budget = duration(budget)
	if err := decodeRecords(records, &b.Records, 2*len(data)+slack); err != nil {
		return fmt.Errorf("reading batch %d: %w", b.Seq, err)
	}
	if n := b.Records.Len(); n > MaxBatchRecords {
		return fmt.Errorf("reading batch %d: it has %d records, more than %d", b.Seq, n, MaxBatchRecords)
	}
	return nil
}

// counts is what the first pass over Records found.
type counts struct {
	dict, dictBytes int
	columns         [fieldEnd + 1]int
}

// kind returns the wire type of a column's single entries.
func kind(number int) int {
	switch number {
	case fieldBorn, fieldStore:
		return wire64
	case fieldEnd:
		return wire32
	default:
		return wireVarint
	}
}

// wide tells which columns hold 64 bits.
func wide(number int) bool {
	return number == fieldOffset || number == fieldBorn || number == fieldStore
}

func countRecords(data []byte, c *counts) error {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		switch {
		case f.number == fieldDict && f.wire == wireBytes:
			c.dict++
			c.dictBytes += len(f.bytes)
		case f.number >= fieldTopic && f.number <= fieldEnd:
			n, err := f.entries(kind(f.number))
			if err != nil {
				return fmt.Errorf("column %s: %w", columnName(f.number), err)
			}
			c.columns[f.number] += n
		}
	}
	return nil
}

func columnName(number int) string {
	return [...]string{
		"", "dict", "topic", "broker", "tag", "queue_id", "offset", "born_ms", "store_ms", "attempt", "strand",
		"end", "trace", "payload",
	}[number]
}

// decodeRecords reads Records in two passes: count, then fill memory of the right size, at most budget bytes of it.
func decodeRecords(data []byte, r *Records, budget int) error {
	var c counts
	if err := countRecords(data, &c); err != nil {
		return err
	}
	narrow, broad := 0, 0
	for number, n := range c.columns {
		if wide(number) {
			broad += n
		} else {
			narrow += n
		}
	}
	if need := 4*narrow + 8*broad + stringHeader*c.dict + c.dictBytes; need > budget {
		return fmt.Errorf("columns need %d bytes of memory, more than twice what arrived", need)
	}
	allocateColumns(r, &c, narrow, broad)
	if err := fillRecords(data, r, c.dictBytes); err != nil {
		return err
	}
	return r.Validate()
}

// allocateColumns gives every column its part of one allocation for each width.
func allocateColumns(r *Records, c *counts, narrow, broad int) {
	if c.dict > 0 {
		r.Dict = make([]string, 0, c.dict)
	}
	words, longs := make([]uint32, narrow), make([]uint64, broad)
	for number := fieldTopic; number <= fieldEnd; number++ {
		n := c.columns[number]
		if n == 0 {
			continue
		}
		if column := r.wideColumn(number); column != nil {
			*column, longs = longs[:0:n], longs[n:]
		} else if column := r.column(number); column != nil {
			*column, words = words[:0:n], words[n:]
		}
	}
}

func (r *Records) column(number int) *[]uint32 {
	switch number {
	case fieldTopic:
		return &r.Topic
	case fieldBroker:
		return &r.Broker
	case fieldTag:
		return &r.Tag
	case fieldQueueID:
		return &r.QueueID
	case fieldAttempt:
		return &r.Attempt
	case fieldStrand:
		return &r.Strand
	case fieldEnd:
		return &r.End
	default:
		return nil
	}
}

func (r *Records) wideColumn(number int) *[]uint64 {
	switch number {
	case fieldOffset:
		return &r.Offset
	case fieldBorn:
		return &r.BornMillis
	case fieldStore:
		return &r.StoreMillis
	default:
		return nil
	}
}

func fillRecords(data []byte, r *Records, dictBytes int) error {
	var text strings.Builder // the words of the dictionary are slices of one string
	text.Grow(dictBytes)
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		switch {
		case f.number == fieldDict && f.wire == wireBytes:
			if !utf8.Valid(f.bytes) {
				return fmt.Errorf("column dict: %w", errUTF8)
			}
			start := text.Len()
			text.Write(f.bytes)
			r.Dict = append(r.Dict, text.String()[start:])
		case f.number == fieldTrace && f.wire == wireBytes:
			r.Trace = f.bytes
		case f.number == fieldPayload && f.wire == wireBytes:
			r.Payload = f.bytes
		case f.number >= fieldTopic && f.number <= fieldEnd:
			if column := r.wideColumn(f.number); column != nil {
				*column, err = appendEntries(*column, &f, kind(f.number))
			} else {
				column := r.column(f.number)
				*column, err = appendEntries(*column, &f, kind(f.number))
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", columnName(f.number), err)
			}
		}
	}
	return nil
}

// DecodeNumber reads the only number of a Credit message.
func DecodeNumber(data []byte) (n uint64, err error) {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return 0, fmt.Errorf("reading a credit: %w", err)
		}
		data = rest
		if f.number == 1 && f.wire == wireVarint {
			n = f.value
		}
	}
	return n, nil
}

// DecodeStarted reads a Started message.
func DecodeStarted(data []byte) (ref Ref, err error) {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return Ref{}, fmt.Errorf("reading a start: %w", err)
		}
		data = rest
		switch {
		case f.number == 1 && f.wire == wireVarint:
			ref.Seq = f.value
		case f.number == 2 && f.wire == wireVarint:
			ref.Index = uint32(f.value)
		}
	}
	return ref, nil
}

// DecodeCancel reads a Cancel message.
func DecodeCancel(data []byte) (seq uint64, index []uint32, err error) {
	for rest := data; len(rest) > 0; {
		f, after, err := next(rest)
		if err != nil {
			return 0, nil, fmt.Errorf("reading a cancellation: %w", err)
		}
		rest = after
		switch {
		case f.number == 1 && f.wire == wireVarint:
			seq = f.value
		case f.number == 2:
			n, err := f.entries(wireVarint)
			if err != nil {
				return 0, nil, fmt.Errorf("reading a cancellation: %w", err)
			}
			if n > MaxBatchRecords {
				return 0, nil, fmt.Errorf("reading a cancellation: it names %d records", n)
			}
			if index, err = appendEntries(index, &f, wireVarint); err != nil {
				return 0, nil, fmt.Errorf("reading a cancellation: %w", err)
			}
		}
	}
	return seq, index, nil
}
