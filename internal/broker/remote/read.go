package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const (
	lengthSize = 4
	// minFrame is the smallest length that can stand before a frame: the header's own length.
	minFrame = 4
	// readBuffer is taken by a connection once its first frame was read, so that a peer which only connects, or speaks
	// something else, or promises much and sends little, costs little.
	readBuffer = 16 << 10
	// firstGrowth is what a frame is given before any of it has arrived.
	firstGrowth = 128
)

// read is the reading goroutine.
func (c *Conn) read() {
	defer c.Close()
	defer c.release()
	err := c.readFrames()
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return
	}
	c.server.options.Logger.Debug("closing a connection that cannot be read", "peer", c.remote.String(), "error", err.Error())
}

func (c *Conn) readFrames() error {
	if err := c.handshake(); err != nil {
		return err
	}
	in, buf := io.Reader(c.nc), []byte(nil)
	var prefix [lengthSize]byte
	for {
		if _, err := io.ReadFull(in, prefix[:]); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(prefix[:])
		if length < minFrame || int64(length)+lengthSize > int64(c.server.options.MaxFrame) {
			return fmt.Errorf("reading a frame: its length %d is outside %d..%d", length, minFrame, c.server.options.MaxFrame-lengthSize)
		}
		frame, err := readFrame(in, buf[:0], prefix, int(length), c.reserve)
		if err != nil {
			return err
		}
		if _, buffered := in.(*bufio.Reader); !buffered {
			in = bufio.NewReaderSize(in, readBuffer)
		}
		c.touch()
		if !c.waitForRoom() {
			return nil
		}
		if err := c.serve(frame); err != nil {
			return err
		}
		if buf = frame; cap(buf) > keepBuffer {
			buf = nil
		}
		c.release()
	}
}

// readFrame reads the rest of a frame behind its prefix. The buffer at most doubles with what has arrived, and reserve is
// asked before it becomes larger than an idle connection's.
func readFrame(in io.Reader, buf []byte, prefix [lengthSize]byte, length int, reserve func(size int) error) ([]byte, error) {
	total := lengthSize + length
	if cap(buf) == 0 {
		buf = make([]byte, 0, min(total, firstGrowth))
	}
	buf = append(buf, prefix[:]...)
	for len(buf) < total {
		want := min(total, max(2*len(buf), firstGrowth, cap(buf)))
		if cap(buf) < want {
			if err := reserve(want); err != nil {
				return nil, fmt.Errorf("reading a frame of %d bytes: %w", total, err)
			}
			grown := make([]byte, len(buf), want)
			copy(grown, buf)
			buf = grown
		}
		at := len(buf)
		buf = buf[:want]
		if _, err := io.ReadFull(in, buf[at:]); err != nil {
			return nil, fmt.Errorf("reading a frame of %d bytes: %w", total, err)
		}
	}
	return buf, nil
}

// serve handles one frame.
func (c *Conn) serve(frame []byte) error {
	cmd, err := decodeFrame(frame)
	if err != nil {
		return err
	}
	if cmd.IsResponse() {
		c.answered(cmd)
		return nil
	}
	c.server.options.Handle(&Request{Conn: c, Command: cmd})
	return nil
}

func (c *Conn) answered(cmd *wire.Command) {
	c.mu.Lock()
	k := c.calls[cmd.Opaque]
	delete(c.calls, cmd.Opaque)
	c.mu.Unlock()
	if k != nil {
		k.end(cmd, nil)
	}
}
