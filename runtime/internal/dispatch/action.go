package dispatch

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// LaneID names a lane within a dispatcher; it is never used twice.
type LaneID int

// noLane stands for the solo lane that could not be opened.
const noLane LaneID = -1

// ActionKind says what the shell has to do.
type ActionKind uint8

// The actions. Which fields of Action count is told with each.
const (
	// ActSend: Lane, Seq, Items.
	ActSend ActionKind = iota + 1
	// ActAck: Own, Items were acked without outputs; settle them.
	ActAck
	// ActVerdict: D was answered with Verdict, or acked with Results and Outputs; hand it to the settler.
	ActVerdict
	// ActDrop: Own, Items; Out tells that they had been sent. They stay unsettled.
	ActDrop
	// ActReturn: Own, Items came back unanswered and wait to be sent again.
	ActReturn
	// ActTake: Own, Items are answered without having been sent; they count as out until the verdict is settled.
	ActTake
	// ActMove: Items go to the dispatcher that replaces this one; they were not sent.
	ActMove
	// ActCancel: Lane, Seq, Index.
	ActCancel
	// ActRevoke: Own's queue goes; tell every lane.
	ActRevoke
	// ActOpenSolo asks for a lane with a process of its own.
	ActOpenSolo
	// ActClose: Lane is not needed any more; drain it.
	ActClose
	// ActSettle: hand Job to the settler, after everything that was answered before.
	ActSettle
	// ActFailure: D failed in a way that is no verdict (crash); Verdict says how.
	ActFailure
)

// Action is one thing the shell has to do. Its slices are valid until the next step.
type Action struct {
	Kind    ActionKind
	Lane    LaneID
	Seq     uint64
	Items   []*queue.Delivery
	Own     *queue.Ownership
	Out     bool
	D       *queue.Delivery
	Verdict frame.Verdict
	Info    *frame.LaneInfo // who answered or died
	Results *frame.Results
	Outputs []int // indexes into Results.Outputs
	Index   []uint32
	Job     *settle.Job
}

// Settings are what a reload may change.
type Settings struct {
	BatchMax   int
	BatchBytes int
	Linger     time.Duration // how long a batch may wait to fill while others are out on its lane
	Deadline   time.Duration // per record, from its start
}

// Counters count since the dispatcher started.
type Counters struct {
	Batches, Records   uint64
	Acks, Retries      uint64
	Rejects, Untouched uint64
	Deadlines          uint64
	Late               uint64 // answers that came too late or twice
	LanesLost, Crashes uint64
	Suspects, Poisoned uint64
	Outputs            uint64
	Redelivered        uint64 // sent again after a lost lane, without an attempt
}
