package pluginhost

import (
	"context"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

// swap brings up a new version beside the old one, switches, and lets the old one drain. The caller holds p.changing.
func (h *Host) swap(ctx context.Context, p *plugin, old *fleet, spec PluginSpec) error {
	next, err := h.candidate(spec)
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
	h.switchTo(p, next)
	h.setSwapErr(p, nil)
	h.logger.Info("plugin swapped", "plugin", spec.Name)
	h.work.Go(old.retire)
	h.work.Go(func() { h.probation(p, next, old.spec, back) })
	return nil
}

func (h *Host) candidate(spec PluginSpec) (*fleet, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	return newFleet(h, spec), nil
}

func (h *Host) switchTo(p *plugin, f *fleet) {
	h.mu.Lock()
	p.current = f
	h.mu.Unlock()
	h.changed.broadcast()
}

func (h *Host) setSwapErr(p *plugin, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.swapErr = err
}

// probation takes a new version back when its breaker opens soon after the swap. The old binary runs again, even if the
// file at its path has changed.
func (h *Host) probation(p *plugin, next *fleet, old PluginSpec, back *process.Executable) {
	timer := time.NewTimer(h.timing.Probation)
	defer timer.Stop()
	taken := false
	defer func() {
		if back != nil && !taken {
			_ = back.Close() // read-only
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
			taken = h.rollback(p, next, old, back, reason)
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
func (h *Host) rollback(p *plugin, next *fleet, old PluginSpec, back *process.Executable, reason string) bool {
	p.changing.Lock()
	defer p.changing.Unlock()
	h.mu.Lock()
	if p.current != next || h.closed { // changed or removed in the meantime
		h.mu.Unlock()
		return false
	}
	f := newFleet(h, old)
	f.pinned = back // nil: the file at its path
	p.current = f
	p.swapErr = fmt.Errorf("%w: it ended too often in its first %s: %s", errTripped, h.timing.Probation, reason)
	err := p.swapErr
	h.mu.Unlock()
	h.logger.Error("plugin goes back to its old version", "plugin", old.Name, "error", err)
	f.want()
	h.changed.broadcast()
	h.work.Go(next.retire)
	return true
}
