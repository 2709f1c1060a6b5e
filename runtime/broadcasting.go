package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/streamd/streamd/runtime/internal/group"
)

// Offsets keeps where a broadcasting member stands: no broker does that. Its methods may be called from any goroutine.
type Offsets interface {
	// Committed returns the offset of a queue: the next one to consume. It waits for nothing.
	Committed(q Queue) (offset int64, ok bool)
	// Commit returns when the offset is durable.
	Commit(ctx context.Context, q Queue, offset int64) error
	// Begin tells whether a queue without an offset was there when its topic was new to this member, so that start_from applies
	// to it; queues are those that the topic has now, q among them. What it notes is durable when it returns.
	Begin(ctx context.Context, q Queue, queues []Queue) (fresh bool, err error)
	Close() error
}

// checkBroadcasting tells what a stream lacks in which every member handles every message.
func (cfg Config) checkBroadcasting(s *StreamConfig) (errs []error) {
	if !s.Broadcasting {
		return nil
	}
	if cfg.Offsets == nil {
		errs = append(errs, errors.New("broadcasts, and there is nowhere to keep its offsets"))
	}
	if s.OnExhausted == DeadLetter {
		errs = append(errs, errors.New("on_exhausted is dead_letter, and a broadcasting group has no dead letters: choose block or skip"))
	}
	return errs
}

// ownOffsets is a broker's place for the offsets of a member that keeps them itself.
type ownOffsets struct {
	Broker
	offsets Offsets
}

// Committed implements queue.Broker.
func (o ownOffsets) Committed(_ context.Context, _ string, q Queue) (offset int64, ok bool, err error) {
	offset, ok = o.offsets.Committed(q)
	return offset, ok, nil
}

// Commit implements queue.Broker.
func (o ownOffsets) Commit(ctx context.Context, _ string, q Queue, offset int64) (reset bool, err error) {
	return false, o.offsets.Commit(ctx, q, offset) //nolint:wrapcheck // the worker says what it stored, the store where
}

// OthersHaveOffsets implements queue.Newness.
func (o ownOffsets) OthersHaveOffsets(ctx context.Context, q Queue) (bool, error) {
	queues, err := o.Queues(ctx, q.Topic)
	if err != nil {
		return false, err //nolint:wrapcheck // the worker says what it asked for
	}
	if !slices.Contains(queues, q) {
		queues = append(queues, q)
	}
	fresh, err := o.offsets.Begin(ctx, q, queues)
	return !fresh, err //nolint:wrapcheck // as above
}

// openOffsets opens what a broadcasting member keeps itself.
func (s *stream) openOffsets() error {
	c := s.config()
	if !c.Broadcasting {
		return nil
	}
	offsets, err := s.rt.Offsets(c)
	if err != nil {
		return fmt.Errorf("starting stream %s: %w", s.name, err)
	}
	s.offsets = offsets
	return nil
}

// closeOffsets ends what openOffsets began.
func (s *stream) closeOffsets() error {
	if s.offsets == nil {
		return nil
	}
	return s.offsets.Close() //nolint:wrapcheck // names the file
}

// all is a topic's share where every member has everything.
func (r *round) all(s *sight) group.Topic {
	t := group.Topic{Name: s.topic, Hold: s.hold}
	if t.Hold.Held() {
		return t
	}
	t.Known, t.Mine = true, s.queues
	r.m.noteMembers(s.topic, s.members)
	r.m.mu.Lock()
	r.m.assign[s.topic] = Assignment{Mine: len(s.queues), Of: len(s.queues), Members: len(s.members)}
	r.m.mu.Unlock()
	return t
}

// seeMembers asks who else is in a group in which nobody divides anything: for people, and to compare subscriptions. Not to
// know it holds nothing up.
func (r *round) seeMembers(ctx context.Context, groupName string, s *sight) {
	members, err := r.m.s.broker.Members(ctx, groupName, s.topic)
	if err != nil {
		r.m.s.log.Debug("the group's members are not known", "topic", s.topic, "error", err.Error())
	}
	s.members = members
}
