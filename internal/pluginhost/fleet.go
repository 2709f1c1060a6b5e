package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/internal/pluginhost/supervisor"
)

// fleet is the processes of one version of a plugin's spec: its instances, and on demand the one where suspects of a crash
// are tried.
type fleet struct {
	host  *Host
	spec  PluginSpec
	slots []*slot
	// pinned is the binary of an earlier version that is rolled back to: the file at its path may be another one now.
	pinned *process.Executable
	// with are configs that came with this version, and are nobody else's until it is in force. The host's mu guards it.
	with []HandlerSpec

	mu      sync.Mutex
	solo    *slot
	soloUse int
	idle    *time.Timer // stops the solo process when nobody needs it any more
	retired bool

	leveling sync.Mutex // guards moving; held while lanes are chosen
	moving   bool       // lanes are on their way to another process
}

func newFleet(h *Host, spec PluginSpec) *fleet {
	f := &fleet{host: h, spec: spec}
	for range spec.Instances {
		f.slots = append(f.slots, newSlot(h, f, false))
	}
	return f
}

func (f *fleet) want() {
	for _, s := range f.slots {
		s.tell(supervisor.Event{Kind: supervisor.Want})
	}
}

// open finds the binary, or duplicates the pinned one.
func (f *fleet) open() (*process.Executable, error) {
	if f.pinned != nil {
		return f.pinned.Dup()
	}
	return process.Open(f.spec.Command[0], f.spec.Checksum)
}

// all returns every slot, the solo one last.
func (f *fleet) all() []*slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	slots := append([]*slot(nil), f.slots...)
	if f.solo != nil {
		slots = append(slots, f.solo)
	}
	return slots
}

// useSolo starts the solo process when it does not run, and keeps it until as many calls of leaveSolo came. It returns nil
// when the fleet is on its way out.
func (f *fleet) useSolo() *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retired {
		return nil
	}
	f.soloUse++
	if f.idle != nil {
		f.idle.Stop()
	}
	if f.solo == nil {
		f.solo = newSlot(f.host, f, true)
	}
	f.solo.tell(supervisor.Event{Kind: supervisor.Want})
	return f.solo
}

func (f *fleet) leaveSolo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soloUse--
	if f.soloUse == 0 && !f.retired {
		f.idle = time.AfterFunc(f.host.timing.SoloIdle, f.stopIdleSolo)
	}
}

func (f *fleet) stopIdleSolo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.soloUse == 0 && !f.retired {
		f.solo.tell(supervisor.Event{Kind: supervisor.Unwant})
	}
}

// retire ends all processes, lanes in peace first, and frees the slots. It takes no longer than the drain and the ladder.
func (f *fleet) retire() {
	f.mu.Lock()
	f.retired = true
	if f.idle != nil {
		f.idle.Stop()
	}
	f.mu.Unlock()
	slots := f.all()
	for _, s := range slots {
		s.tell(supervisor.Event{Kind: supervisor.Unwant})
	}
	for _, s := range slots {
		f.awaitStopped(s)
		s.give()
	}
	if f.pinned != nil {
		_ = f.pinned.Close() // read-only
	}
}

func (f *fleet) awaitStopped(s *slot) {
	for {
		changed := f.host.changed.wait()
		s.mu.Lock()
		state, wanted := s.status.State, s.status.Wanted
		s.mu.Unlock()
		if !wanted && (state == supervisor.Stopped || state == supervisor.Absent) {
			return
		}
		<-changed
	}
}

// waitsFor says what the first process waits for.
func (f *fleet) waitsFor() error { return errors.New(f.slots[0].why(f.host.now())) }

// errTripped is wrapped by the error of a version that does not come up or does not stay up.
var errTripped = errors.New("the new version was taken back")

// awaitReady returns when every instance is ready, or with the reason why one is not.
func (f *fleet) awaitReady(ctx context.Context) error {
	for {
		changed := f.host.changed.wait()
		if f.host.stopping() {
			return errClosed
		}
		ready := 0
		for _, s := range f.slots {
			s.mu.Lock()
			state, lastErr := s.status.State, s.lastErr
			s.mu.Unlock()
			switch state {
			case supervisor.Ready:
				ready++
			case supervisor.Backoff, supervisor.Failed:
				return fmt.Errorf("%w: %s", errTripped, lastErr)
			default: // on its way
			}
		}
		if ready == len(f.slots) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errTripped, unmet("it is not ready", f.waitsFor(), context.Cause(ctx)))
		}
	}
}

// tripped tells whether a breaker is open.
func (f *fleet) tripped() (string, bool) {
	for _, s := range f.slots {
		s.mu.Lock()
		open, lastErr := s.status.Open, s.lastErr
		s.mu.Unlock()
		if open {
			return lastErr, true
		}
	}
	return "", false
}

// handlers are the configs for the processes of this version.
func (f *fleet) handlers() []HandlerSpec {
	specs := f.host.handlersOf(f.spec.Name)
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	for _, w := range f.with {
		if i := slices.IndexFunc(specs, func(s HandlerSpec) bool { return s.Name == w.Name }); i >= 0 {
			specs[i] = w
		} else {
			specs = append(specs, w)
		}
	}
	return specs
}

// brings tells whether a handler's config came with this version.
func (f *fleet) brings(handler string) bool {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	return slices.ContainsFunc(f.with, func(s HandlerSpec) bool { return s.Name == handler })
}

// RefusedError says that a new version of a plugin does not take a handler's config, so the old version goes on.
type RefusedError struct {
	Handler     string
	Diagnostics []Diagnostic
	err         error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: config of %s: %v", errTripped, e.Handler, e.err)
}

// Unwrap returns the plugin's word.
func (e *RefusedError) Unwrap() []error { return []error{errTripped, e.err} }

// refusal returns a handler's config that came with this version, or that the other fleet takes, and this one refuses.
func (f *fleet) refusal(old *fleet) error {
	for _, s := range f.slots {
		g := s.live()
		if g == nil {
			continue
		}
		for _, c := range g.refused() {
			if f.brings(c.spec.Name) || old.takes(c.spec.Name) {
				return &RefusedError{c.spec.Name, c.diagnostics, c.err}
			}
		}
	}
	return nil
}

func (f *fleet) takes(handler string) bool {
	for _, s := range f.slots {
		if g := s.live(); g != nil && g.outcome(handler) == nil {
			return true
		}
	}
	return false
}

// executable duplicates the binary that runs, nil when there is none.
func (f *fleet) executable() *process.Executable {
	for _, s := range f.slots {
		s.mu.Lock()
		exe := s.exe
		s.mu.Unlock()
		if exe == nil {
			continue
		}
		if dup, err := exe.Dup(); err == nil {
			return dup
		}
	}
	return nil
}
