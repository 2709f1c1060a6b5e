package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/rocketmq"
)

// clientFiles are the certificates that the client of a cluster goes by. They are read at each connection, since they may be
// renewed; when they cannot be read, the ones read before stay in use, and the log says so. Safe for concurrent use.
type clientFiles struct {
	config *config.ClientTLS
	own    string // certificate of the broker in this process, when the client has to meet that very one
	log    *slog.Logger

	mu   sync.Mutex
	last *tls.Config
	told string // the last error that was logged
}

// newClientFiles is nil for a cluster without TLS.
func newClientFiles(b *config.Broker, log *slog.Logger) (*clientFiles, error) {
	f := &clientFiles{config: b.TLS, log: log}
	if embedded := b.Embedded != nil && b.Embedded.TLS != nil; f.config == nil {
		if !embedded {
			return nil, nil //nolint:nilnil // documented
		}
		f.config = &config.ClientTLS{}
	}
	if b.Embedded != nil && b.Embedded.TLS != nil && f.config.CA == "" && f.config.ServerName == "" {
		f.own = b.Embedded.TLS.Cert
	}
	fresh, err := f.read()
	f.use(fresh)
	return f, err
}

// use takes what was read for those connections that find the files unreadable, and returns what was.
func (f *clientFiles) use(fresh *tls.Config) (before *tls.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, f.last, f.told = f.last, fresh, ""
	return before
}

// current is for the next connection.
func (f *clientFiles) current() *tls.Config {
	fresh, err := f.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.last, f.told = fresh, ""
	case f.told != err.Error():
		f.told = err.Error()
		f.log.Warn("certificates cannot be read; those read before stay in use", "error", err.Error())
	}
	return f.last
}

func (f *clientFiles) source() rocketmq.TLS {
	return rocketmq.TLS{Config: func() (*tls.Config, error) { return f.current(), nil }, CA: f.config.CA, Cert: f.config.Cert}
}

func (f *clientFiles) read() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.config.ServerName}
	var err error
	if f.config.CA != "" {
		if out.RootCAs, err = authorities(f.config.CA); err != nil {
			return nil, &fileError{"tls.ca", err}
		}
	}
	if f.config.Cert != "" {
		cert, err := tls.LoadX509KeyPair(f.config.Cert, f.config.Key)
		if err != nil {
			return nil, pairError("tls.", f.config.Key, fmt.Errorf("reading the certificate %s and its key %s: %w", f.config.Cert, f.config.Key, err))
		}
		out.Certificates = []tls.Certificate{cert}
	}
	switch {
	case f.config.SkipVerify:
		out.InsecureSkipVerify = true //nolint:gosec // what the key says, with a warning
	case f.own != "":
		out.InsecureSkipVerify = true //nolint:gosec // compared with the very file that the broker uses
		out.VerifyConnection = sameAs(f.own)
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
