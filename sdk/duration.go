package sdk

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that a config writes as text with a unit: "60s", "1m30s", "250ms". A number without a unit
// is refused.
type Duration time.Duration

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the duration as the config does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as the config does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads "60s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration", text)
	}
	*d = Duration(v)
	return nil
}
