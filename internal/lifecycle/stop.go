package lifecycle

import (
	"os"
	"syscall"
	"time"
)

// Echo is how long after the first signal an equal one is taken for the same. Whoever stops a process and its group sends it
// two at once: timeout(1) does, and so does a terminal below a runner that passes its signals on. A person needs longer for
// a second Ctrl-C that is meant.
const Echo = 300 * time.Millisecond

// Stop is a stop under way.
type Stop struct {
	first os.Signal
	at    time.Time
}

// Begin notes the signal that began a stop.
func Begin(first os.Signal, now time.Time) Stop { return Stop{first: first, at: now} }

// Second tells whether a later signal asks for the end at once, and its number, which the exit code shows. SIGHUP never
// does, and an equal one within Echo of the first is its echo; another one within that time counts.
func (s Stop) Second(again os.Signal, now time.Time) (syscall.Signal, bool) {
	number, ok := again.(syscall.Signal)
	if !ok || number == syscall.SIGHUP || again == s.first && now.Sub(s.at) < Echo {
		return 0, false
	}
	return number, true
}
