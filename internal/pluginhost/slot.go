package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/internal/pluginhost/supervisor"
)

// slot keeps one process of a plugin running: the thin shell around a supervisor.Core. One goroutine feeds the core; what
// the core wants done runs in goroutines that answer by the mailbox.
type slot struct {
	host    *Host
	fleet   *fleet
	solo    bool
	mailbox chan supervisor.Event
	quit    chan struct{} // closed when the slot is given up
	ended   chan struct{} // closed when its goroutine has ended
	left    chan struct{} // closed when the present state is left; its goroutine's own

	mu      sync.Mutex
	status  supervisor.Status
	gen     *generation // of the present try; nil between tries
	killed  uint64      // the generation that was to be killed last: it may not be made yet
	serving bool
	exe     *process.Executable // of the present try
	seen    process.Stamp       // of the file, before the present try opened it
	given   bool                // up: nobody frees an exe any more
	lastErr string
	lastAt  time.Time
}

//nolint:contextcheck,nolintlint // a process outlives the request that wants it
func newSlot(h *Host, f *fleet, solo bool) *slot {
	s := &slot{
		host: h, fleet: f, solo: solo,
		mailbox: make(chan supervisor.Event, 16), quit: make(chan struct{}), ended: make(chan struct{}), left: make(chan struct{}),
	}
	policy := h.timing.Policy
	policy.Solo = solo
	core := supervisor.New(policy, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), func() uint64 { return h.generations.next(f.spec.Name) })
	s.status = core.Status()
	h.work.Go(func() { s.run(core) })
	return s
}

// tell delivers an event, unless the slot is given up.
func (s *slot) tell(e supervisor.Event) {
	select {
	case s.mailbox <- e:
	case <-s.quit:
	}
}

func (s *slot) run(core *supervisor.Core) {
	defer close(s.ended)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		var e supervisor.Event
		select {
		case e = <-s.mailbox:
		case <-timer.C:
			e = supervisor.Event{Kind: supervisor.Tick}
		case <-s.quit:
			return
		}
		now := s.host.now()
		for _, a := range core.Step(now, e) {
			if a.Do == supervisor.Wake {
				timer.Reset(a.At.Sub(now))
				continue
			}
			s.do(a)
		}
		s.publish(core.Status())
	}
}

func (s *slot) publish(status supervisor.Status) {
	s.mu.Lock()
	before, seen := s.status, s.seen
	s.status = status
	s.mu.Unlock()
	if before.State != status.State {
		s.host.logger.Debug("plugin process changes state", "plugin", s.fleet.spec.Name, "generation", status.Generation,
			"from", before.State.String(), "to", status.State.String(), "solo", s.solo)
		close(s.left)
		left := make(chan struct{})
		s.left = left
		if waits := status.State == supervisor.Backoff || status.State == supervisor.Failed; waits && s.fleet.pinned == nil {
			s.host.work.Go(func() { s.look(status.Generation, seen, left) })
		}
	}
	s.host.changed.broadcast()
}

func (s *slot) do(a supervisor.Action) {
	switch a.Do {
	case supervisor.Probe:
		s.host.work.Go(func() { s.probe(a.Generation) })
	case supervisor.Start:
		s.host.work.Go(func() { s.start(a.Generation) })
	case supervisor.Configure:
		s.host.work.Go(func() { s.configure(a.Generation) })
	case supervisor.Serve:
		s.setServing(true)
	case supervisor.Halt:
		s.setServing(false)
	case supervisor.Drain:
		s.host.work.Go(func() { s.drain(a.Generation) })
	case supervisor.Kill:
		s.host.work.Go(func() { s.kill(a.Generation) })
	case supervisor.Wake: // done by run, which has the timer
	}
}

func (s *slot) setServing(on bool) {
	s.mu.Lock()
	s.serving = on
	gen := s.gen
	s.mu.Unlock()
	if on && gen != nil {
		s.host.work.Go(func() { gen.catchUp(context.Background()) })
		s.host.work.Go(s.works)
		gen.logger.Info("plugin ready", "version", gen.about.GetVersion(), "pid", gen.pid(), "solo", s.solo,
			"took", s.host.now().Sub(gen.process().Since).Round(time.Millisecond).String())
		if !s.solo {
			s.fleet.level()
		}
	}
}

// failed notes why a try failed and tells the core.
func (s *slot) failed(generation uint64, crash bool, err error) {
	s.note(err.Error())
	level := slog.LevelError
	s.mu.Lock()
	unwanted := s.killed == generation
	s.mu.Unlock()
	if unwanted || s.host.stopping() { // it was stopped while it started
		level = slog.LevelDebug
	}
	s.host.logger.Log(context.Background(), level, "plugin does not start", "plugin", s.fleet.spec.Name, "generation", generation, "error", err)
	s.tell(supervisor.Event{Kind: supervisor.StepFailed, Generation: generation, Crash: crash})
}

func (s *slot) note(text string) {
	s.mu.Lock()
	s.lastErr, s.lastAt = text, s.host.now()
	s.mu.Unlock()
}

// probe finds, checks and hashes the binary. It does so at each start, so that a changed binary is never run under an
// old checksum.
func (s *slot) probe(generation uint64) {
	seen := process.Look(s.fleet.spec.Command[0]) // before it is opened: whatever takes its place from here on is another one
	s.mu.Lock()
	s.seen = seen
	s.mu.Unlock()
	exe, err := s.fleet.open()
	if err != nil {
		s.failed(generation, false, s.host.placed(s.fleet.spec.Name, err))
		return
	}
	s.mu.Lock()
	old := s.exe
	if s.given {
		old = exe
	} else {
		s.exe = exe
	}
	s.mu.Unlock()
	if old != nil {
		_ = old.Close() // read-only
	}
	s.tell(supervisor.Event{Kind: supervisor.Probed, Generation: generation})
}

// placed says whose binary cannot be used, and where that is written.
func (h *Host) placed(plugin string, err error) error {
	err = fmt.Errorf("plugin %s: %w", plugin, err)
	key := "command"
	if errors.Is(err, process.ErrChecksum) {
		key = "checksum"
	}
	if h.written == nil || h.written(plugin, key) == "" {
		return err
	}
	return fmt.Errorf("%s: %w", h.written(plugin, key), err)
}

func (s *slot) start(generation uint64) {
	s.mu.Lock()
	exe := s.exe
	s.mu.Unlock()
	g, err := s.host.newGeneration(s.fleet, generation, s.solo, exe)
	if err != nil {
		s.failed(generation, false, err)
		return
	}
	s.mu.Lock()
	s.gen = g
	unwanted := s.killed == generation
	s.mu.Unlock()
	if unwanted { // before there was anything to kill
		g.doom(killedByHost())
	}
	crash, err := g.start()
	if err != nil {
		s.clear(g)
		s.failed(generation, crash, err)
		return
	}
	s.host.work.Go(func() {
		g.watch(func(crash bool) {
			s.clear(g)
			if crash {
				s.note(g.death().Text)
			}
			s.tell(supervisor.Event{Kind: supervisor.Exited, Generation: generation, Crash: crash})
		})
	})
	s.host.work.Go(g.watchMemory)
	if g.doomed() { // unwanted in the meantime
		s.kill(generation)
		return
	}
	s.tell(supervisor.Event{Kind: supervisor.Started, Generation: generation})
}

func (s *slot) clear(g *generation) {
	s.mu.Lock()
	if s.gen == g {
		s.gen = nil
	}
	s.mu.Unlock()
}

func (s *slot) configure(generation uint64) {
	s.mu.Lock()
	g := s.gen
	s.mu.Unlock()
	if g == nil {
		return // it ended; the watch has told so
	}
	if err := g.introduce(context.Background()); err != nil {
		s.note(err.Error())
		return // the watch tells of the end
	}
	s.host.work.Go(g.supervise)
	s.host.work.Go(g.retryConfigs)
	s.tell(supervisor.Event{Kind: supervisor.Configured, Generation: generation})
}

func (s *slot) drain(generation uint64) {
	s.mu.Lock()
	g := s.gen
	s.mu.Unlock()
	if g != nil && g.id == generation {
		g.leave()
		g.drain(context.Background(), g.openLanes())
	}
	s.tell(supervisor.Event{Kind: supervisor.Drained, Generation: generation})
}

// kill ends a generation, whatever it is doing: one that is still being made ends as soon as it is. It leaves the next one
// alone: the core may have gone on before the kill comes to it.
func (s *slot) kill(generation uint64) {
	s.mu.Lock()
	g := s.gen
	s.killed = max(s.killed, generation)
	s.mu.Unlock()
	if g != nil && g.id == generation {
		g.stop(killedByHost())
	}
}

func killedByHost() frame.Lost {
	return frame.Lost{Cause: frame.CauseStopped, Text: "it was stopped or replaced by the host"}
}

// give ends the slot's goroutine and frees its binary. The process must have stopped.
func (s *slot) give() {
	close(s.quit)
	<-s.ended
	s.mu.Lock()
	exe := s.exe
	s.exe, s.given = nil, true
	s.mu.Unlock()
	if exe != nil {
		_ = exe.Close() // read-only
	}
}

// live returns the generation that may be given lanes, nil when there is none.
func (s *slot) live() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving {
		return nil
	}
	return s.gen
}

// why says what the slot waits for.
func (s *slot) why(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("plugin %s: %s for %s", s.fleet.spec.Name, s.status.State, now.Sub(s.status.Since).Round(100*time.Millisecond))
	if !s.status.NextTry.IsZero() {
		text += fmt.Sprintf(", next try in %s", s.status.NextTry.Sub(now).Round(100*time.Millisecond))
	}
	if s.lastErr != "" {
		text += ": " + s.lastErr
	}
	return text
}
