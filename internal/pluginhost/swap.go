package pluginhost

import (
	"context"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

// swap brings up a new version beside the old one, switches, and lets the old one drain. The caller holds p.changing.
func (h *Host) swap(ctx context.Context, p *plugin, old *fleet, spec PluginSpec, with []HandlerSpec) error {
	next, err := h.candidate(spec, with)
	if err != nil {
		return err
	}
	next.want()
	err = next.awaitReady(ctx)
	if err == nil {
		err = next.refusal(old)
	}
	if err != nil {
		h.logger.Error("plugin keeps its old version", "plugin", spec.Name, "error", err)
		h.work.Go(next.retire)
		h.setSwapErr(p, err)
		return fmt.Errorf("swapping plugin %s: the old version goes on: %w", spec.Name, err)
	}
	back := old.executable() // before the old version lets go of it
	before := h.switchTo(p, next)
	h.setSwapErr(p, nil)
	h.logger.Info("plugin swapped", "plugin", spec.Name)
	h.work.Go(old.retire)
	h.work.Go(func() { h.probation(p, next, version{old.spec, before, back}) })
	return nil
}

func (h *Host) candidate(spec PluginSpec, with []HandlerSpec) (*fleet, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	f := newFleet(h, spec)
	f.with = with
	return f, nil
}

// switchTo makes a version and the configs that came with it the current ones. It returns the configs they replace.
func (h *Host) switchTo(p *plugin, f *fleet) (before []HandlerSpec) {
	h.mu.Lock()
	p.current = f
	for _, spec := range f.with {
		if old, had := h.handlers[spec.Name]; had {
			before = append(before, old)
		}
		h.handlers[spec.Name] = spec
	}
	f.with = nil
	h.mu.Unlock()
	h.changed.broadcast()
	return before
}

// version is what a rollback goes back to: the old spec, the configs it had, and its binary (nil: the file at its path).
type version struct {
	spec     PluginSpec
	handlers []HandlerSpec
	binary   *process.Executable
}

func (h *Host) setSwapErr(p *plugin, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.swapErr = err
}

// probation takes a new version back when its breaker opens soon after the swap. The old binary runs again, even if the
// file at its path has changed.
func (h *Host) probation(p *plugin, next *fleet, old version) {
	timer := time.NewTimer(h.timing.Probation)
	defer timer.Stop()
	taken := false
	defer func() {
		if old.binary != nil && !taken {
			_ = old.binary.Close() // read-only
		}
	}()
	for {
		changed := h.changed.wait()
		h.mu.Lock()
		gone := p.current != next || h.closed
		h.mu.Unlock()
		if gone {
			return
		}
		if reason, tripped := next.tripped(); tripped {
			taken = h.rollback(p, next, old, reason)
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-h.quit:
			return
		}
	}
}

// rollback tells whether it took the binary.
func (h *Host) rollback(p *plugin, next *fleet, old version, reason string) bool {
	p.changing.Lock()
	defer p.changing.Unlock()
	h.mu.Lock()
	if p.current != next || h.closed { // changed or removed in the meantime
		h.mu.Unlock()
		return false
	}
	f := newFleet(h, old.spec)
	f.pinned = old.binary
	for _, spec := range old.handlers {
		h.handlers[spec.Name] = spec
	}
	p.current = f
	p.swapErr = fmt.Errorf("%w: it ended too often in its first %s: %s", errTripped, h.timing.Probation, reason)
	err := p.swapErr
	h.mu.Unlock()
	h.logger.Error("plugin goes back to its old version", "plugin", old.spec.Name, "error", err)
	f.want()
	h.changed.broadcast()
	h.work.Go(next.retire)
	return true
}
