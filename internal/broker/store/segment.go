package store

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// A segment is a file of messages, each as far behind the beginning as its log offset is behind that of the first one. That is the
// file's name, as that of a file of RocketMQ's commit log is, and what is in it is the same: stored messages (remoting-protocol.md
// 4.1). Where messages are with their keys alone, under FlushSync, it has a hole.
const segmentSuffix = ".messages"

func segmentName(first int64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// segmentOf reads segmentName back.
func segmentOf(name string) (first int64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseInt(digits, 10, 64)
	return first, err == nil && segmentName(first) == name
}

// pointer is the value of a message that is in a segment: where it is there, and a checksum of it.
type pointer struct {
	log  int64
	size uint32
	sum  uint32
}

// pointerSize is less than any message has, which tells the two apart.
const pointerSize = 8 + 4 + 4

func pointTo(log int64, raw []byte) pointer {
	return pointer{log: log, size: uint32(len(raw)), sum: sumOf(raw)} //nolint:gosec // a frame is far smaller
}

func (p pointer) put(v []byte) {
	order.PutUint64(v, uint64(p.log))
	order.PutUint32(v[8:], p.size)
	order.PutUint32(v[12:], p.sum)
}

// readPointer reads the value of a message; false: it is the message itself.
func readPointer(v []byte) (pointer, bool) {
	if len(v) != pointerSize {
		return pointer{}, false
	}
	return pointer{int64(order.Uint64(v)), order.Uint32(v[8:]), order.Uint32(v[12:])}, true
}

func (p pointer) end() int64 { return p.log + int64(p.size) }

// fault tells what is wrong with the bytes that are where p points to, "" for nothing.
func (p pointer) fault(raw []byte) string {
	if sumOf(raw) != p.sum {
		return fmt.Sprintf("the message at log offset %d has another checksum", p.log)
	}
	return ""
}

func sumOf(raw []byte) uint32 { return crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)) }

// logOffsetIn is the log offset of a message by its value.
func logOffsetIn(v []byte) int64 {
	if p, ok := readPointer(v); ok {
		return p.log
	}
	return logOffsetOf(v)
}
