package store

import "encoding/binary"

// Positions of the fields of a stored message that the store reads or fills in, remoting-protocol.md 4.1.
const (
	atQueueID     = 12
	atQueueOffset = 20
	atLogOffset   = 28
	atSysFlag     = 36
	atBornHost    = 48
	minMessage    = 91
	ipv4Host      = 8
	ipv6Host      = 20
	sysBornIPv6   = 0x10
)

// Record is one message to append.
type Record struct {
	// Raw is the encoded stored message (remoting-protocol.md 4.1). Its queue id, queue offset, log offset and store time are
	// whatever they are: the store writes its own. It is copied by Submit; after that it is the caller's again.
	Raw     []byte
	TagHash int32    // 0 = no tags
	Keys    []string // what Query finds it by: unique key and keys
	// Due is when Scheduled shall hand the message out, in milliseconds since 1970; 0 = never.
	Due int64
	// Half opens a transaction, which Halves hands out until a change ends it.
	Half bool
}

// Position is where an appended message lies.
type Position struct {
	QueueOffset int64
	LogOffset   int64
	StoreMillis int64
}

func whole(raw []byte) bool {
	return len(raw) >= minMessage && int64(binary.BigEndian.Uint32(raw)) == int64(len(raw))
}

func stamp(raw []byte, queueID int32, p Position) {
	order.PutUint32(raw[atQueueID:], uint32(queueID))
	order.PutUint64(raw[atQueueOffset:], uint64(p.QueueOffset))
	order.PutUint64(raw[atLogOffset:], uint64(p.LogOffset))
	host := ipv4Host
	if order.Uint32(raw[atSysFlag:])&sysBornIPv6 != 0 {
		host = ipv6Host
	}
	order.PutUint64(raw[atBornHost+host:], uint64(p.StoreMillis))
}

func logOffsetOf(raw []byte) int64 { return int64(order.Uint64(raw[atLogOffset:])) }
