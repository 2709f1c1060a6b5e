package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// openRetry is the pause after a ready process refused a lane.
const openRetry = 250 * time.Millisecond

// Open opens a lane to a handler's process. It blocks until the process is ready, has the handler's config in force and
// has opened the lane, or until ctx ends; the error then says what it waited for. The lanes of a handler are spread over
// the plugin's instances. A solo lane goes to a process of its own, started on demand, with a window of one record, and has it to
// itself: the next one waits for its end.
//
// A handler that is not configured, whose component is no handler, or that does not keep the order that the lane is for, is an
// error at once.
func (h *Host) Open(ctx context.Context, spec frame.LaneSpec) (*Lane, error) {
	var lane *Lane
	err := h.acquire(ctx, spec.Handler, spec.Solo, pluginv1.Component_KIND_HANDLER, func(g *generation) (err error) {
		lane, err = g.openLane(ctx, spec)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening a lane for handler %s: %w", spec.Handler, err)
	}
	if !spec.Solo {
		lane.gen.fleet.level() //nolint:contextcheck // lanes move beyond the request
	}
	return lane, nil
}

// acquire waits for a process in which an instance (a handler or a strategy) is in force, and calls use with it; while use
// fails, it tries again until ctx ends.
func (h *Host) acquire(ctx context.Context, instance string, solo bool, kind pluginv1.Component_Kind, use func(*generation) error) error {
	var held *fleet // whose solo process this call keeps
	defer func() {
		if held != nil {
			held.leaveSolo()
		}
	}()
	for {
		changed := h.changed.wait()
		f, err := h.fleetOf(instance)
		if err != nil {
			return err
		}
		if solo && held != f {
			if held != nil {
				held.leaveSolo()
			}
			if held = f; f.useSolo() == nil {
				held = nil
			}
		}
		g, why := f.pick(instance, solo, kind)
		if errors.Is(why, errKind) {
			return why
		}
		if g != nil {
			if why = use(g); why == nil {
				held = nil // the lane keeps it from here on
				return nil
			}
			if errors.Is(why, errUnordered) {
				return why
			}
		}
		if err := h.await(ctx, changed, g != nil); err != nil {
			return unmet("not ready", why, err)
		}
	}
}

// await returns nil when it is time to look again.
func (h *Host) await(ctx context.Context, changed <-chan struct{}, soon bool) error {
	var retry <-chan time.Time
	if soon {
		timer := time.NewTimer(openRetry)
		defer timer.Stop()
		retry, changed = timer.C, nil
	}
	select {
	case <-changed:
		return nil
	case <-retry:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.quit:
		return errClosed
	}
}

func (h *Host) fleetOf(instance string) (*fleet, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	spec, ok := h.handlers[instance]
	if !ok {
		return nil, fmt.Errorf("there is no handler %s; add it to the list of handlers", instance)
	}
	p := h.plugins[spec.Plugin]
	if p == nil || p.current == nil {
		return nil, unknownPlugin(spec.Plugin)
	}
	return p.current, nil
}

// pick chooses the ready process with the fewest lanes; without one it says why.
func (f *fleet) pick(instance string, solo bool, kind pluginv1.Component_Kind) (*generation, error) {
	slots := f.slots
	if solo {
		f.mu.Lock()
		slots = []*slot{f.solo}
		f.mu.Unlock()
		if slots[0] == nil {
			return nil, fmt.Errorf("plugin %s is being replaced", f.spec.Name)
		}
	}
	var ready []*generation
	var why error
	for _, s := range slots {
		g := s.live()
		if g == nil {
			if why == nil {
				why = errors.New(s.why(f.host.now()))
			}
			continue
		}
		if err := g.ready(instance, kind); err != nil {
			why = err
			continue
		}
		ready = append(ready, g)
	}
	if len(ready) == 0 {
		return nil, why
	}
	return slices.MinFunc(ready, func(a, b *generation) int { return a.load() - b.load() }), nil
}

func (g *generation) load() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lanes)
}

// laneGone is told of each lane's end.
func (h *Host) laneGone(l *Lane) {
	if l.spec.Solo {
		l.gen.fleet.leaveSolo()
	}
}
