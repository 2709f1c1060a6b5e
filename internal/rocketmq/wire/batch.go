package wire

import (
	"encoding/binary"
	"iter"
)

// BatchPart is one message inside the body of a 320, or inside a stored inner batch (remoting-protocol.md 4.6).
type BatchPart struct {
	Flag       int32
	Body       []byte
	Properties []byte // RocketMQ's text form
}

// batchPartFixed is the size of a part without body and properties.
const batchPartFixed = 4 + 4 + 4 + 4 + 4 + 2

// Decode reads the part at the start of buf and returns its size. p aliases buf.
func (p *BatchPart) Decode(buf []byte) (int, error) {
	if len(buf) < batchPartFixed {
		return 0, malformed("part of a batch: %d bytes left", len(buf))
	}
	size := int(int32(binary.BigEndian.Uint32(buf)))
	if size < batchPartFixed || size > len(buf) {
		return 0, malformed("part of a batch of %d bytes in %d", size, len(buf))
	}
	r := byteReader{b: buf[12:size]} // magic and CRC are not set in a batch
	p.Flag = int32(r.u32())
	p.Body = r.take(int(int32(r.u32())))
	p.Properties = r.take(int(int16(r.u16())))
	if r.bad || len(r.b) != 0 {
		return 0, malformed("part of a batch of %d bytes: its parts do not add up", size)
	}
	return size, nil
}

// Append appends the part to dst. The error wraps ErrNotEncodable.
func (p *BatchPart) Append(dst []byte) ([]byte, error) {
	size := batchPartFixed + len(p.Body) + len(p.Properties)
	if len(p.Properties) > MaxProperties {
		return dst, notEncodable("properties of %d bytes: the limit is %d", len(p.Properties), MaxProperties)
	}
	if size > MaxFrame {
		return dst, notEncodable("part of a batch of %d bytes: the limit is %d", size, MaxFrame)
	}
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(size))
	dst = be.AppendUint32(dst, 0)
	dst = be.AppendUint32(dst, 0)
	dst = be.AppendUint32(dst, uint32(p.Flag))
	dst = be.AppendUint32(dst, uint32(len(p.Body)))
	dst = append(dst, p.Body...)
	dst = be.AppendUint16(dst, uint16(len(p.Properties)))
	return append(dst, p.Properties...), nil
}

// BatchParts yields the parts of a batch body. A broken one ends it with an error.
func BatchParts(body []byte) iter.Seq2[BatchPart, error] {
	return func(yield func(BatchPart, error) bool) {
		for len(body) > 0 {
			var p BatchPart
			n, err := p.Decode(body)
			if err != nil {
				yield(BatchPart{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
			body = body[n:]
		}
	}
}

// Parts yields the messages of a stored inner batch (see IsBatch), whose decompressed body is body: each has the outer
// message's place in the log, hosts, times and topic, queue offsets counted on from the outer one's, and its own flag, body
// and properties (remoting-protocol.md 4.2). Raw stays the outer message's.
func (m *Message) Parts(body []byte) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		next := *m
		next.SysFlag &^= SysFlagCompressed | SysFlagNeedUnwrap | SysFlagInnerBatch
		for p, err := range BatchParts(body) {
			if err != nil {
				yield(Message{}, err)
				return
			}
			next.Flag, next.Body, next.Properties, next.BodyCRC = p.Flag, p.Body, p.Properties, BodyCRC(p.Body)
			if !yield(next, nil) {
				return
			}
			next.QueueOffset++
		}
	}
}
