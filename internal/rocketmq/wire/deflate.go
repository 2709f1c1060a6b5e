package wire

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// DefaultZlibLevel is the level Java's producers use.
const DefaultZlibLevel = 5

// Deflater compresses bodies and keeps its working memory from one to the next. It is not safe for concurrent use.
type Deflater struct {
	method Compression
	out    bytes.Buffer
	zlib   *zlib.Writer
	lz4    *lz4.Writer
	zstd   *zstd.Encoder
}

// NewDeflater returns a Deflater for the method, at the level that Java's producers use. Every reader knows zlib; LZ4 and
// zstd are read by Java 4.9.4 and later, not by the Go client.
func NewDeflater(c Compression) (*Deflater, error) {
	d := &Deflater{method: c}
	var err error
	switch c {
	case CompressionUntyped, CompressionZlib:
		d.zlib, err = zlib.NewWriterLevel(&d.out, DefaultZlibLevel)
	case CompressionLZ4:
		d.lz4 = lz4.NewWriter(&d.out)
		err = d.lz4.Apply(lz4.BlockSizeOption(lz4.Block256Kb))
	case CompressionZstd:
		d.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	default:
		err = notEncodable("compression type %d", c)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", c, err)
	}
	return d, nil
}

// Append appends the compressed form of body to dst. The message then needs the bits of Compression.SysFlag.
func (d *Deflater) Append(dst, body []byte) ([]byte, error) {
	if d.zstd != nil {
		return d.zstd.EncodeAll(body, dst), nil
	}
	d.out.Reset()
	var err error
	if d.zlib != nil {
		d.zlib.Reset(&d.out)
		if _, err = d.zlib.Write(body); err == nil {
			err = d.zlib.Close()
		}
	} else {
		d.lz4.Reset(&d.out)
		if _, err = d.lz4.Write(body); err == nil {
			err = d.lz4.Close()
		}
	}
	if err != nil {
		return dst, fmt.Errorf("compressing %d bytes with %s: %w", len(body), d.method, err)
	}
	return append(dst, d.out.Bytes()...), nil
}
