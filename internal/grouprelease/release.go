package grouprelease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

// Cluster is what a release asks and stores. *rocketmq.Client fills it.
type Cluster interface {
	MinOffset(ctx context.Context, q sdk.Queue) (int64, error)
	MaxOffset(ctx context.Context, q sdk.Queue) (int64, error)
	OffsetAt(ctx context.Context, q sdk.Queue, at time.Time) (int64, error)
	Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (reset bool, err error)
	PeerInfo(ctx context.Context, group, clientID string) (*wire.ConsumerRunningInfo, error)
}

// Step is one queue with the position that it gets.
type Step struct {
	Topic  string `json:"topic"`
	Broker string `json:"broker"`
	ID     int32  `json:"id"`
	Owner  string `json:"owner"`  // client id
	Hold   string `json:"hold"`   // kind of the hold
	Offset int64  `json:"offset"` // the next to be handled
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	State  string `json:"state"`
}

// Queue is the queue's name.
func (s *Step) Queue() sdk.Queue { return sdk.Queue{Topic: s.Topic, Broker: s.Broker, ID: s.ID} }

// The states of a step.
const (
	StatePlanned = "planned" // nothing is stored
	StateStored  = "stored"  // the broker has the offset, its owner has not taken it
	StateTaken   = "taken"   // the owner holds the queue no longer
	StateLeft    = "left"    // the owner has the queue no longer; the next one begins at the offset
)

const (
	lookEvery = time.Second
	lookLimit = 3 * time.Second // bounds one question to an owner
	// patience is how long an owner may take: a member looks every 5 s, with jitter, and asks its broker for at most 5 s.
	patience = 20 * time.Second
)

// Plan finds each queue's position and asks the owners whether they still hold their queues. It changes nothing. An error
// means that none of it should be stored.
func Plan(ctx context.Context, c Cluster, group string, held []Held, at Position) ([]Step, error) {
	steps := make([]Step, 0, len(held))
	var errs []error
	for _, h := range held {
		s, err := resolve(ctx, c, h.Queue, at)
		s.Owner, s.Hold = h.Owner, h.Hold
		steps, errs = append(steps, s), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &release{c, group, steps}
	asking := r.byOwner(StatePlanned)
	for _, owner := range slices.Sorted(maps.Keys(asking)) {
		view, err := r.view(ctx, owner)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, s := range asking[owner] {
			errs = append(errs, check(s, view))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return steps, nil
}

// check holds a step against its owner's own view. A member takes a stored offset for a choice only when it is not the one
// that it stored itself.
func check(s *Step, view runtime.PeerInfo) error {
	theirs, ok := view.Queues[s.Queue().String()]
	switch {
	case !ok || theirs.Hold == nil || !wants(theirs.Hold.Kind):
		return fmt.Errorf("%s is no longer held by %s", s.Queue(), s.Owner)
	case theirs.Committed == s.Offset:
		return fmt.Errorf("%s stands at offset %d already, which its owner %s stored itself and takes for no choice: choose another", s.Queue(), s.Offset, s.Owner)
	}
	return nil
}

// Release stores what Plan found, and waits until the owners have taken it. The steps' states tell how far each came, with
// an error too: what is stored stays stored.
func Release(ctx context.Context, c Cluster, group string, steps []Step) error {
	r := &release{c, group, steps}
	stored := r.store(ctx)
	return errors.Join(stored, r.wait(ctx))
}

type release struct {
	cluster Cluster
	group   string
	steps   []Step
}

func (r *release) store(ctx context.Context) error {
	var errs []error
	for i := range r.steps {
		s := &r.steps[i]
		switch reset, err := r.cluster.Commit(ctx, r.group, s.Queue(), s.Offset); {
		case err != nil:
			errs = append(errs, fmt.Errorf("storing offset %d of %s: %w", s.Offset, s.Queue(), err))
		case reset:
			errs = append(errs, fmt.Errorf("a reset of %s waits at its broker, which ignored offset %d: its owner %s takes the reset; to have another position, release it again when it is held again", s.Queue(), s.Offset, s.Owner))
		default:
			s.State = StateStored
		}
	}
	return errors.Join(errs...)
}

// wait asks the owners until none holds a queue whose offset is stored.
func (r *release) wait(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	var unheard error
	for {
		waiting := r.byOwner(StateStored)
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
			unheard = r.look(ctx, waiting)
		case <-late.C:
			return errors.Join(r.untaken(), unheard)
		case <-ctx.Done():
			return errors.Join(r.untaken(), ctx.Err())
		}
	}
}

// look asks each owner once.
func (r *release) look(ctx context.Context, waiting map[string][]*Step) error {
	var errs []error
	for _, owner := range slices.Sorted(maps.Keys(waiting)) {
		view, err := r.view(ctx, owner)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, s := range waiting[owner] {
			switch pq, ok := view.Queues[s.Queue().String()]; {
			case !ok:
				s.State = StateLeft
			case pq.Hold == nil || !wants(pq.Hold.Kind):
				s.State = StateTaken
			}
		}
	}
	return errors.Join(errs...)
}

func (r *release) untaken() error {
	var errs []error
	for i := range r.steps {
		if s := &r.steps[i]; s.State == StateStored {
			errs = append(errs, fmt.Errorf("%s is not seen to go on: offset %d is stored and stays, and its owner %s has not taken it; look at that member's log", s.Queue(), s.Offset, s.Owner))
		}
	}
	return errors.Join(errs...)
}

func (r *release) byOwner(state string) map[string][]*Step {
	owners := map[string][]*Step{}
	for i := range r.steps {
		if s := &r.steps[i]; s.State == state {
			owners[s.Owner] = append(owners[s.Owner], s)
		}
	}
	return owners
}

// view is what a member tells of itself.
func (r *release) view(ctx context.Context, owner string) (runtime.PeerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	info, err := r.cluster.PeerInfo(ctx, r.group, owner)
	if err != nil {
		return runtime.PeerInfo{}, fmt.Errorf("asking member %s: %w", owner, err)
	}
	view, err := runtime.ParsePeerInfo(info)
	if err != nil {
		return runtime.PeerInfo{}, fmt.Errorf("asking member %s: %w", owner, err)
	}
	return view, nil
}
