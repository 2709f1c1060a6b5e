package acl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// addresses is a white address of RocketMQ (RemoteAddressStrategyFactory): "*", an address, a list with commas, IPv4 with "*",
// "3-9" or "{3,4,9}" in the place of a part, and here also a network such as 10.0.0.0/8.
type addresses []func(netip.Addr) bool

func (a addresses) match(addr netip.Addr) bool {
	for _, matches := range a {
		if matches(addr) {
			return true
		}
	}
	return false
}

var errAddress = errors.New("write an address, a list of them with commas, 10.0.0.0/8, 192.168.1.*, 192.168.1-9.*, 192.168.1.{3,4} or *")

func parseAddresses(text string) (addresses, error) {
	var all addresses
	for _, part := range splitOutside(text) {
		m, err := parseAddress(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is no address to let in: %w", part, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// splitOutside splits at the commas that are in no braces.
func splitOutside(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var parts []string
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

func parseAddress(text string) (func(netip.Addr) bool, error) {
	if text == "*" {
		return func(netip.Addr) bool { return true }, nil
	}
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Contains, nil
	}
	if one, err := netip.ParseAddr(text); err == nil {
		return func(a netip.Addr) bool { return a == one.Unmap() }, nil
	}
	return parsePattern(text)
}

// parsePattern reads an IPv4 address whose parts stand for several numbers.
func parsePattern(text string) (func(netip.Addr) bool, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return nil, errAddress
	}
	var allowed [4][256]bool
	for i, p := range parts {
		if err := allow(&allowed[i], p); err != nil {
			return nil, err
		}
	}
	return func(a netip.Addr) bool {
		if !a.Is4() {
			return false
		}
		for i, b := range a.As4() {
			if !allowed[i][b] {
				return false
			}
		}
		return true
	}, nil
}

func allow(numbers *[256]bool, text string) error {
	inner, braces := strings.CutPrefix(text, "{")
	if braces {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "}"); !closed {
			return errAddress
		}
		for one := range strings.SplitSeq(inner, ",") {
			if err := allowRange(numbers, strings.TrimSpace(one)); err != nil {
				return err
			}
		}
		return nil
	}
	if text == "*" {
		text = "0-255"
	}
	return allowRange(numbers, text)
}

func allowRange(numbers *[256]bool, text string) error {
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	from, err := strconv.ParseUint(low, 10, 8)
	if err != nil {
		return errAddress
	}
	to, err := strconv.ParseUint(high, 10, 8)
	if err != nil || to < from {
		return errAddress
	}
	for n := from; n <= to; n++ {
		numbers[n] = true
	}
	return nil
}
