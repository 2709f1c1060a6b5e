package pluginhost

import (
	"time"

	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/internal/pluginhost/supervisor"
)

// Retry has every process that waits for its next try tried at once, as if it had not failed yet: for whoever has mended
// what it failed of. Processes that run are left alone.
func (h *Host) Retry() {
	h.mu.Lock()
	var fleets []*fleet
	for _, p := range h.plugins {
		if p.current != nil {
			fleets = append(fleets, p.current)
		}
	}
	h.mu.Unlock()
	for _, f := range fleets {
		for _, s := range f.all() {
			s.tell(supervisor.Event{Kind: supervisor.Renew})
		}
	}
}

// look watches the plugin's file while the slot waits for its next try, and has it tried at once when the file is another
// one than the last try saw. It is no work of the slot's own goroutine: a file system that hangs must not hold that up.
func (s *slot) look(generation uint64, seen process.Stamp, left <-chan struct{}) {
	ticker := time.NewTicker(s.host.timing.Look)
	defer ticker.Stop()
	watch := process.NewWatch(seen)
	for {
		select {
		case <-ticker.C:
		case <-left:
			return
		case <-s.quit:
			return
		}
		if watch.Another(process.Look(s.fleet.spec.Command[0])) {
			s.host.logger.Info("the plugin's file is another one; it is tried again at once", "plugin", s.fleet.spec.Name, "file", s.fleet.spec.Command[0])
			s.tell(supervisor.Event{Kind: supervisor.Renew, Generation: generation})
			return
		}
	}
}

// works tells the plugin's other slots that a process has come up. Not on the slot's own goroutine: two slots that tell each
// other at once could both wait for room.
func (s *slot) works() {
	for _, other := range s.fleet.all() {
		if other != s {
			other.tell(supervisor.Event{Kind: supervisor.Works})
		}
	}
}
