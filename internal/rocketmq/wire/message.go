package wire

import "net/netip"

// Message is one stored message as it stands in a broker's log and in the body of a pull. All byte slices alias the
// buffer it was decoded from.
type Message struct {
	Raw                       []byte // the whole stored message
	BodyCRC                   uint32
	QueueID                   int32
	Flag                      int32
	QueueOffset               int64
	LogOffset                 int64
	SysFlag                   int32
	BornMillis                int64
	BornHost                  netip.AddrPort
	StoreMillis               int64
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte // as stored: still compressed when SysFlag says so
	Topic                     []byte
	Properties                []byte // RocketMQ's text form
}
