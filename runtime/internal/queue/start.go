package queue

import "time"

// From is where a group that has no offsets starts. The zero value is FromLast.
type From struct {
	Where Where
	At    time.Time // WhereTimestamp
}

// Where is the kind of a start position.
type Where uint8

// The start positions.
const (
	WhereLast Where = iota
	WhereFirst
	WhereTimestamp
)

// StartFacts is what is known when a queue begins.
type StartFacts struct {
	Stored    int64 // with HasStored
	HasStored bool
	Retry     bool // %RETRY%group
	// OthersHaveOffsets tells that the group has offsets of other queues of the topic: it is not new there.
	OthersHaveOffsets bool
	Min               int64
	From              From
	// Own tells that the member keeps its offsets itself, all in one file: a queue without one was never seen, not lost.
	Own bool
}

// StartAction says where to begin, or what must be asked first.
type StartAction uint8

// The start actions.
const (
	StartAt    StartAction = iota // at Offset, which is stored already
	StartFresh                    // at Offset, which must be committed before the first pull
	StartAtMax                    // ask for the queue's end, then as StartFresh
	StartAtTime
	StartHold // the operator decides
	StartLate // as StartFresh; what lay below Offset has expired unread
)

// DecideStart is the table of design.md 7 'Offsets' and 'New queue or lost offsets?' (the base is
// consumer-semantics.md 2.7). A failed question never comes here: it is asked again.
func DecideStart(f StartFacts) (StartAction, int64) {
	switch {
	case f.HasStored:
		return StartAt, f.Stored
	case f.Retry:
		return StartFresh, 0
	case f.OthersHaveOffsets && f.Min <= 0:
		return StartFresh, 0
	case f.OthersHaveOffsets && f.Own:
		return StartLate, f.Min
	case f.OthersHaveOffsets:
		return StartHold, 0
	}
	switch f.From.Where {
	case WhereFirst:
		return StartFresh, f.Min
	case WhereTimestamp:
		return StartAtTime, 0
	default:
		return StartAtMax, 0
	}
}
