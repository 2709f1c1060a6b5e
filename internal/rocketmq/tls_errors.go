package rocketmq

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// mistrust says why the server's certificate is not taken; "" when that is not the matter.
func (t TLS) mistrust(name string, err error) string {
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		from := "none of the system's authorities; name the file with the cluster's in tls.ca"
		if t.CA != "" {
			from = "none of the authorities in " + t.CA + " (tls.ca)"
		}
		return fmt.Sprintf("the certificate of the server%s is signed by %s", of(unknown.Cert), from)
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate of the server is for %s and not for %s; set tls.server_name to the name that it proves", namesOf(wrong.Certificate), name)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired && invalid.Cert != nil {
		c := invalid.Cert
		if time.Now().Before(c.NotBefore) {
			return fmt.Sprintf("the certificate%s is valid from %s on only: is this machine's clock right?", of(c), c.NotBefore.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("the certificate%s expired on %s; renew it at the server, or in %s when it is the authority's", of(c), c.NotAfter.UTC().Format(time.RFC3339), orSystem(t.CA))
	}
	return ""
}

func of(c *x509.Certificate) string {
	if c == nil || c.Subject.String() == "" {
		return ""
	}
	return " (" + c.Subject.String() + ")"
}

func orSystem(ca string) string {
	if ca == "" {
		return "the system's authorities"
	}
	return ca
}

func namesOf(c *x509.Certificate) string {
	if c == nil {
		return "another name"
	}
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name at all (it has no subject alternative name)"
	}
	return strings.Join(names, ", ")
}

// alert says why the server ended a handshake: in the names of the standard library, which has no type for them.
func (t TLS) alert(err error) string {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return ""
	}
	text := op.Err.Error()
	switch {
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate") && t.Cert == "",
		strings.Contains(text, "handshake failure") && t.Cert == "":
		if t.Cert == "" {
			return "the server wants a certificate of its clients; set tls.cert and tls.key"
		}
		return "the server did not get the certificate in " + t.Cert + " (tls.cert): it is from none of the authorities that it asks for"
	case strings.Contains(text, "expired certificate"):
		return "the server says that the certificate in " + t.Cert + " (tls.cert) has expired"
	case t.Cert != "" && strings.Contains(text, "certificate"):
		return "the server refuses the certificate in " + t.Cert + " (tls.cert)"
	case strings.Contains(text, "protocol version"):
		return "the server speaks no version of TLS from 1.2 on"
	}
	return ""
}
