package wire

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"sync/atomic"
	"time"
)

// IDGenerator makes UNIQ_KEYs as Java's MessageClientIDSetter does (remoting-protocol.md 4.7). It is safe for concurrent
// use. Two generators with different loaders never make the same id, even in one process.
type IDGenerator struct {
	prefix  string // hexadecimal of address, process and loader
	counter atomic.Uint32
}

// NewIDGenerator returns a generator for the host address addr (IPv4 or IPv6; an invalid one is replaced by bytes of
// loader), the process pid, and loader, any value that sets this generator apart from others of the process.
func NewIDGenerator(addr netip.Addr, pid int, loader uint32) *IDGenerator {
	var b []byte
	switch addr = addr.Unmap(); {
	case addr.IsValid():
		b = addr.AsSlice()
	default:
		b = binary.LittleEndian.AppendUint32(nil, loader)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(pid)) // the low 16 bits, as Java
	b = binary.BigEndian.AppendUint32(b, loader)
	return &IDGenerator{prefix: string(appendUpperHex(nil, b))}
}

// Next returns a new id. now carries the location whose months the time part counts in.
func (g *IDGenerator) Next(now time.Time) string {
	var tail [6]byte
	binary.BigEndian.PutUint32(tail[:], uint32(now.Sub(monthStart(now)).Milliseconds()))
	binary.BigEndian.PutUint16(tail[4:], uint16(g.counter.Add(1)))
	id := make([]byte, 0, len(g.prefix)+2*len(tail))
	return string(appendUpperHex(append(id, g.prefix...), tail[:]))
}

func monthStart(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, t.Location())
}

// UniqueID is what a UNIQ_KEY says of itself. Only a hint: nothing keeps a producer from sending another text.
type UniqueID struct {
	Addr    netip.Addr
	PID     uint16
	Loader  uint32
	Time    time.Time // to the millisecond; the Go client's to the second
	Counter uint16
}

// ParseUniqueID reads a UNIQ_KEY. Its time has no month; now settles that: the last time before now that fits.
func ParseUniqueID(id string, now time.Time) (UniqueID, error) {
	const rest = 2 + 4 + 4 + 2
	b, err := hex.DecodeString(id)
	if err != nil {
		return UniqueID{}, malformed("unique id %q: %v", shorten(id), err)
	}
	if len(b) != 4+rest && len(b) != 16+rest {
		return UniqueID{}, malformed("unique id of %d digits", len(id))
	}
	addr, _ := netip.AddrFromSlice(b[:len(b)-rest])
	b = b[len(b)-rest:]
	since := time.Duration(binary.BigEndian.Uint32(b[6:])) * time.Millisecond
	start := monthStart(now)
	if !start.Add(since).Before(now) {
		start = start.AddDate(0, -1, 0)
	}
	return UniqueID{
		Addr:    addr,
		PID:     binary.BigEndian.Uint16(b),
		Loader:  binary.BigEndian.Uint32(b[2:]),
		Time:    start.Add(since),
		Counter: binary.BigEndian.Uint16(b[10:]),
	}, nil
}
