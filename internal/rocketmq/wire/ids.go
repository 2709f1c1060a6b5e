package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Sizes of ids in hexadecimal digits (remoting-protocol.md 4.7).
const (
	offsetIDv4 = 2 * (4 + 4 + 8)
	offsetIDv6 = 2 * (16 + 4 + 8)
)

const upperHex = "0123456789ABCDEF"

func appendUpperHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// AppendOffsetID appends the offset message id of the message that host stores at logOffset: upper case hexadecimal of
// address, port and offset, 32 digits for IPv4 and 56 for IPv6.
func AppendOffsetID(dst []byte, host netip.AddrPort, logOffset int64) []byte {
	if a := host.Addr(); a.Is4() {
		b := a.As4()
		dst = appendUpperHex(dst, b[:])
	} else {
		b := a.As16()
		dst = appendUpperHex(dst, b[:])
	}
	var tail [12]byte
	binary.BigEndian.PutUint32(tail[:], uint32(host.Port()))
	binary.BigEndian.PutUint64(tail[4:], uint64(logOffset))
	return appendUpperHex(dst, tail[:])
}

// ParseOffsetID reads an offset message id: where its message is stored, and at which offset of the log.
func ParseOffsetID(id string) (netip.AddrPort, int64, error) {
	if len(id) != offsetIDv4 && len(id) != offsetIDv6 {
		return netip.AddrPort{}, 0, malformed("offset message id of %d digits: it has %d or %d", len(id), offsetIDv4, offsetIDv6)
	}
	b, err := hex.DecodeString(id)
	if err != nil {
		return netip.AddrPort{}, 0, malformed("offset message id %q: %v", id, err)
	}
	split := len(b) - 12
	port := binary.BigEndian.Uint32(b[split:])
	if port > 0xFFFF {
		return netip.AddrPort{}, 0, malformed("offset message id %q has port %d", id, port)
	}
	addr, _ := netip.AddrFromSlice(b[:split])
	return netip.AddrPortFrom(addr, uint16(port)), int64(binary.BigEndian.Uint64(b[split+4:])), nil
}

// OffsetID returns the message's offset id.
func (m *Message) OffsetID() string {
	return string(AppendOffsetID(make([]byte, 0, offsetIDv6), m.StoreHost, m.LogOffset))
}

// UniqueKey returns UNIQ_KEY, "" when there is none. It is what users see and search by; it need not be unique: a 5.3.3
// batch shares one, and parts of a Go client's batch have none (vectors/README.md 4.1).
func (m *Message) UniqueKey() string {
	key, _ := m.Property(PropUniqueKey)
	return string(key)
}

// ID returns what RocketMQ's clients show as the message id: UNIQ_KEY, else the offset id.
func (m *Message) ID() string {
	if key, ok := m.Property(PropUniqueKey); ok {
		return string(key)
	}
	return m.OffsetID()
}

// AppendIdentity appends what stays the same over a message's attempts: ORIGIN_MESSAGE_ID, else its own offset id
// (design.md 7).
func (m *Message) AppendIdentity(dst []byte) []byte {
	if origin, ok := m.Property(PropOriginMessageID); ok {
		return append(dst, origin...)
	}
	return AppendOffsetID(dst, m.StoreHost, m.LogOffset)
}

// Identity is AppendIdentity as a string.
func Identity(m *Message) string { return string(m.AppendIdentity(make([]byte, 0, offsetIDv6))) }

// OriginTopic returns the topic that the message was first consumed from: RETRY_TOPIC on the copies of a retry topic or a
// dead-letter topic, else its own.
func (m *Message) OriginTopic() string {
	if topic, ok := m.Property(PropRetryTopic); ok {
		return string(topic)
	}
	return string(m.Topic)
}

// Tag returns the message's tag, nil when it has none.
func (m *Message) Tag() []byte {
	tag, _ := m.Property(PropTags)
	return tag
}

// Keys returns the message's index keys.
func (m *Message) Keys() []string {
	text, _ := m.Property(PropKeys)
	return strings.Fields(string(text))
}

// JoinKeys returns the value of KEYS for keys. A key with white space is refused: readers would take it for several.
func JoinKeys(keys []string) (string, error) {
	for _, k := range keys {
		if k == "" || strings.ContainsAny(k, " \t\r\n\v\f") {
			return "", fmt.Errorf("%w: key %q: keys are separated by blanks, so none may be empty or hold one", ErrNotEncodable, k)
		}
	}
	return strings.Join(keys, KeySeparator), nil
}
