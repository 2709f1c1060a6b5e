package memstore

import (
	"encoding/binary"
	"slices"
)

// Chunk sizes: small at first so that a broker of a small test is cheap, then large so that a long log has few.
const (
	firstChunk = 64 << 10
	maxChunk   = 4 << 20
)

// Positions of the fields of a stored message that the log fills in, remoting-protocol.md 4.1.
const (
	atMagic       = 4
	atQueueID     = 12
	atQueueOffset = 20
	atLogOffset   = 28
	atSysFlag     = 36
	atBornHost    = 48
	minMessage    = 91
	ipv4Host      = 8
	ipv6Host      = 20
	sysBornIPv6   = 0x10
	sysStoreIPv6  = 0x20
	magicV2       = 0xDAA320AB // the topic's length takes two bytes
)

// chunk is a run of the log. Messages never cross chunks.
type chunk struct {
	base int64 // log offset of buf[0]
	buf  []byte
	live int // messages that a queue still points to
}

// log is the sequence of all messages. It is guarded by the Store's mutex.
type log struct {
	chunks []*chunk
	next   int64
	size   int // of the next chunk
}

// append copies raw to the end and returns the copy, which starts at the returned log offset.
func (l *log) append(raw []byte) ([]byte, int64) {
	c := l.current()
	if c == nil || cap(c.buf)-len(c.buf) < len(raw) {
		c = l.grow(len(raw))
	}
	at := len(c.buf)
	c.buf = append(c.buf, raw...)
	c.live++
	offset := c.base + int64(at)
	l.next = offset + int64(len(raw))
	return c.buf[at : at+len(raw) : at+len(raw)], offset
}

func (l *log) current() *chunk {
	if len(l.chunks) == 0 {
		return nil
	}
	return l.chunks[len(l.chunks)-1]
}

func (l *log) grow(least int) *chunk {
	if c := l.current(); c != nil {
		l.next = c.base + int64(cap(c.buf))
		if c.live == 0 {
			l.chunks = l.chunks[:len(l.chunks)-1]
		}
	}
	l.size = min(max(2*l.size, firstChunk), maxChunk)
	c := &chunk{base: l.next, buf: make([]byte, 0, max(l.size, least))}
	l.chunks = append(l.chunks, c)
	return c
}

// find returns the chunk that holds offset, and its index.
func (l *log) find(offset int64) (int, *chunk) {
	i, exact := slices.BinarySearchFunc(l.chunks, offset, func(c *chunk, o int64) int {
		switch {
		case c.base > o:
			return 1
		case c.base+int64(cap(c.buf)) <= o:
			return -1
		default:
			return 0
		}
	})
	if !exact {
		return -1, nil
	}
	return i, l.chunks[i]
}

// at returns the message that starts at offset, if one does. Any offset may be asked for: a reader's word is not trusted.
func (l *log) at(offset int64) ([]byte, bool) {
	_, c := l.find(offset)
	if c == nil {
		return nil, false
	}
	rest := c.buf[min(offset-c.base, int64(len(c.buf))):]
	if len(rest) < minMessage || binary.BigEndian.Uint64(rest[atLogOffset:]) != uint64(offset) {
		return nil, false
	}
	size := int64(binary.BigEndian.Uint32(rest))
	if size < minMessage || size > int64(len(rest)) {
		return nil, false
	}
	return rest[:size:size], true
}

// release tells that no queue points to the message at offset any longer. A chunk without any is dropped.
func (l *log) release(offset int64) {
	i, c := l.find(offset)
	if c == nil {
		return
	}
	if c.live--; c.live == 0 && i < len(l.chunks)-1 {
		l.chunks = slices.Delete(l.chunks, i, i+1)
	}
}

// topicOf reads the topic of a stored message; false when raw is too short for what it says.
func topicOf(raw []byte) (string, bool) {
	order := binary.BigEndian
	flags := order.Uint32(raw[atSysFlag:])
	at := atBornHost + hostSize(flags&sysBornIPv6 != 0) + 8 + hostSize(flags&sysStoreIPv6 != 0) + 4 + 8
	if at+4 > len(raw) {
		return "", false
	}
	at += 4 + int(order.Uint32(raw[at:]))
	width := 1
	if order.Uint32(raw[atMagic:]) == magicV2 {
		width = 2
	}
	if at+width > len(raw) {
		return "", false
	}
	size := int(raw[at])
	if width == 2 {
		size = int(order.Uint16(raw[at:]))
	}
	at += width
	if at+size > len(raw) {
		return "", false
	}
	return string(raw[at : at+size]), true
}

func hostSize(ipv6 bool) int {
	if ipv6 {
		return ipv6Host
	}
	return ipv4Host
}
