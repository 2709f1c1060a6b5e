package border

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Frames carries the frames of a lane: a gRPC stream does, and a Pipe. One goroutine may send while another receives.
type Frames interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// Pipe carries the frames of one lane over a socket of the lane's own, in the place of its gRPC stream: each frame behind its
// length, four bytes big-endian. What it saves is gRPC's cutting of a batch into pieces of 16 KiB at one end and its joining
// them at the other (docs/decisions/0017-lane-sockets.md).
type Pipe struct {
	conn  net.Conn
	codec Codec
	in    *bufio.Reader
	head  [4]byte
	size  [4]byte
	parts [][]byte
}

// pipeBuffer joins the reads of small frames; what a large one has more is read to its place.
const pipeBuffer = 4 << 10

// pipeStep is more than almost every frame has.
const pipeStep = 2 << 20

// Pipe makes one end of a lane's socket. Whoever made the connection closes it; that ends SendMsg and RecvMsg.
func (l *Link) Pipe(conn net.Conn) *Pipe {
	return &Pipe{conn: conn, codec: l.Codec, in: bufio.NewReaderSize(conn, pipeBuffer)}
}

// SendMsg writes one frame, whatever Codec.Marshal takes. It blocks while the other end does not read.
func (p *Pipe) SendMsg(m any) error {
	data, err := p.codec.Marshal(m)
	if err != nil {
		return err
	}
	defer data.Free()
	n := data.Len()
	if n > MaxMessage {
		return fmt.Errorf("a frame of %d bytes is more than a lane takes (%d)", n, MaxMessage)
	}
	binary.BigEndian.PutUint32(p.size[:], uint32(n))
	p.parts = append(p.parts[:0], p.size[:])
	for _, piece := range data {
		p.parts = append(p.parts, piece.ReadOnlyData())
	}
	out := net.Buffers(p.parts)
	_, err = out.WriteTo(p.conn)
	clear(p.parts)
	if err != nil {
		return fmt.Errorf("writing to a lane's socket: %w", err)
	}
	return nil
}

// RecvMsg reads the next frame into an *In. It returns io.EOF when the other end is closed between two frames, and a status of
// codes.Internal, as gRPC does, for a frame that cannot be read.
func (p *Pipe) RecvMsg(m any) error {
	in, ok := m.(*In)
	if !ok {
		return fmt.Errorf("a lane's socket carries frames, not %T", m)
	}
	if _, err := io.ReadFull(p.in, p.head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("reading a lane's socket: %w", err)
	}
	n := binary.BigEndian.Uint32(p.head[:])
	if n == 0 || n > MaxMessage {
		return status.Errorf(codes.Internal, "a frame of %d bytes on a lane's socket; it takes 1 to %d", n, MaxMessage)
	}
	data, err := p.body(int(n))
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("reading a frame of %d bytes from a lane's socket: %w", n, err)
	}
	if err := in.read(data); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// body reads a frame's n bytes into memory of its own. A length is a claim: memory is taken for pipeStep at once, and beyond it
// for twice what came.
func (p *Pipe) body(n int) ([]byte, error) {
	data := uncleared(min(n, pipeStep))
	for at := 0; ; {
		if _, err := io.ReadFull(p.in, data[at:]); err != nil {
			return nil, err
		}
		if at = len(data); at == n {
			return data, nil
		}
		more := uncleared(min(n, 2*at))
		copy(more, data)
		data = more
	}
}
