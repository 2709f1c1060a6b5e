package memlimit

import "os"

// Mechanism names what holds the limit.
type Mechanism string

// The mechanisms.
const (
	None    Mechanism = "none"    // no limit is set
	Watch   Mechanism = "watch"   // the host reads the memory of the process and its children, and kills
	Cgroups Mechanism = "cgroup2" // the kernel holds it
)

// Limiter makes one Group for each process.
type Limiter interface {
	// Group prepares a process's limit in bytes; 0 = no limit. The name is unique.
	Group(name string, limit int64) (Group, error)
}

// Group is the limit of one process. Calls come from one goroutine at a time, Close last.
type Group interface {
	Mechanism() Mechanism
	// Dir is the cgroup directory to start the process in; nil when there is none. The Group keeps it open.
	Dir() *os.File
	// Exceeded tells whether the kernel has killed for memory in this group.
	Exceeded() bool
	// Kill ends everything in the group; a Group without a cgroup does nothing.
	Kill() error
	Close() error
}

// Watcher is the Limiter without cgroups: its groups only name the mechanism, the host watches.
type Watcher struct{}

// Group never fails.
func (Watcher) Group(_ string, limit int64) (Group, error) {
	if limit == 0 {
		return watched(None), nil
	}
	return watched(Watch), nil
}

type watched Mechanism

func (w watched) Mechanism() Mechanism { return Mechanism(w) }
func (watched) Dir() *os.File          { return nil }
func (watched) Exceeded() bool         { return false }
func (watched) Kill() error            { return nil }
func (watched) Close() error           { return nil }
