package remoting

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const (
	maxFrame  = 1 << maxBufferBits // wire.MaxFrame, a class of Buffers
	readChunk = 64 << 10
)

// How a TLS server's alert begins. As the length of a frame it would be more than 350 MB.
const (
	tlsAlert = 0x15
	tlsMajor = 3
)

// frameReader cuts a stream into frames. It reads in large chunks, and long frames straight into their buffer.
type frameReader struct {
	src  *bufio.Reader
	pool *Buffers
	// proven is the longest frame that has really arrived: what a length may allocate at once. Steady long frames are
	// thus read without growing their buffer in steps.
	proven int
}

func newFrameReader(r io.Reader, pool *Buffers) *frameReader {
	return &frameReader{src: bufio.NewReaderSize(r, readChunk), pool: pool, proven: readChunk}
}

// next returns the next frame, length prefix included. io.EOF means that the stream ended between two frames.
func (r *frameReader) next() (*buffer, error) {
	var prefix [wire.PrefixSize]byte
	if _, err := io.ReadFull(r.src, prefix[:]); err != nil {
		return nil, err
	}
	length, err := wire.FrameLength(prefix[:])
	if err != nil && prefix[0] == tlsAlert && prefix[1] == tlsMajor {
		return nil, fmt.Errorf("%w: it wants TLS; set tls of the broker in the config", ErrBadFrame)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	buf, err := r.fill(prefix, wire.PrefixSize+length)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}

// fill reads the rest of a frame of total bytes, growing its buffer only as bytes arrive.
func (r *frameReader) fill(prefix [wire.PrefixSize]byte, total int) (*buffer, error) {
	buf := r.pool.get(min(total, r.proven))
	got := copy(buf.b, prefix[:])
	for {
		n, err := io.ReadFull(r.src, buf.b[got:])
		got += n
		if err != nil {
			r.pool.put(buf)
			return nil, err
		}
		if got == total {
			r.proven = max(r.proven, total)
			return buf, nil
		}
		grown := r.pool.get(min(total, 2*got))
		copy(grown.b, buf.b)
		r.pool.put(buf)
		buf = grown
	}
}
