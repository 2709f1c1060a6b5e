package wire

import (
	"errors"
	"fmt"
)

// The kinds of failure. Every error of this package wraps one of them.
var (
	// ErrMalformed is a frame, header, body or message that breaks the protocol. A connection that carried a malformed
	// frame cannot be used any more; a malformed message costs only itself (see Message.Decode).
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is input whose stated or decompressed size passes the limit that was asked for.
	ErrTooLarge = errors.New("too large")
	// ErrField is a header field that is missing or of the wrong type.
	ErrField = errors.New("bad header field")
	// ErrNotEncodable is a value that the wire form cannot carry.
	ErrNotEncodable = errors.New("cannot be encoded")
	// ErrChecksum is a body that does not fit its CRC.
	ErrChecksum = errors.New("wrong checksum")
	// ErrName is a topic or group name that brokers refuse.
	ErrName = errors.New("invalid name")
	// ErrFilter is a filter expression that cannot be used.
	ErrFilter = errors.New("invalid filter expression")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func notEncodable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotEncodable, fmt.Sprintf(format, args...))
}
