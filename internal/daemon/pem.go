package daemon

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// certificates reads the certificates of a PEM file, at least one.
func certificates(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading certificates of %s: %w", path, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading certificates: %s holds none in PEM", path)
	}
	return all, nil
}
