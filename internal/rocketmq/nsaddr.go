package rocketmq

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ParseNameServers reads name server addresses: each text is one address or a list separated by ";" or ",". An address is
// host:port with a DNS name, an IPv4 address or an IPv6 address in brackets; blanks around it are ignored. Names are not
// resolved here: they are at each connection, so that a name server can move. Duplicates are dropped, the order stays. The
// error names the bad element by its position, counted from 1 over all texts; an empty element is an error too.
//
// In the place of addresses stands one http:// or https:// address with a path: a web server's list of them, which a client
// asks for (addressList). Without a path http://host:port is the name server itself, as Java's and Go's clients read it
// (remoting-protocol.md 6.2).
func ParseNameServers(texts ...string) ([]string, error) {
	var addrs []string
	seen := map[string]bool{}
	position := 0
	for _, text := range texts {
		for element := range strings.SplitSeq(strings.ReplaceAll(text, ";", ","), ",") {
			position++
			addr, err := parseNameServer(strings.TrimSpace(element))
			if err != nil {
				return nil, fmt.Errorf("name server %d (%q): %w; write host:port", position, strings.TrimSpace(element), err)
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
	if i := slices.IndexFunc(addrs, isList); i >= 0 && len(addrs) > 1 {
		return nil, fmt.Errorf("%s lists the name servers, and others are given beside it; write either", addrs[i])
	}
	return addrs, nil
}

// isList tells a list's address from a name server's.
func isList(addr string) bool { return strings.Contains(addr, "://") }

func parseNameServer(element string) (string, error) {
	if !isList(element) {
		return element, checkHostPort(element)
	}
	u, err := url.Parse(element)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("scheme before the address, and no http:// address of a list")
	case u.User != nil:
		return "", errors.New("name and password in an address, which logs show")
	case strings.Trim(u.Path, "/") != "":
		return element, nil
	case strings.HasPrefix(u.Host, instancePrefix):
		return "", errors.New("end point of an instance, whose name is a namespace to Java's client and nothing here")
	case u.Scheme == "https" || u.RawQuery != "":
		return "", errors.New("address of a list without its path")
	}
	return u.Host, checkHostPort(u.Host)
}

// instancePrefix begins the host of a cloud instance's end point; Java's client makes a namespace of it.
const instancePrefix = "MQ_INST_"

func checkHostPort(addr string) error {
	if addr == "" {
		return errors.New("empty element")
	}
	if strings.ContainsAny(addr, " \t\r\n") {
		return errors.New("blank inside the address")
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
