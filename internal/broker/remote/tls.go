package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// tlsHandshake is the first byte of every TLS connection. A frame cannot begin with it: its length would be more than
	// 350 MB (remoting-protocol.md 1.10).
	tlsHandshake = 0x16
	// alertTimeout bounds the one write to a client that does not speak TLS.
	alertTimeout = time.Second
)

// handshakeTimeout is how long a client may take to agree on TLS.
const handshakeTimeout = 10 * time.Second

// handshake agrees on TLS when the server wants it. It runs on the reading goroutine, before anything is read.
func (c *Conn) handshake() error {
	secure, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := c.raw.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return fmt.Errorf("bounding the handshake: %w", err)
	}
	if err := secure.HandshakeContext(context.Background()); err != nil {
		if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			c.server.options.Logger.Warn("a client was not let in", "peer", c.remote.String(), "error", err.Error())
		}
		return fmt.Errorf("agreeing on TLS: %w", err)
	}
	if err := c.raw.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("ending the handshake: %w", err)
	}
	return nil
}

// errPlain ends a connection whose client does not speak TLS.
var errPlain = errors.New("the client does not speak TLS, and this broker wants it")

// sniffer is an accepted connection that looks at the first byte: who does not begin a handshake is told by an alert, which
// TLS libraries and streamd's client know, instead of being left to guess.
type sniffer struct {
	net.Conn
	seen bool
}

// Read is called by one goroutine, the one that reads frames.
func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if s.seen || n == 0 {
		return n, err //nolint:wrapcheck // the reader tells what it was reading
	}
	s.seen = true
	if p[0] == tlsHandshake {
		return n, err //nolint:wrapcheck // as above
	}
	return 0, errors.Join(errPlain, s.alert())
}

// alert says "protocol version" in the words of TLS: fatal alert 70.
func (s *sniffer) alert() error {
	if err := s.SetWriteDeadline(time.Now().Add(alertTimeout)); err != nil {
		return fmt.Errorf("telling it: %w", err)
	}
	if _, err := s.Write([]byte{0x15, 3, 3, 0, 2, 2, 70}); err != nil {
		return fmt.Errorf("telling it: %w", err)
	}
	return nil
}
