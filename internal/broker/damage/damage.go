// Package damage breaks frames of the remoting protocol on purpose, each in one named way, for tests of those who read
// them.
package damage

import (
	"encoding/binary"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Kind is a way to break a frame.
type Kind uint8

// The kinds.
const (
	// GarbageBody overwrites the body with bytes that mean nothing; the frame stays whole.
	GarbageBody Kind = iota + 1
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

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		GarbageBody, TruncatedMessage, WrongCRC, AbsurdMessageLength, AbsurdFrameLength, GarbageHeader, UnknownEncoding, HeaderBeyondFrame,
	}
}

// String names the kind.
func (k Kind) String() string {
	switch k {
	case GarbageBody:
		return "garbage body"
	case TruncatedMessage:
		return "truncated message"
	case WrongCRC:
		return "wrong CRC"
	case AbsurdMessageLength:
		return "absurd message length"
	case AbsurdFrameLength:
		return "absurd frame length"
	case GarbageHeader:
		return "garbage header"
	case UnknownEncoding:
		return "unknown encoding"
	case HeaderBeyondFrame:
		return "header beyond frame"
	}
	return "none"
}

const (
	// garbage is what is written over what shall make no sense.
	garbage = 0xA5
	// absurd is a length that no one should believe.
	absurd = 0x7FFFFFFF
	// headerAt is where the header starts, behind the frame's length and its own.
	headerAt      = wire.PrefixSize + 4
	maxHeaderSize = 1<<24 - 1
)

// Apply damages a whole frame, prefix included, in place and returns it. Where a kind needs a body or a stored message and
// there is none, the frame comes back as it was. What is no frame at all does too.
func Apply(k Kind, frame []byte) []byte {
	if len(frame) < headerAt {
		return frame
	}
	order := binary.BigEndian
	end := min(headerAt+int(order.Uint32(frame[wire.PrefixSize:])&maxHeaderSize), len(frame))
	header, body := frame[headerAt:end], frame[end:]
	switch k {
	case GarbageBody:
		fill(body)
	case TruncatedMessage:
		frame = frame[:len(frame)-len(body)/3]
		order.PutUint32(frame, uint32(len(frame)-wire.PrefixSize))
	case WrongCRC:
		flipLastBody(body)
	case AbsurdMessageLength:
		if len(body) >= 4 {
			order.PutUint32(body, absurd)
		}
	case AbsurdFrameLength:
		order.PutUint32(frame, absurd)
	case GarbageHeader:
		fill(header)
	case UnknownEncoding:
		frame[wire.PrefixSize] = garbage
	case HeaderBeyondFrame:
		order.PutUint32(frame[wire.PrefixSize:], uint32(frame[wire.PrefixSize])<<24|maxHeaderSize)
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
