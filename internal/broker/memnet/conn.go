package memnet

import (
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// Conn is one end of a connection in memory. It has the methods of net.TCPConn that matter here: half close included.
type Conn struct {
	in, out       *stream
	local, remote netip.AddrPort
	read, write   deadline
}

// Pipe makes a connected pair whose ends have the given addresses.
func Pipe(a, b netip.AddrPort) (atA, atB *Conn) {
	ab, ba := newStream(), newStream()
	return newConn(ba, ab, a, b), newConn(ab, ba, b, a)
}

func newConn(in, out *stream, local, remote netip.AddrPort) *Conn {
	return &Conn{in: in, out: out, local: local, remote: remote, read: newDeadline(), write: newDeadline()}
}

// Read takes what has arrived; it waits while that is nothing.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p, c.read.passed)
	return n, c.named("read", err)
}

// Write hands over p; it waits while the peer's buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p, c.write.passed)
	return n, c.named("write", err)
}

// Close ends both directions. What was written before can still be read by the peer.
func (c *Conn) Close() error {
	c.in.abandon()
	c.out.finish()
	c.read.stop()
	c.write.stop()
	return nil
}

// CloseWrite ends the direction to the peer, which reads EOF after what was written.
func (c *Conn) CloseWrite() error {
	c.out.finish()
	return nil
}

// LocalAddr is the address of this end.
func (c *Conn) LocalAddr() net.Addr { return tcpAddr(c.local) }

// RemoteAddr is the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return tcpAddr(c.remote) }

// SetDeadline bounds present and future reads and writes; the zero time lifts the bound.
func (c *Conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

// SetReadDeadline bounds present and future reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return nil
}

// SetWriteDeadline bounds present and future writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return nil
}

func (c *Conn) named(op string, err error) error {
	switch err { //nolint:errorlint // The streams return exactly these values.
	case nil, io.EOF:
		return err
	case os.ErrDeadlineExceeded, io.ErrClosedPipe:
		return &net.OpError{Op: op, Net: "memory", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	default:
		return err
	}
}
