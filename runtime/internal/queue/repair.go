package queue

// RepairFacts is what a broker says when it refuses the offset of a pull (code 21).
type RepairFacts struct {
	Requested, Next, Min, Max int64
	Reset                     bool  // the broker calls it a reset
	LastSettledMillis         int64 // greatest store time settled in this queue by this member; 0 = unknown
}

// RepairAction says how a queue goes on after its offset was refused.
type RepairAction uint8

// The repairs.
const (
	RepairReset   RepairAction = iota + 1 // a reset: new epoch at the offset, committed even if lower
	RepairExpired                         // below the queue's start: new epoch at the offset, the gap is counted
	RepairByTime                          // above its end: ask for the offset of the last settled store time minus a margin
	RepairHold                            // above its end and no time known: the operator decides
)

// DecideRepair is the table of design.md 7 'Offsets out of range'. A refused offset that lies within the queue is a
// reset whatever the broker calls it; one above the end never goes to the end: the tail may have been lost.
func DecideRepair(f RepairFacts) (action RepairAction, offset, expired int64) {
	switch {
	case f.Reset, f.Requested >= f.Min && f.Requested <= f.Max && f.Next != f.Requested:
		return RepairReset, f.Next, 0
	case f.Requested < f.Min:
		return RepairExpired, f.Min, f.Min - f.Requested
	case f.LastSettledMillis > 0:
		return RepairByTime, 0, 0
	default:
		return RepairHold, 0, 0
	}
}
