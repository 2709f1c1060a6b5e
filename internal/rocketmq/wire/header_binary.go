package wire

import (
	"encoding/binary"
	"math"
)

// textReader cuts values off the front of a binary header. It works on a string so that the parts need no copy.
type textReader struct {
	s   string
	bad bool
}

func (r *textReader) take(n int) string {
	if n < 0 || n > len(r.s) {
		r.bad = true
		r.s = ""
		return ""
	}
	part := r.s[:n]
	r.s = r.s[n:]
	return part
}

func (r *textReader) u8() uint8 {
	p := r.take(1)
	if r.bad {
		return 0
	}
	return p[0]
}

func (r *textReader) i16() int16 {
	p := r.take(2)
	if r.bad {
		return 0
	}
	return int16(p[0])<<8 | int16(p[1])
}

func (r *textReader) i32() int32 {
	p := r.take(4)
	if r.bad {
		return 0
	}
	return int32(p[0])<<24 | int32(p[1])<<16 | int32(p[2])<<8 | int32(p[3])
}

func decodeBinaryHeader(c *Command, ext Fields, header string) error {
	r := textReader{s: header}
	c.Code = int32(r.i16())
	c.Language = Language(r.u8())
	c.Version = int32(r.i16())
	c.Opaque = r.i32()
	c.Flag = r.i32()
	c.Remark = r.take(int(r.i32()))
	block := r.take(int(r.i32()))
	if r.bad || r.s != "" {
		return malformed("binary header of %d bytes: lengths do not add up", len(header))
	}
	if block == "" {
		return nil
	}
	c.Ext = ext
	return decodeBinaryFields(c, textReader{s: block})
}

func decodeBinaryFields(c *Command, r textReader) error {
	if c.Ext == nil {
		c.Ext = make(Fields, 0, min(16, 1+len(r.s)/16))
	}
	for r.s != "" {
		key := r.take(int(r.i16()))
		value := r.take(int(r.i32()))
		if r.bad {
			return malformed("field %d of a binary header", len(c.Ext)+1)
		}
		if len(c.Ext) == maxFields {
			return malformed("more than %d header fields", maxFields)
		}
		c.Ext = append(c.Ext, Field{Key: key, Value: value})
	}
	return nil
}

func appendBinaryHeader(dst []byte, c *Command) ([]byte, error) {
	// Java cuts larger codes to 16 bits, which turns a POP request into another one; better to say that it cannot be.
	if c.Code != int32(int16(c.Code)) {
		return dst, notEncodable("code %d in a binary header: it takes 16 bits; use a JSON header", c.Code)
	}
	if c.Version != int32(int16(c.Version)) {
		return dst, notEncodable("version %d in a binary header: it takes 16 bits", c.Version)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	mark := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, f := range c.Ext {
		if len(f.Key) > math.MaxInt16 {
			return dst, notEncodable("header field name of %d bytes", len(f.Key))
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Value)))
		dst = append(dst, f.Value...)
	}
	binary.BigEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-4))
	return dst, nil
}
