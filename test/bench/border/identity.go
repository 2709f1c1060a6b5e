package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"
)

const (
	certEnv = "BORDER_BENCH_CERT"
	keyEnv  = "BORDER_BENCH_KEY"
)

// identity is one certificate for both ends: what costs is the cipher, and that is the one AutoMTLS gets too.
type identity struct{ cert, key []byte }

func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader) // the curve of go-plugin's AutoMTLS
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	return &identity{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func (i *identity) env() []string {
	return []string{certEnv + "=" + string(i.cert), keyEnv + "=" + string(i.key)}
}

func identityFromEnv() (*tls.Config, error) {
	return (&identity{cert: []byte(os.Getenv(certEnv)), key: []byte(os.Getenv(keyEnv))}).config()
}

func (i *identity) config() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(i.cert, i.key)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ServerName: "localhost",
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}, nil
}
