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

// TLS says how connections are secured.
type TLS struct {
	// Config is asked for at each connection, so that renewed certificates are used without a restart. It is not changed.
	Config func() (*tls.Config, error)
	// CA and Cert are the files that authorities and own certificate come from, for errors. Empty: those of the system, none.
	CA, Cert string
}

// TLSDialer returns a Dialer whose connections speak TLS as t says, for Config.Dial. Without a server name a server must prove
// the host of the address that was dialed, which for brokers is what their routes name. Errors say which file or key of the
// config is at odds with the server.
func TLSDialer(t TLS) remoting.Dialer {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := t.Config()
		if err != nil {
			return nil, fmt.Errorf("securing the connection to %s: %w", addr, err)
		}
		plain, err := remoting.DialTCP(ctx, addr)
		if err != nil {
			return nil, err
		}
		if c.ServerName == "" && !c.InsecureSkipVerify {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("finding the host of %s: %w", addr, err), plain.Close())
			}
			c = c.Clone()
			c.ServerName = host
		}
		secure := tls.Client(plain, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(t.handshakeError(addr, c.ServerName, err), plain.Close())
		}
		return &secured{secure, t, addr}, nil
	}
}

// secured is a connection whose server may still refuse the own certificate: in TLS 1.3 it says so after the handshake.
type secured struct {
	*tls.Conn
	t    TLS
	addr string
}

// Read is called by one goroutine, the one that reads frames.
func (s *secured) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err != nil {
		if why := s.t.alert(err); why != "" {
			err = fmt.Errorf("speaking TLS with %s: %s: %w", s.addr, why, err)
		}
	}
	return n, err //nolint:wrapcheck // io.EOF must stay what it is
}

// handshakeError says what a failed handshake means, and which file or key to look at. A RocketMQ server that does not speak
// TLS takes the greeting for a frame of hundreds of megabytes, and closes the connection.
func (t TLS) handshakeError(addr, name string, err error) error {
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	why := t.mistrust(name, err)
	switch {
	case why != "":
	case garbled || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		why = "the server does not speak TLS, or ended the connection; leave tls out of the broker in the config, or see the server's tls.server.mode"
	default:
		why = t.alert(err)
	}
	if why == "" {
		return fmt.Errorf("agreeing on TLS with %s: %w", addr, err)
	}
	return fmt.Errorf("agreeing on TLS with %s: %s: %w", addr, why, err)
}
