package rocketmq

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// selfSigned makes a certificate that is its own authority.
func selfSigned(t *testing.T, host string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// accepting runs a listener that hands each connection to serve.
func accepting(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serve(nc)
			_ = nc.Close() // the client may have closed it
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		<-done
	})
	return l.Addr().String()
}

// TestTLSDialer is scenario SE-P05, and the first half of SE-P04.
func TestTLSDialer(t *testing.T) {
	t.Parallel()
	good, pool := selfSigned(t, "127.0.0.1", time.Now().Add(time.Hour))
	old, oldPool := selfSigned(t, "127.0.0.1", time.Now().Add(-time.Hour))
	named, namedPool := selfSigned(t, "mq.example.org", time.Now().Add(time.Hour))
	handshake := func(c tls.Certificate) func(net.Conn) {
		return func(nc net.Conn) {
			server := tls.Server(nc, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c}})
			_ = server.HandshakeContext(t.Context()) // the client tells how it went
		}
	}
	for name, c := range map[string]struct {
		serve  func(net.Conn)
		config *tls.Config
		want   string // "" = connected
	}{
		"good":           {handshake(good), &tls.Config{RootCAs: pool}, ""},
		"wrong CA":       {handshake(good), &tls.Config{RootCAs: namedPool}, "signed by none of the authorities in /etc/mq/ca.pem (tls.ca)"},
		"expired":        {handshake(old), &tls.Config{RootCAs: oldPool}, "expired on "},
		"another host":   {handshake(named), &tls.Config{RootCAs: namedPool}, "is for mq.example.org and not for 127.0.0.1; set tls.server_name"},
		"named":          {handshake(named), &tls.Config{RootCAs: namedPool, ServerName: "mq.example.org"}, ""},
		"not verified":   {handshake(named), &tls.Config{InsecureSkipVerify: true}, ""},
		"no TLS, closes": {func(net.Conn) {}, &tls.Config{RootCAs: pool}, "does not speak TLS"},
		"no TLS, speaks": {func(nc net.Conn) { _, _ = io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\n") }, &tls.Config{RootCAs: pool}, "does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.MinVersion = tls.VersionTLS12
			addr := accepting(t, c.serve)
			nc, err := TLSDialer(TLS{Config: func() (*tls.Config, error) { return c.config, nil }, CA: "/etc/mq/ca.pem"})(t.Context(), addr)
			if nc != nil {
				defer func() { _ = nc.Close() }()
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("dialing: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), addr)):
				t.Errorf("dialing: %v, want %q", err, c.want)
			}
		})
	}
}

// TestTLSDialer_ownCertificate: a server that wants a certificate says so after the handshake, since TLS 1.3.
func TestTLSDialer_ownCertificate(t *testing.T) {
	t.Parallel()
	server, pool := selfSigned(t, "127.0.0.1", time.Now().Add(time.Hour))
	stranger, _ := selfSigned(t, "stranger", time.Now().Add(time.Hour))
	friend, friends := selfSigned(t, "friend", time.Now().Add(time.Hour))
	old, olds := selfSigned(t, "old", time.Now().Add(-time.Hour))
	for name, c := range map[string]struct {
		own    *tls.Certificate
		wanted *x509.CertPool
		want   string
	}{
		"none":            {nil, friends, "the server wants a certificate of its clients; set tls.cert and tls.key"},
		"of a stranger":   {&stranger, friends, "/etc/mq/own.pem (tls.cert)"},
		"expired":         {&old, olds, "/etc/mq/own.pem (tls.cert)"},
		"the one it asks": {&friend, friends, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := accepting(t, func(nc net.Conn) {
				s := tls.Server(nc, &tls.Config{
					MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.wanted,
				})
				if s.HandshakeContext(t.Context()) == nil {
					_, _ = s.Write([]byte("x"))
				}
			})
			config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
			from := TLS{Config: func() (*tls.Config, error) { return config, nil }}
			if c.own != nil {
				// Sent whatever authorities the server names, as many clients do.
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.own, nil }
				from.Cert = "/etc/mq/own.pem"
			}
			nc, err := TLSDialer(from)(t.Context(), addr)
			if err == nil {
				defer func() { _ = nc.Close() }()
				_, err = nc.Read(make([]byte, 1))
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("speaking: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), addr)):
				t.Errorf("speaking: %v, want %q", err, c.want)
			}
		})
	}
}

// TestPlainClientOfATLSServer is told what the server wants.
func TestPlainClientOfATLSServer(t *testing.T) {
	t.Parallel()
	addr := accepting(t, func(nc net.Conn) { _, _ = nc.Write([]byte{0x15, 3, 3, 0, 2, 2, 70}) })
	conn, err := remoting.Dial(t.Context(), addr, remoting.Config{Buffers: &remoting.Buffers{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Call(t.Context(), wire.NewRequest(&wire.RouteRequest{Topic: "T"}, nil))
	if !errors.Is(err, remoting.ErrBadFrame) || !strings.Contains(err.Error(), "it wants TLS") {
		t.Errorf("Call = %v", err)
	}
}
