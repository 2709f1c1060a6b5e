package broker

import (
	"encoding/binary"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Damage is a way to break an answer.
type Damage uint8

// The ways.
const (
	// GarbageBody overwrites the body with bytes that mean nothing; the frame stays whole.
	GarbageBody Damage = iota + 1
	// TruncatedMessage cuts the end off the body; the frame's length is right, the last message's is not.
	TruncatedMessage
	// WrongCRC flips a bit in the last message's own body, so that its checksum is wrong.
	WrongCRC
	// AbsurdMessageLength makes the first message of the body say that it has 2 GiB.
	AbsurdMessageLength
	// AbsurdFrameLength makes the frame say that it has 2 GiB.
	AbsurdFrameLength
	// GarbageHeader overwrites the frame's header; its length stays right.
	GarbageHeader
	// UnknownEncoding gives the header an encoding that nobody knows.
	UnknownEncoding
	// HeaderBeyondFrame makes the header say that it is longer than the frame.
	HeaderBeyondFrame
)

// Corrupt carries the request out and breaks the answer.
func Corrupt(d Damage) Action {
	return actionFunc(func(r *remote.Request, next func(*remote.Request)) {
		r.Tamper = func(frame []byte) { r.Conn.WriteRaw(Break(d, frame)) }
		next(r)
	})
}

// garbage is what is written over what shall make no sense.
const garbage = 0xA5

// Break damages a whole frame, prefix included, and returns it. What has no body cannot have its body damaged and comes
// back as it was.
func Break(d Damage, frame []byte) []byte {
	const mark = wire.PrefixSize
	order := binary.BigEndian
	header := int(order.Uint32(frame[mark:]) & 0xFFFFFF)
	body := frame[min(mark+4+header, len(frame)):]
	switch d {
	case GarbageBody:
		fill(body)
	case TruncatedMessage:
		frame = frame[:len(frame)-len(body)/3]
		order.PutUint32(frame, uint32(len(frame)-wire.PrefixSize)) //nolint:gosec // Shorter than it was.
	case WrongCRC:
		flipLastBody(body)
	case AbsurdMessageLength:
		if len(body) >= 4 {
			order.PutUint32(body, 0x7FFFFFFF)
		}
	case AbsurdFrameLength:
		order.PutUint32(frame, 0x7FFFFFFF)
	case GarbageHeader:
		fill(frame[mark+4 : min(mark+4+header, len(frame))])
	case UnknownEncoding:
		frame[mark] = garbage
	case HeaderBeyondFrame:
		order.PutUint32(frame[mark:], uint32(frame[mark])<<24|0xFFFFFF)
	}
	return frame
}

func fill(b []byte) {
	for i := range b {
		b[i] = garbage
	}
}

// flipLastBody changes one bit in the body of the last stored message.
func flipLastBody(messages []byte) {
	var m wire.Message
	for len(messages) > 0 {
		n, err := m.Decode(messages)
		if err != nil || n == 0 {
			return
		}
		messages = messages[n:]
	}
	if len(m.Body) > 0 {
		m.Body[0] ^= 1
	}
}
