package grouprelease

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/streamd/streamd/sdk"
)

// Position is where an operator wants a queue to go on. The zero value is the queue's first message.
type Position struct {
	kind   positionKind
	offset int64
	at     time.Time
}

type positionKind int

const (
	atMin positionKind = iota
	atMax
	atOffset
	atTime
)

// AtTime is the first message that was stored at a time or later.
func AtTime(t time.Time) Position { return Position{kind: atTime, at: t} }

// ParsePosition reads min, max or an offset. ok is false when it is none of them: it may be a time.
func ParsePosition(s string) (at Position, ok bool) {
	switch s {
	case "min":
		return Position{}, true
	case "max":
		return Position{kind: atMax}, true
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return Position{}, false
	}
	return Position{kind: atOffset, offset: int64(n)}, true //nolint:gosec // it has at most 63 bits
}

// resolve finds a position in a queue. An offset must be one the queue has, or its end; a time's is moved there: brokers
// before 5.1.0 look it up loosely (remoting-protocol.md 2.7).
func resolve(ctx context.Context, c Cluster, q sdk.Queue, at Position) (s Step, err error) {
	s = Step{Topic: q.Topic, Broker: q.Broker, ID: q.ID, State: StatePlanned}
	if s.Min, err = c.MinOffset(ctx, q); err != nil {
		return s, fmt.Errorf("asking where %s begins: %w", q, err)
	}
	if s.Max, err = c.MaxOffset(ctx, q); err != nil {
		return s, fmt.Errorf("asking where %s ends: %w", q, err)
	}
	switch at.kind {
	case atMax:
		s.Offset = s.Max
	case atOffset:
		if s.Offset = at.offset; s.Offset < s.Min || s.Offset > s.Max {
			return s, fmt.Errorf("%s has no offset %d: it begins at %d and ends at %d", q, s.Offset, s.Min, s.Max)
		}
	case atTime:
		found, err := c.OffsetAt(ctx, q, at.at)
		if err != nil {
			return s, fmt.Errorf("asking for the offset of %s at %s: %w", q, at.at.UTC().Format(time.RFC3339), err)
		}
		s.Offset = min(max(found, s.Min), s.Max)
	default:
		s.Offset = s.Min
	}
	return s, nil
}
