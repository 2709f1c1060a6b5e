package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Inflater decompresses bodies and keeps its working memory from one to the next. It is not safe for concurrent use; the
// zero value is not usable.
type Inflater struct {
	limit int
	src   bytes.Reader
	zlib  io.ReadCloser // made with the first body of its kind, as are the others
	lz4   *lz4.Reader
	zstd  *zstd.Decoder
}

// NewInflater returns an Inflater that lets no body grow beyond limit bytes.
func NewInflater(limit int) *Inflater { return &Inflater{limit: limit} }

// AppendBody appends the message's body, decompressed when it is compressed, to dst. The error wraps ErrTooLarge when it
// would pass the limit, ErrMalformed when it is not what sysFlag says; dst then comes back as it was.
func (z *Inflater) AppendBody(dst []byte, m *Message) ([]byte, error) {
	if !m.IsCompressed() || len(m.Body) == 0 {
		return append(dst, m.Body...), nil
	}
	return z.Append(dst, m.Body, m.Compression())
}

// Append appends what src becomes when decompressed to dst.
func (z *Inflater) Append(dst, src []byte, c Compression) ([]byte, error) {
	out, err := z.append(dst, src, c)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, ErrTooLarge):
		return dst, fmt.Errorf("%s body of %d bytes becomes %w: the limit is %d", c, len(src), ErrTooLarge, z.limit)
	}
	return dst, fmt.Errorf("%w %s body of %d bytes: %w", ErrMalformed, c, len(src), err)
}

func (z *Inflater) append(dst, src []byte, c Compression) ([]byte, error) {
	z.src.Reset(src)
	switch c {
	case CompressionUntyped, CompressionZlib:
		return z.appendZlib(dst)
	case CompressionLZ4:
		if z.lz4 == nil {
			z.lz4 = lz4.NewReader(&z.src)
		} else {
			z.lz4.Reset(&z.src)
		}
		return appendLimited(dst, z.lz4, z.limit)
	case CompressionZstd:
		return z.appendZstd(dst, src)
	}
	return nil, fmt.Errorf("compression type %d is unknown", c)
}

func (z *Inflater) appendZlib(dst []byte) ([]byte, error) {
	if z.zlib == nil {
		r, err := zlib.NewReader(&z.src)
		if err != nil {
			return nil, err
		}
		z.zlib = r
		return appendLimited(dst, r, z.limit)
	}
	if err := z.zlib.(zlib.Resetter).Reset(&z.src, nil); err != nil {
		return nil, err
	}
	return appendLimited(dst, z.zlib, z.limit)
}

func (z *Inflater) appendZstd(dst, src []byte) ([]byte, error) {
	if err := z.checkZstdSize(src); err != nil {
		return nil, err
	}
	if z.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(max(z.limit, 1))))
		if err != nil {
			return nil, err
		}
		z.zstd = d
	}
	space := dst[len(dst):]
	out, err := z.zstd.DecodeAll(src, space)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return append(dst, out...), nil // a copy onto itself when space was enough
}

// checkZstdSize refuses a stated size beyond the limit, or beyond what so few bytes can become, before the decoder
// makes room for it.
func (z *Inflater) checkZstdSize(src []byte) error {
	const (
		blockMax   = 128 << 10 // what one block yields at most
		blockBytes = 4         // what one block takes at least
	)
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return err
	}
	switch {
	case !h.HasFCS:
		return nil
	case h.FrameContentSize > uint64(z.limit):
		return ErrTooLarge
	case h.FrameContentSize > uint64(len(src)/blockBytes+1)*blockMax:
		return fmt.Errorf("it cannot become the %d bytes it states", h.FrameContentSize)
	}
	return nil
}

// appendLimited reads r to its end. Memory grows with what was read, not with what is promised.
func appendLimited(dst []byte, r io.Reader, limit int) ([]byte, error) {
	const first, maxIdle = 512, 100
	start, idle := len(dst), 0
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(first, len(dst)-start))
		}
		end := min(cap(dst), start+limit+1)
		n, err := r.Read(dst[len(dst):end])
		dst = dst[:len(dst)+n]
		if len(dst)-start > limit {
			return nil, ErrTooLarge
		}
		switch {
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return nil, err
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle > maxIdle {
			return nil, io.ErrNoProgress
		}
	}
}
