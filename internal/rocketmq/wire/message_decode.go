package wire

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// Decode reads the stored message at the start of buf and returns its size. m aliases buf. It allocates nothing.
//
// When the error comes with a size, only this message is broken: the next one begins after it. When the size is 0,
// nothing behind is readable either, since where the next message begins is unknown.
func (m *Message) Decode(buf []byte) (int, error) {
	if len(buf) < MinMessage {
		return 0, malformed("stored message: %d bytes left", len(buf))
	}
	size := int(int32(binary.BigEndian.Uint32(buf)))
	if size < MinMessage || size > len(buf) {
		return 0, malformed("stored message of %d bytes in %d", size, len(buf))
	}
	magic := binary.BigEndian.Uint32(buf[4:])
	if magic != magicV1 && magic != magicV2 {
		return 0, malformed("stored message with magic %08x", magic)
	}
	*m = Message{Raw: buf[:size:size], WideTopic: magic == magicV2}
	m.decodeHead(m.Raw)
	return size, m.decodeTail(m.Raw[messageHead:])
}

// decodeHead reads what has a fixed place.
func (m *Message) decodeHead(b []byte) {
	m.BodyCRC = binary.BigEndian.Uint32(b[8:])
	m.QueueID = int32(binary.BigEndian.Uint32(b[12:]))
	m.Flag = int32(binary.BigEndian.Uint32(b[16:]))
	m.QueueOffset = int64(binary.BigEndian.Uint64(b[20:]))
	m.LogOffset = int64(binary.BigEndian.Uint64(b[28:]))
	m.SysFlag = int32(binary.BigEndian.Uint32(b[36:]))
	m.BornMillis = int64(binary.BigEndian.Uint64(b[40:]))
}

// decodeTail reads what follows the born time. Java goes by the parts, Go clients by the total: both have to agree.
func (m *Message) decodeTail(b []byte) error {
	born, store := hostSize(m.SysFlag&SysFlagBornV6), hostSize(m.SysFlag&SysFlagStoreV6)
	fixed := born + 8 + store + 4 + 8 + 4
	if len(b) < fixed {
		return m.mismatch()
	}
	be := binary.BigEndian
	var bornOK, storeOK bool
	m.BornHost, bornOK = readHost(b[:born])
	m.StoreMillis = int64(be.Uint64(b[born:]))
	m.StoreHost, storeOK = readHost(b[born+8 : born+8+store])
	rest := b[fixed-16 : fixed]
	m.ReconsumeTimes = int32(be.Uint32(rest))
	m.PreparedTransactionOffset = int64(be.Uint64(rest[4:]))
	r := byteReader{b: b[fixed:]}
	m.Body = r.take(int(int32(be.Uint32(rest[12:]))))
	if m.WideTopic {
		m.Topic = r.take(int(int16(r.u16())))
	} else {
		m.Topic = r.take(int(int8(r.u8())))
	}
	m.Properties = r.take(int(int16(r.u16())))
	if r.bad || len(r.b) != 0 || !bornOK || !storeOK {
		return m.mismatch()
	}
	return nil
}

func (m *Message) mismatch() error {
	return malformed("stored message of %d bytes at offset %d of queue %d: its parts do not add up",
		len(m.Raw), m.QueueOffset, m.QueueID)
}

func hostSize(v6 int32) int {
	if v6 != 0 {
		return hostV6
	}
	return hostV4
}

// readHost reads an address and a port of 32 bits, of which more than 16 are an error.
func readHost(b []byte) (netip.AddrPort, bool) {
	split := len(b) - 4
	port := binary.BigEndian.Uint32(b[split:])
	if port > 0xFFFF {
		return netip.AddrPort{}, false
	}
	if split == 4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), uint16(port)), true
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)), uint16(port)), true
}

// byteReader cuts values off the front of a buffer. After a failure it reads zeros and bad stays set.
type byteReader struct {
	b   []byte
	bad bool
}

func (r *byteReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		r.b = nil
		return nil
	}
	part := r.b[:n:n]
	r.b = r.b[n:]
	return part
}

func (r *byteReader) u8() uint8 {
	p := r.take(1)
	if r.bad {
		return 0
	}
	return p[0]
}

func (r *byteReader) u16() uint16 {
	p := r.take(2)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint16(p)
}

func (r *byteReader) u32() uint32 {
	p := r.take(4)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint32(p)
}

// BodyCRC returns the checksum that a stored message carries for body, the body as stored.
func BodyCRC(body []byte) uint32 { return crc32.ChecksumIEEE(body) & 0x7FFFFFFF }

// CheckCRC compares the body with its checksum; the error wraps ErrChecksum. Java and Go clients leave it out on pulls.
func (m *Message) CheckCRC() error {
	if sum := BodyCRC(m.Body); sum != m.BodyCRC {
		return checksumError(m, sum)
	}
	return nil
}
