package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
)

// ClientConfig is how to talk to a broker of a config: its name servers, signed and over TLS as it says. Errors carry their
// exit code. A broker whose certificate is not verified is warned of.
func ClientConfig(b *config.Broker, log *slog.Logger) (rocketmq.Config, error) {
	c := rocketmq.Config{NameServers: b.Servers(), Logger: log}
	if b.AccessKey != "" {
		c.Sign = rocketmq.Signer(b.AccessKey, b.SecretKey)
	}
	secure, err := clientTLS(b)
	if err != nil {
		return c, exitcode.With(fileFault(err), err)
	}
	if secure != nil {
		c.Dial = rocketmq.TLSDialer(secure)
	}
	if b.TLS != nil && b.TLS.SkipVerify {
		log.Warn("the broker's certificate is not verified: anybody on the way may read and change everything", "key", "tls.skip_verify")
	}
	return c, nil
}

// clientTLS is nil for a cluster without TLS.
func clientTLS(b *config.Broker) (*tls.Config, error) {
	own := b.Embedded != nil && b.Embedded.TLS != nil
	if b.TLS == nil && !own {
		return nil, nil //nolint:nilnil // documented
	}
	c := b.TLS
	if c == nil {
		c = &config.ClientTLS{}
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	var err error
	if c.CA != "" {
		if out.RootCAs, err = authorities(c.CA); err != nil {
			return nil, err
		}
	}
	if c.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate %s and its key %s: %w", c.Cert, c.Key, err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	switch {
	case c.SkipVerify:
		out.InsecureSkipVerify = true //nolint:gosec // what the key says, with a warning
	case own && c.CA == "" && c.ServerName == "":
		out.InsecureSkipVerify = true //nolint:gosec // compared with the very file that the broker uses
		out.VerifyConnection = sameAs(b.Embedded.TLS.Cert)
	}
	return out, nil
}

var errOtherCert = errors.New("the server's certificate is not the one in the config's embedded.tls.cert")

// sameAs takes the one certificate that is in a file. The file is read at each connection, since it may be renewed.
func sameAs(path string) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		chain, err := certificates(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(chain[0].Raw, s.PeerCertificates[0].Raw) {
			return errOtherCert
		}
		return nil
	}
}

// authorities reads a file of certificates.
func authorities(path string) (*x509.CertPool, error) {
	all, err := certificates(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, nil
}
