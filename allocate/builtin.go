package allocate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The names of the built-in strategies, as they stand in a config. The first six are RocketMQ's own.
const (
	NameAveragely         = "averagely"
	NameAveragelyByCircle = "averagely_by_circle"
	NameConfig            = "config"
	NameMachineRoom       = "machine_room"
	NameMachineRoomNearby = "machine_room_nearby"
	NameConsistentHash    = "consistent_hash"
	NameSticky            = "sticky"
)

// BuiltinVersion is the version that built-in strategies show in digests. It grows when a result changes.
const BuiltinVersion = "1"

// ErrUnknownStrategy means that no built-in strategy has the name.
var ErrUnknownStrategy = errors.New("unknown strategy")

// Names lists the built-in strategies in the order of the documentation.
func Names() []string {
	return []string{
		NameAveragely, NameAveragelyByCircle, NameConfig, NameMachineRoom, NameMachineRoomNearby, NameConsistentHash, NameSticky,
	}
}

// New makes a built-in strategy from its config name and its config as JSON (empty = none). Unknown keys are errors.
// The error wraps ErrUnknownStrategy when there is no such strategy.
func New(name string, config []byte) (Strategy, error) {
	switch name {
	case NameAveragely:
		return build(config, NewAveragely)
	case NameAveragelyByCircle:
		return build(config, NewAveragelyByCircle)
	case NameConfig:
		return build(config, NewConfigured)
	case NameMachineRoom:
		return build(config, NewMachineRoom)
	case NameMachineRoomNearby:
		return build(config, NewMachineRoomNearby)
	case NameConsistentHash:
		return build(config, NewConsistentHash)
	case NameSticky:
		return build(config, NewSticky)
	}
	return nil, fmt.Errorf("%w %q; use one of %s, or a plugin's", ErrUnknownStrategy, name, strings.Join(Names(), ", "))
}

func build[C any](config []byte, f func(C) (Strategy, error)) (Strategy, error) {
	var c C
	if len(bytes.TrimSpace(config)) > 0 {
		d := json.NewDecoder(bytes.NewReader(config))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("reading the strategy's config: %w", err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return nil, errors.New("reading the strategy's config: text after the JSON value")
		}
	}
	return f(c)
}

// JavaName returns the name that RocketMQ gives to a strategy (AllocateMessageQueueStrategy.getName), or "" when Java
// has none like it.
func JavaName(name string) string {
	switch name {
	case NameAveragely:
		return "AVG"
	case NameAveragelyByCircle:
		return "AVG_BY_CIRCLE"
	case NameConfig:
		return "CONFIG"
	case NameMachineRoom:
		return "MACHINE_ROOM"
	case NameMachineRoomNearby:
		return "MACHINE_ROOM_NEARBY"
	case NameConsistentHash:
		return "CONSISTENT_HASH"
	}
	return ""
}

// JavaExact tells whether a built-in strategy computes exactly what the Java client computes.
func JavaExact(name string) bool { return JavaName(name) != "" }

// GoExact tells whether a built-in strategy computes exactly what the Go client computes: its consistent hash uses
// another ring, its machine rooms index the wrong list, its nearby rooms are plain averages (consumer-semantics.md 2.10).
func GoExact(name string) bool {
	return slices.Contains([]string{NameAveragely, NameAveragelyByCircle, NameConfig}, name)
}

// NoConfig is the config of a strategy that takes none.
type NoConfig struct{}

// builtin is a strategy that is a name, needs and a pure function.
type builtin struct {
	name     string
	needs    Needs
	allocate func(Input) ([]int32, error)
}

func (s *builtin) Name() string { return s.name }
func (s *builtin) Needs() Needs { return s.needs }
func (s *builtin) Allocate(in Input) ([]int32, error) {
	if err := CheckInput(in); err != nil {
		return nil, fmt.Errorf("strategy %s: %w", s.name, err)
	}
	return s.allocate(in)
}
