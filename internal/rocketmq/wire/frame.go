package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The sizes of a frame (remoting-protocol.md 1.1).
const (
	// MaxFrame is the largest frame, prefix included, that Java ends send or take.
	MaxFrame = 16 << 20
	// PrefixSize is the size of the length before each frame.
	PrefixSize = 4

	headerMark    = 4 // encoding byte and the header's 24 bit length
	maxHeaderSize = 1<<24 - 1
	maxFields     = 1024 // far above any real header; bounds what a hostile one makes us allocate
)

// FrameLength reads a frame's prefix and returns how many bytes follow it. It refuses lengths that cannot be: a negative
// or tiny one with ErrMalformed, one beyond MaxFrame with ErrTooLarge. It panics when prefix is shorter than PrefixSize.
func FrameLength(prefix []byte) (int, error) {
	n := int32(binary.BigEndian.Uint32(prefix))
	switch {
	case n < headerMark:
		return 0, malformed("frame length %d", n)
	case n > MaxFrame-PrefixSize:
		return 0, fmt.Errorf("frame of %d bytes is %w: the limit is %d", int64(n)+PrefixSize, ErrTooLarge, MaxFrame)
	}
	return int(n), nil
}

// GrowFrame tells a reader how large the buffer of a frame of want bytes may be when have bytes of it arrived: at most
// twice of what arrived, beyond a floor of 64 KiB, so that a stated length costs nothing until its bytes are there.
func GrowFrame(have, want int) int {
	const floor = 64 << 10
	return min(want, max(2*have, floor))
}

// Decode reads one frame's content, the bytes after its prefix, into c. Body aliases content; Ext's space is used again.
// On an error c holds nothing useful.
func (c *Command) Decode(content []byte) error {
	if len(content) < headerMark {
		return malformed("frame of %d bytes", len(content))
	}
	mark := binary.BigEndian.Uint32(content)
	size := int(mark & maxHeaderSize)
	if size > len(content)-headerMark {
		return malformed("header of %d bytes in a frame of %d", size, len(content))
	}
	ext := c.Ext[:0]
	*c = Command{Encoding: Encoding(mark >> 24)}
	header := content[headerMark : headerMark+size]
	if body := content[headerMark+size:]; len(body) > 0 {
		c.Body = body
	}
	switch c.Encoding {
	case EncodingJSON:
		return decodeJSONHeader(c, ext, string(header))
	case EncodingBinary:
		return decodeBinaryHeader(c, ext, string(header))
	}
	return malformed("header encoding %d", c.Encoding)
}

// AppendFrame appends the whole frame of c, prefix and body included, to dst. On an error dst comes back as it was.
func AppendFrame(dst []byte, c *Command) ([]byte, error) {
	out, err := AppendHeader(dst, c, len(c.Body))
	if err != nil {
		return dst, err
	}
	return append(out, c.Body...), nil
}

// AppendHeader appends the frame of c up to its body, which has bodySize bytes and is left to the caller (who can write
// both with one vectored write). On an error dst comes back as it was.
func AppendHeader(dst []byte, c *Command, bodySize int) ([]byte, error) {
	start := len(dst)
	out := slices.Grow(dst, PrefixSize+headerMark)[:start+PrefixSize+headerMark]
	var err error
	switch c.Encoding {
	case EncodingJSON:
		out = appendJSONHeader(out, c)
	case EncodingBinary:
		out, err = appendBinaryHeader(out, c)
	default:
		err = notEncodable("header encoding %d", c.Encoding)
	}
	if err != nil {
		return dst, err
	}
	header := len(out) - start - PrefixSize - headerMark
	total := header + headerMark + bodySize
	if header > maxHeaderSize || total > MaxFrame-PrefixSize {
		return dst, fmt.Errorf("frame of %d bytes is %w: the limit is %d", total+PrefixSize, ErrTooLarge, MaxFrame)
	}
	binary.BigEndian.PutUint32(out[start:], uint32(total))
	binary.BigEndian.PutUint32(out[start+4:], uint32(c.Encoding)<<24|uint32(header))
	return out, nil
}
