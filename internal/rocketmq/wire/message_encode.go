package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
)

// The limits of what a broker stores (remoting-protocol.md 4.5).
const (
	MaxBody       = 4 << 20 // default of brokers and of clients
	MaxProperties = math.MaxInt16
	maxTopicV1    = math.MaxInt8
	maxTopicV2    = math.MaxInt16
)

func checksumError(m *Message, sum uint32) error {
	return fmt.Errorf("%w: body of the message at offset %d of queue %d has %08x, its header says %08x",
		ErrChecksum, m.QueueOffset, m.QueueID, sum, m.BodyCRC)
}

// Size returns how many bytes Append adds.
func (m *Message) Size() int {
	size := MinMessage + len(m.Body) + len(m.Topic) + len(m.Properties)
	if m.wide() {
		size++
	}
	if m.SysFlag&SysFlagBornV6 != 0 {
		size += hostV6 - hostV4
	}
	if m.SysFlag&SysFlagStoreV6 != 0 {
		size += hostV6 - hostV4
	}
	return size
}

func (m *Message) wide() bool { return m.WideTopic || len(m.Topic) > maxTopicV1 }

// Append appends the stored form of m to dst. BodyCRC is written as it stands (see BodyCRC); the bits SysFlagBornV6 and
// SysFlagStoreV6 decide the size of the hosts. The error wraps ErrNotEncodable and names what does not fit; dst then comes
// back as it was.
func (m *Message) Append(dst []byte) ([]byte, error) {
	if err := m.encodable(); err != nil {
		return dst, err
	}
	magic := magicV1
	if m.wide() {
		magic = magicV2
	}
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(m.Size()))
	dst = be.AppendUint32(dst, magic)
	dst = be.AppendUint32(dst, m.BodyCRC)
	dst = be.AppendUint32(dst, uint32(m.QueueID))
	dst = be.AppendUint32(dst, uint32(m.Flag))
	dst = be.AppendUint64(dst, uint64(m.QueueOffset))
	dst = be.AppendUint64(dst, uint64(m.LogOffset))
	dst = be.AppendUint32(dst, uint32(m.SysFlag))
	dst = be.AppendUint64(dst, uint64(m.BornMillis))
	dst = appendHost(dst, m.BornHost, m.SysFlag&SysFlagBornV6 != 0)
	dst = be.AppendUint64(dst, uint64(m.StoreMillis))
	dst = appendHost(dst, m.StoreHost, m.SysFlag&SysFlagStoreV6 != 0)
	dst = be.AppendUint32(dst, uint32(m.ReconsumeTimes))
	dst = be.AppendUint64(dst, uint64(m.PreparedTransactionOffset))
	dst = be.AppendUint32(dst, uint32(len(m.Body)))
	dst = append(dst, m.Body...)
	if magic == magicV2 {
		dst = be.AppendUint16(dst, uint16(len(m.Topic)))
	} else {
		dst = append(dst, byte(len(m.Topic)))
	}
	dst = append(dst, m.Topic...)
	dst = be.AppendUint16(dst, uint16(len(m.Properties)))
	return append(dst, m.Properties...), nil
}

func (m *Message) encodable() error {
	switch {
	case len(m.Properties) > MaxProperties:
		return notEncodable("properties of %d bytes: the limit is %d", len(m.Properties), MaxProperties)
	case len(m.Topic) > maxTopicV2:
		return notEncodable("topic of %d bytes: the limit is %d", len(m.Topic), maxTopicV2)
	case m.Size() > MaxFrame:
		return notEncodable("message of %d bytes: the limit is %d", m.Size(), MaxFrame)
	}
	if err := hostEncodable(m.BornHost, m.SysFlag&SysFlagBornV6 != 0); err != nil {
		return fmt.Errorf("born host: %w", err)
	}
	if err := hostEncodable(m.StoreHost, m.SysFlag&SysFlagStoreV6 != 0); err != nil {
		return fmt.Errorf("store host: %w", err)
	}
	return nil
}

func hostEncodable(host netip.AddrPort, v6 bool) error {
	switch a := host.Addr(); {
	case !a.IsValid():
		return notEncodable("no address")
	case !v6 && !a.Is4():
		return notEncodable("%s is IPv6, and sysFlag does not say so", a)
	}
	return nil
}

func appendHost(dst []byte, host netip.AddrPort, v6 bool) []byte {
	if v6 {
		a := host.Addr().As16()
		dst = append(dst, a[:]...)
	} else {
		a := host.Addr().As4()
		dst = append(dst, a[:]...)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(host.Port()))
}
