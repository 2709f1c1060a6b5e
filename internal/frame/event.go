package frame

import (
	"errors"
	"time"
)

// LaneSpec says what a lane is opened for. A lane belongs to one (handler, stream, shard) and is never shared by streams.
type LaneSpec struct {
	Handler     string // name of the entry under handlers:
	Stream      string // name of the entry under streams:
	Shard       int
	Concurrency int           // records that may run at once
	Credits     int           // records the plugin may buffer; at least 4 batches
	Deadline    time.Duration // per record, from its start
	// Solo asks for a process of its own that sees one record at a time: where the suspects of a crash are tried.
	// A crash of a solo process does not count for the plugin's breaker.
	Solo bool
	// Ordered says that the stream keeps an order. A handler that declares that it cannot is refused.
	Ordered bool
	// Deliver takes the lane's events one by one, the last included, in the place of Events, which is only closed after it. It
	// may be called before the lane is handed over, never when opening it fails, and must not block for long. A host may do
	// without it; nil: all come by Events.
	Deliver func(Event)
}

// LaneInfo says which process answers on a lane. Generation grows with every start of the process.
type LaneInfo struct {
	Plugin     string // name of the entry under plugins:
	Version    string
	Checksum   string // sha256 of the binary that runs
	ConfigHash string // of the handler's config as delivered
	Generation uint64
	PID        int
	MaxBytes   int // largest frame the plugin takes
}

// Batch is what the host sends on a lane. Seq is unique within the lane and grows by one.
type Batch struct {
	Seq     uint64
	Budget  time.Duration // per record, from its start
	Records Records
}

// Event is one thing a lane reports. Exactly one of the fields beside Kind is meaningful, see the constants.
type Event struct {
	Kind    EventKind
	Credits int      // EventCredit: how many more records may be sent
	Ref     Ref      // EventStarted
	Results *Results // EventResults; owned by the receiver
	Lost    *Lost    // EventLost; the last event of a lane
}

// EventKind tells what an Event reports.
type EventKind uint8

// The kinds of events.
const (
	EventCredit  EventKind = iota + 1 // the plugin can take Credits more records
	EventStarted                      // a record runs for longer than a second
	EventResults                      // verdicts, with the outputs that go with them
	EventDrained                      // everything sent has been answered and the lane is closed; the last event
	EventLost                         // the lane is gone with records unanswered; the last event
)

// Ref names one record sent on a lane.
type Ref struct {
	Seq   uint64
	Index uint32
}

// Results carries verdicts for records of one batch, in any order and in parts. A record is answered at most once: the
// host drops and counts second answers and answers for records that were never sent.
type Results struct {
	Seq      uint64
	AckRuns  []uint32 // start, count, start, count, ...
	Verdicts []Verdict
	Outputs  Records  // Topic empty or "" = the stream's default topic; End has four ends as usual
	Cause    []uint32 // per output: index of the record that emitted it
	// OutputDelay is, per output, the requested delay; empty when no output has one.
	OutputDelay []time.Duration
	// OutputShardingKey is, per output, the key that chooses the queue; empty when no output has one.
	OutputShardingKey []string
}

// Verdict is any answer but a plain ack.
type Verdict struct {
	Index uint32
	Kind  VerdictKind
	Delay time.Duration // VerdictRetry: wanted delay, 0 = the policy's
	Class string        // short, stable class of the error: "timeout", "panic", the author's own
	Text  string
}

// VerdictKind tells how a record ended.
type VerdictKind uint8

// The kinds of verdicts.
const (
	VerdictAck       VerdictKind = iota + 1
	VerdictRetry                 // deliver again later; counts as an attempt
	VerdictReject                // dead-letter now
	VerdictUntouched             // never given to the author's code (drain, revoke): not an attempt
)

// Lost says why a lane ended with records unanswered.
type Lost struct {
	Cause Cause
	Text  string // for the operator: exit status, last stderr lines
	// Suspects were running when the process died: what the shared page said. Empty unless Cause is CauseCrash or CauseHang.
	Suspects []Ref
}

// Cause classifies a lost lane.
type Cause uint8

// The causes. Only CauseCrash, CauseHang and CauseMemory say something against a message.
const (
	CauseCrash    Cause = iota + 1 // the process ended by itself
	CauseHang                      // no answer in deadline + grace, or no sign of life; the host killed it
	CauseMemory                    // over its memory limit; the host or the kernel killed it
	CauseProtocol                  // the plugin broke the protocol; the host closed the lane
	CauseSwap                      // replaced by a new generation; not the messages' doing
	CauseStopped                   // aborted by the engine or stopped by the operator
)

// Errors of Lane.Send.
var (
	ErrNoCredit = errors.New("no credit left on the lane")
	ErrLaneDone = errors.New("lane is closed")
)
