package rocketmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
)

// TLSDialer returns a Dialer whose connections speak TLS as c says, for Config.Dial. Without c.ServerName a server must prove
// the host of the address that was dialed, which for brokers is what their routes name.
func TLSDialer(c *tls.Config) remoting.Dialer {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		plain, err := remoting.DialTCP(ctx, addr)
		if err != nil {
			return nil, err
		}
		one := c
		if c.ServerName == "" && !c.InsecureSkipVerify {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("finding the host of %s: %w", addr, err), plain.Close())
			}
			one = c.Clone()
			one.ServerName = host
		}
		secure := tls.Client(plain, one)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(handshakeError(addr, err), plain.Close())
		}
		return secure, nil
	}
}

// handshakeError says what a failed handshake means. A RocketMQ server that does not speak TLS takes the greeting for a frame
// of hundreds of megabytes, and closes the connection.
func handshakeError(addr string, err error) error {
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	if garbled || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("agreeing on TLS with %s: the server does not speak TLS, or ended the connection: %w", addr, err)
	}
	return fmt.Errorf("agreeing on TLS with %s: %w", addr, err)
}
