package wire

import (
	"bytes"
	"hash/crc32"
)

// crcDigits is the length of the value of PropCRC: decimal digits, the lowest first.
const crcDigits = 10

// AppendPropertyCRC appends the property __CRC32# with the sum of a message's bytes before it (remoting-protocol.md 4.4).
func AppendPropertyCRC(dst []byte, sum uint32) []byte {
	dst = append(dst, PropCRC...)
	dst = append(dst, propertyLink)
	for range crcDigits {
		dst = append(dst, byte('0'+sum%10))
		sum /= 10
	}
	return append(dst, propertyEnd)
}

// CheckMessageCRC compares the whole message with the property __CRC32#, which brokers add on request. checked is false
// when the message has none; the error wraps ErrChecksum.
func (m *Message) CheckMessageCRC() (checked bool, err error) {
	size := len(PropCRC) + 1 + crcDigits + 1
	split := len(m.Raw) - size
	if len(m.Properties) < size || split < 0 {
		return false, nil
	}
	tail := m.Raw[split:]
	if !bytes.HasPrefix(tail, []byte(PropCRC+"\x01")) || tail[size-1] != propertyEnd {
		return false, nil
	}
	sum := crc32.ChecksumIEEE(m.Raw[:split]) & 0x7FFFFFFF
	if !bytes.Equal(AppendPropertyCRC(nil, sum), tail) {
		return true, checksumError(m, sum)
	}
	return true, nil
}
