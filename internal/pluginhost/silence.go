package pluginhost

import (
	"fmt"
	"time"
)

// spareFor is how many times longer a silent process is waited for when it could not run. There is an end to it: a process
// that spins in a thread of its own, on a busy machine, looks the same.
const spareFor = 10

// silence counts the health checks in a row that a process did not answer.
//
// A process that had no processor is not taken for a frozen one, nor is one that this process could not listen to for want
// of one: to kill it costs its work, and its start adds to the load that made it slow. The kernel tells (CPUWaits): a
// frozen, a stopped and a deadlocked process do not wait for a processor.
type silence struct {
	limit  int                                 // misses that count, until it is over
	waits  func(pid int) map[int]time.Duration // process.CPUWaits
	pids   []int                               // of the process, and the host's own
	misses int
	spared int
	at     time.Time // of the last miss
	seen   []map[int]time.Duration
}

// heard forgets the misses: it answered.
func (s *silence) heard() { s.misses, s.spared, s.seen = 0, 0, nil }

// miss takes a check without an answer and tells whether the process is to be replaced. first says that this is the first
// check for which a lack of processors is made responsible.
func (s *silence) miss(now time.Time) (over, first bool) {
	seen := make([]map[int]time.Duration, len(s.pids))
	for i, pid := range s.pids {
		seen[i] = s.waits(pid)
	}
	starved := s.seen != nil && starved(s.seen, seen, now.Sub(s.at))
	s.seen, s.at = seen, now
	if starved && s.spared < s.limit*(spareFor-1) {
		s.spared++
		return false, s.spared == 1
	}
	s.misses++
	return s.misses >= s.limit, false
}

// starved tells whether a thread waited for a processor for half the time or more.
func starved(before, after []map[int]time.Duration, elapsed time.Duration) bool {
	for i := range after {
		for thread, waited := range after[i] {
			if waited-before[i][thread] >= elapsed/2 {
				return true
			}
		}
	}
	return false
}

// String says what was counted.
func (s *silence) String() string {
	text := fmt.Sprintf("%d health checks without an answer and no frame", s.misses)
	if s.spared > 0 {
		text += fmt.Sprintf("; %d more did not count, for want of a processor", s.spared)
	}
	return text
}
