package wire

import "net/netip"

// Message is one stored message as it stands in a broker's log and in the body of a pull (remoting-protocol.md 4.1). All
// byte slices alias the buffer it was decoded from.
type Message struct {
	Raw                       []byte // the whole stored message; not looked at by Append
	BodyCRC                   uint32 // masked, over the body as stored
	QueueID                   int32
	Flag                      int32 // the user's
	QueueOffset               int64
	LogOffset                 int64 // physical offset in the broker's log
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
	// WideTopic is the V2 magic: two bytes of topic length. Append takes it for a topic of more than 127 bytes by itself.
	WideTopic bool
}

// The bits of Message.SysFlag (MessageSysFlag).
const (
	SysFlagCompressed  int32 = 1 << 0
	SysFlagMultiTags   int32 = 1 << 1
	SysFlagPrepared    int32 = 1 << 2 // a half message; the transaction bits are 2 and 3
	SysFlagCommit      int32 = 2 << 2
	SysFlagRollback    int32 = 3 << 2
	SysFlagTransaction int32 = 3 << 2 // mask
	SysFlagBornV6      int32 = 1 << 4
	SysFlagStoreV6     int32 = 1 << 5
	SysFlagNeedUnwrap  int32 = 1 << 6
	SysFlagInnerBatch  int32 = 1 << 7
	SysFlagCompression int32 = 7 << 8 // mask; see Compression
)

// Attempt is the number of this delivery to a handler; the first is 1.
func (m *Message) Attempt() int { return int(m.ReconsumeTimes) + 1 }

// IsCompressed tells whether Body needs decompression.
func (m *Message) IsCompressed() bool { return m.SysFlag&SysFlagCompressed != 0 }

// IsBatch tells whether the body is a batch that a consumer has to unwrap (see Parts).
func (m *Message) IsBatch() bool { return m.SysFlag&SysFlagNeedUnwrap != 0 }

// The stored form's magic numbers.
const (
	magicV1 uint32 = 0xDAA320A7
	magicV2 uint32 = 0xDAA320AB

	// messageHead is the size of all before the born host, which the smallest message has whole.
	messageHead = 48
	// MinMessage is the size of a stored message without body, topic and properties.
	MinMessage = messageHead + hostV4 + 8 + hostV4 + 4 + 8 + 4 + 1 + 2

	hostV4 = 8
	hostV6 = 20
)
