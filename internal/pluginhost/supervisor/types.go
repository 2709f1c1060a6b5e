package supervisor

import "time"

// State is where a process is in its life.
type State uint8

// The states, in the order of a life; Backoff and Failed wait for the next try.
const (
	Absent State = iota
	Probing
	Starting
	Configuring
	Ready
	Draining
	Stopped
	Backoff
	Failed // the breaker is open: tried again at most 60 s apart
)

// String is the word that logs and status show.
func (s State) String() string {
	names := [...]string{"absent", "probing", "starting", "configuring", "ready", "draining", "stopped", "backoff", "failed"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Kind names an event.
type Kind uint8

// The kinds of events. All but Want, Unwant, Tick and Works belong to a generation; Renew may.
const (
	Want       Kind = iota + 1 // the process shall run
	Unwant                     // the process shall end, in peace
	Probed                     // the binary was checked and can be started
	Started                    // the handshake came
	Configured                 // the components took their configs
	StepFailed                 // probing, starting or configuring failed, and no process is left
	Drained                    // nothing is in flight any more
	Exited                     // the process ended
	Tick                       // a timer that was asked for has come
	Renew                      // what it failed of may be gone: another binary, a reload
	Works                      // another process of the same plugin has become ready
)

// Event is what happened.
type Event struct {
	Kind       Kind
	Generation uint64 // which try it belongs to; 0 for Want, Unwant, Tick, Works, and for a Renew of whichever is there
	// Crash says that the process ended after it was executed, by its own doing or killed for a hang or for memory.
	// Without it, an end (StepFailed: missing file, no memory to fork; Exited: stopped by the host) is not held against it.
	Crash bool
}

// Do names an action.
type Do uint8

// The kinds of actions.
const (
	Probe     Do = iota + 1 // check and hash the binary: answer Probed or StepFailed
	Start                   // execute: answer Started or StepFailed
	Configure               // describe, configure: answer Configured or StepFailed
	Serve                   // lanes may be opened
	Drain                   // lanes end in peace: answer Drained
	Kill                    // end the process: answer Exited
	Wake                    // send Tick at Action.At; a later Wake replaces it
	Halt                    // no lane may be opened any more
)

// Action is one thing to do.
type Action struct {
	Do         Do
	Generation uint64
	At         time.Time // Wake
}

// Policy holds the times and counts.
type Policy struct {
	MinPause, MaxPause time.Duration // between tries
	Healthy            time.Duration // in Ready, until earlier failures are forgotten
	Exits              int           // that open the breaker ...
	Window             time.Duration // ... within this
	HalfOpen           time.Duration // between tries while it is open
	Solo               bool          // crashes do not count for the breaker
}

// DefaultPolicy is design.md 10 and 15.
func DefaultPolicy() Policy {
	return Policy{
		MinPause: 100 * time.Millisecond, MaxPause: 30 * time.Second, Healthy: time.Minute,
		Exits: 5, Window: 2 * time.Minute, HalfOpen: time.Minute,
	}
}

// Status is what can be told of a process's life.
type Status struct {
	State         State
	Generation    uint64
	Since         time.Time // in this state
	Wanted        bool
	Restarts      int  // ends after which a new try was made
	StartFailures int  // in a row, not counted for the breaker
	Exits         int  // crashes within the breaker's window
	Open          bool // the breaker
	NextTry       time.Time
}
