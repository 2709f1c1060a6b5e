package rocketmq

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// ParseNameServers reads name server addresses: each text is one address or a list separated by ";" or ",". An address is
// host:port with a DNS name, an IPv4 address or an IPv6 address in brackets; blanks around it are ignored. Names are not
// resolved here: they are at each connection, so that a name server can move. Duplicates are dropped, the order stays. The
// error names the bad element by its position, counted from 1 over all texts; an empty element is an error too.
func ParseNameServers(texts ...string) ([]string, error) {
	var addrs []string
	seen := map[string]bool{}
	position := 0
	for _, text := range texts {
		for element := range strings.SplitSeq(strings.ReplaceAll(text, ";", ","), ",") {
			position++
			addr := strings.TrimSpace(element)
			if err := checkHostPort(addr); err != nil {
				return nil, fmt.Errorf("name server %d (%q): %w; write host:port", position, addr, err)
			}
			if !seen[addr] {
				seen[addr] = true
				addrs = append(addrs, addr)
			}
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("no name server given; write host:port")
	}
	return addrs, nil
}

func checkHostPort(addr string) error {
	if addr == "" {
		return errors.New("empty element")
	}
	if strings.ContainsAny(addr, " \t\r\n") {
		return errors.New("blank inside the address")
	}
	if strings.Contains(addr, "://") {
		return errors.New("scheme before the address")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("not an address with a port: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q is not 1 to 65535", port)
	}
	return checkHost(host, strings.HasPrefix(addr, "["))
}

func checkHost(host string, bracketed bool) error {
	if host == "" {
		return errors.New("no host")
	}
	if bracketed {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return fmt.Errorf("%q is no IPv6 address", host)
		}
		return nil
	}
	host = strings.TrimSuffix(host, ".") // a rooted name
	for label := range strings.SplitSeq(host, ".") {
		if !validLabel(label) {
			return fmt.Errorf("%q is no host name", host)
		}
	}
	return checkIPv4(host)
}

// checkIPv4 refuses what looks like an IPv4 address and is none: a host name's last label has a letter.
func checkIPv4(host string) error {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") != "" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Is4() {
		return fmt.Errorf("%q is no IPv4 address", host)
	}
	return nil
}

// validLabel accepts letters, digits, "-" and "_" (which names in container networks have).
func validLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, r := range label {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
