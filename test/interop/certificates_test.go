package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// secureName is what the servers' certificates are for. They do not prove 127.0.0.1, which is where the servers are.
const secureName = "mq.example.org"

// authority signs the certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign makes a key and a certificate for it. The first certificate is the authority's own.
func (a *authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed, key
}

// credentials are the files of one side of TLS: whom it trusts, and how it proves itself.
type credentials struct{ ca, cert, key string }

func credentialsIn(dir string) credentials {
	return credentials{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

// write puts a new certificate of the authority into the files, and the authority's own as the one to trust.
func (a *authority) write(t *testing.T, c credentials) {
	t.Helper()
	cert, key := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: filepath.Base(filepath.Dir(c.cert))}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, DNSNames: []string{secureName},
	})
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, c.ca, "CERTIFICATE", a.cert.Raw)
	writePEM(t, c.cert, "CERTIFICATE", cert.Raw)
	writePEM(t, c.key, "PRIVATE KEY", secret)
}

// writePEM replaces a file as those who renew certificates do: at once.
func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// secured makes a client of these tests speak TLS.
func secured(t *testing.T, c credentials) func(*rocketmq.Config) {
	t.Helper()
	text, err := os.ReadFile(c.ca)
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: secureName, Certificates: []tls.Certificate{own}}
	return func(rc *rocketmq.Config) {
		rc.Dial = rocketmq.TLSDialer(rocketmq.TLS{Config: func() (*tls.Config, error) { return config, nil }, CA: c.ca, Cert: c.cert})
	}
}
