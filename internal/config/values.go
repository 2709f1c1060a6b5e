package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Size is a number of bytes, written with a unit: 512B, 256KiB, 16MiB, 2GiB. Zero: left out.
type Size int64

type sizeUnit struct {
	suffix string
	bytes  int64
}

// sizeUnits are the units, the larger first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// ParseSize reads "256KiB".
func ParseSize(s string) (Size, error) {
	for _, u := range sizeUnits() {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is no size such as 256KiB", s)
}

// String writes the largest unit that divides the size.
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	for _, u := range sizeUnits() {
		if int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return "" // cannot be: every size is a whole number of bytes
}

// UnmarshalYAML reads the written form.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseSize(n.Value)
	*s = v
	return err
}

// MarshalYAML writes the written form.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }

// NameServers is host:port of each name server, or one http address that lists them.
type NameServers []string

// UnmarshalYAML reads a list, or one text with ';' or ',' between the addresses.
func (ns *NameServers) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*ns = splitAddresses(n.Value)
		return nil
	}
	for _, c := range n.Content {
		*ns = append(*ns, splitAddresses(c.Value)...)
	}
	return nil
}

func splitAddresses(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// StartFrom is where a new group starts.
type StartFrom struct {
	Position  string    // "first", "last" or "timestamp"
	Timestamp time.Time // with "timestamp"
}

// The positions of StartFrom.
const (
	StartFirst     = "first"
	StartLast      = "last"
	StartTimestamp = "timestamp"
)

// UnmarshalYAML reads first, last, or {timestamp: RFC 3339}.
func (s *StartFrom) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		s.Position = n.Value
		return nil
	}
	var at struct {
		Timestamp string `yaml:"timestamp"`
	}
	if err := n.Decode(&at); err != nil {
		return fmt.Errorf("reading start_from: %w", err)
	}
	t, err := time.Parse(time.RFC3339, at.Timestamp)
	if err != nil {
		return fmt.Errorf("reading start_from.timestamp: %w", err)
	}
	s.Position, s.Timestamp = StartTimestamp, t
	return nil
}
