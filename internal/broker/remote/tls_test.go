package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// authority signs certificates for one test.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) issue(t *testing.T) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secured starts a server that wants TLS and echoes codes.
func secured(t *testing.T, c *tls.Config) (address string) {
	t.Helper()
	s := remote.NewServer(remote.Options{
		Listen:  func(a string) (net.Listener, error) { return (&net.ListenConfig{}).Listen(t.Context(), "tcp", a) },
		Address: "127.0.0.1:0", MaxFrame: 1 << 20, MaxPending: 1 << 20, TLS: c, Logger: slog.New(slog.DiscardHandler),
		Handle: func(r *remote.Request) { r.Reply(&remote.Answer{Code: wire.ResponseCode(r.Command.Code)}) },
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Address()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // some tests close it themselves
	return nc
}

func TestTLS_whoIsLetIn(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	server := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.issue(t)}}
	mutual := server.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ours.pool
	trusting := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ours.pool, ServerName: "127.0.0.1"}
	with := func(c tls.Certificate) *tls.Config {
		out := trusting.Clone()
		out.Certificates = []tls.Certificate{c}
		return out
	}
	for name, c := range map[string]struct {
		server, client *tls.Config
		in             bool
	}{
		"server only":               {server, trusting, true},
		"mutual":                    {mutual, with(ours.issue(t)), true},
		"mutual, no certificate":    {mutual, trusting, false},
		"mutual, another authority": {mutual, with(theirs.issue(t)), false},
		"client does not trust":     {server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: theirs.pool, ServerName: "127.0.0.1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := secured(t, c.server)
			nc := tls.Client(dial(t, address), c.client)
			frame, err := wire.AppendFrame(nil, &wire.Command{Code: 7})
			if err != nil {
				t.Fatal(err)
			}
			_, err = nc.Write(frame)
			if err == nil {
				_, err = io.ReadFull(nc, make([]byte, 8))
			}
			if (err == nil) != c.in {
				t.Errorf("in: %t (%v), want %t", err == nil, err, c.in)
			}
		})
	}
}

// TestTLS_plainClient is told by an alert at once, whatever it sends, and harms nobody.
func TestTLS_plainClient(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	address := secured(t, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.issue(t)}})
	plain := dial(t, address)
	request(t, plain, &wire.Command{Code: 7})
	if err := plain.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(plain)
	if want := "\x15\x03\x03\x00\x02\x02\x46"; string(got) != want || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the plain client reads %x, %v", got, err)
	}
	silent := dial(t, address) // says nothing and keeps nobody waiting
	nc := tls.Client(dial(t, address), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ours.pool, ServerName: "127.0.0.1"})
	request(t, nc, &wire.Command{Code: 7})
	if a := next(t, nc); a.Code != 7 {
		t.Errorf("answer %+v", a)
	}
	if err := silent.Close(); err != nil {
		t.Error(err)
	}
}
