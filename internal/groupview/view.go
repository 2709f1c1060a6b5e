package groupview

import (
	"time"

	"github.com/streamd/streamd/runtime"
)

// Unknown stands for an offset or count that could not be learned.
const Unknown = -1

// Group is the state of one group at one moment.
type Group struct {
	Group         string         `json:"group"`
	Time          time.Time      `json:"time"`
	Model         string         `json:"model,omitempty"`      // CLUSTERING or BROADCASTING
	StartFrom     string         `json:"start_from,omitempty"` // as members declare it
	Subscriptions []Subscription `json:"subscriptions"`
	Members       []Member       `json:"members"`
	Queues        []Queue        `json:"queues"`
	Lag           int64          `json:"lag"` // of the queues where it is known
	// Progress is that of each member: in broadcasting groups, where each has its own.
	Progress []Progress `json:"progress,omitempty"`
	// Notes are sentences about what an operator should know: members that disagree, brokers that did not answer.
	Notes []string `json:"notes"`
	// Gaps are what of members and queues could not be seen, for those who conclude from what they do not see. Each is in the
	// notes, or in the member, too.
	Gaps []Gap `json:"-"`
}

// Gap is a part of a group that could not be seen.
type Gap struct {
	What  string // in words, as "the members at broker broker-b"
	Topic string // the only topic whose queues are not seen; empty: those of any may be
	Err   error  // why
}

// Subscription is one topic with its filter.
type Subscription struct {
	Topic      string `json:"topic"`
	Expression string `json:"expression"`
	Type       string `json:"type"`
}

// Member is one client of the group.
type Member struct {
	ClientID string    `json:"client_id"`
	Address  string    `json:"address"`
	Language string    `json:"language"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started,omitzero"`
	// Streamd is the version of a streamd member; empty for others.
	Streamd  string   `json:"streamd,omitempty"`
	Stream   string   `json:"stream,omitempty"` // streamd members: the stream's name, and whether it runs or stops
	State    string   `json:"state,omitempty"`
	Strategy string   `json:"strategy,omitempty"`
	Plugins  []Plugin `json:"plugins,omitempty"`
	// Order is queue or key where a streamd member keeps order, Locks the queue locks that it holds, and Heads its failed
	// messages that are tried again in place, with what waits behind them; at most 50.
	Order string         `json:"order,omitempty"`
	Locks int            `json:"locks,omitempty"`
	Heads []runtime.Head `json:"heads,omitempty"`
	// Silent says why the member's own view (307) is missing; empty when it is there.
	Silent string `json:"silent,omitempty"`

	peer *runtime.PeerInfo // streamd members
}

// Plugin is one plugin process of a streamd member.
type Plugin struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	State   string `json:"state"`
	Version string `json:"version,omitempty"`
}

// Queue is one queue with the group's place in it.
type Queue struct {
	Topic     string        `json:"topic"`
	Broker    string        `json:"broker"`
	ID        int32         `json:"id"`
	Owners    []string      `json:"owners"`     // client ids; more than one is an overlap
	Committed int64         `json:"committed"`  // Unknown: none is stored, or it could not be read
	Max       int64         `json:"max"`        // Unknown: could not be read
	Lag       int64         `json:"lag"`        // Unknown
	OldestAge time.Duration `json:"oldest_age"` // nanoseconds since the oldest unhandled message was stored; Unknown; 0 without lag
	InFlight  int           `json:"in_flight"`  // pulled and not settled at the owners; Unknown
	State     string        `json:"state"`
	Hold      string        `json:"hold,omitempty"` // kind of what a streamd member holds this queue for; empty for what holds its whole stream
	Why       string        `json:"why,omitempty"`  // why it does not move, when it does not
}

// The states of a queue.
const (
	StateActive   = "active"   // an owner handles it
	StateIdle     = "idle"     // an owner has it and nothing is left to handle
	StateHeld     = "held"     // an owner has it and does not go on
	StateUnowned  = "unowned"  // no member has it
	StateUnknown  = "unknown"  // the members could not be asked
	StateOverlap  = "overlap"  // more than one member has it
	StateDraining = "draining" // its owner gives it up and waits for what is in flight
)
