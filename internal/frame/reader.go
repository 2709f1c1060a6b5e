package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errTruncated says that a message ends inside a field.
var errTruncated = errors.New("message ends inside a field")

// errVarint says that a number does not fit 64 bits.
var errVarint = errors.New("number longer than 64 bits")

const (
	maxField  = 1<<29 - 1
	maxNested = 100 // groups inside groups, which only unknown fields can have
)

// field is one field of a protobuf message as it arrived.
type field struct {
	number int
	wire   int
	value  uint64 // varint, fixed32, fixed64
	bytes  []byte // length-delimited; aliases the input
}

// next splits the first field off b.
func next(b []byte) (f field, rest []byte, err error) {
	tag, rest, err := takeVarint(b)
	if err != nil {
		return f, nil, err
	}
	if tag>>3 == 0 || tag>>3 > maxField {
		return f, nil, fmt.Errorf("field number %d is out of range", tag>>3)
	}
	f.number, f.wire = int(tag>>3), int(tag&7)
	switch f.wire {
	case wireVarint:
		f.value, rest, err = takeVarint(rest)
	case wire64:
		if len(rest) < 8 {
			return f, nil, errTruncated
		}
		f.value, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	case wire32:
		if len(rest) < 4 {
			return f, nil, errTruncated
		}
		f.value, rest = uint64(binary.LittleEndian.Uint32(rest)), rest[4:]
	case wireBytes:
		var n uint64
		if n, rest, err = takeVarint(rest); err == nil {
			if n > uint64(len(rest)) {
				return f, nil, errTruncated
			}
			f.bytes, rest = rest[:n:n], rest[n:]
		}
	case wireGroup:
		rest, err = skipGroup(rest, f.number, maxNested)
	default:
		err = fmt.Errorf("field %d has wire type %d, which does not exist or has no start", f.number, f.wire)
	}
	return f, rest, err
}

// skipGroup skips to the end of an unknown group.
func skipGroup(b []byte, number, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, errors.New("groups are nested too deeply")
	}
	for {
		tag, rest, err := takeVarint(b)
		if err != nil {
			return nil, err
		}
		if tag&7 == wireEnd {
			if tag>>3 != uint64(number) {
				return nil, fmt.Errorf("group %d ends as group %d", number, tag>>3)
			}
			return rest, nil
		}
		if tag&7 == wireGroup {
			if tag>>3 == 0 || tag>>3 > maxField {
				return nil, fmt.Errorf("field number %d is out of range", tag>>3)
			}
			b, err = skipGroup(rest, int(tag>>3), depth-1)
		} else {
			_, b, err = next(b)
		}
		if err != nil {
			return nil, err
		}
	}
}

func takeVarint(b []byte) (uint64, []byte, error) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], nil
	}
	v, n := binary.Uvarint(b)
	switch {
	case n > 0:
		return v, b[n:], nil
	case n < 0:
		return 0, nil, errVarint
	default:
		return 0, nil, errTruncated
	}
}

// entries counts what a field adds to a repeated column of numbers; packed wire is the one of single entries.
// A field with another wire type is unknown and adds nothing, as in generated code.
func (f *field) entries(single int) (int, error) {
	if f.wire == single {
		return 1, nil
	}
	if f.wire != wireBytes {
		return 0, nil
	}
	switch single {
	case wire32:
		if len(f.bytes)%4 != 0 {
			return 0, errTruncated
		}
		return len(f.bytes) / 4, nil
	case wire64:
		if len(f.bytes)%8 != 0 {
			return 0, errTruncated
		}
		return len(f.bytes) / 8, nil
	}
	n := 0
	for _, c := range f.bytes {
		if c < 0x80 {
			n++
		}
	}
	if len(f.bytes) > 0 && f.bytes[len(f.bytes)-1] >= 0x80 {
		return 0, errTruncated
	}
	return n, nil
}

// appendEntries appends what entries counted; column has the capacity.
func appendEntries[T uint32 | uint64](column []T, f *field, single int) ([]T, error) {
	if f.wire == single {
		return append(column, T(f.value)), nil
	}
	if f.wire != wireBytes {
		return column, nil
	}
	b := f.bytes
	switch single {
	case wire32:
		for ; len(b) >= 4; b = b[4:] {
			column = append(column, T(binary.LittleEndian.Uint32(b)))
		}
		return column, nil
	case wire64:
		for ; len(b) >= 8; b = b[8:] {
			column = append(column, T(binary.LittleEndian.Uint64(b)))
		}
		return column, nil
	}
	for len(b) > 0 {
		if b[0] < 0x80 {
			column, b = append(column, T(b[0])), b[1:]
			continue
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errVarint
		}
		column, b = append(column, T(v)), b[n:]
	}
	return column, nil
}

// One returns the only field of a frame when it is length-delimited: what every encoder of a oneof writes. ok is false for
// anything else; the generated code decides then.
func One(data []byte) (number int, message []byte, ok bool) {
	f, rest, err := next(data)
	if err != nil || f.wire != wireBytes || len(rest) > 0 {
		return 0, nil, false
	}
	return f.number, f.bytes, true
}
