package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Kill is one kill -9 of a loop.
type Kill struct {
	What string // who was killed
	// At is when the signal went, Gone when the killed were gone; nanoseconds since 1970.
	At, Gone int64
	// PID or Host narrows to the deliveries that died with it: a plugin process, or a streamd with its plugins. Both 0: all.
	PID, Host int
	// Committed are the offsets that the broker had stored at the kill, or a moment before: what may be delivered again
	// after a kill of streamd. Nil for kills after which nothing that was settled may come again.
	Committed map[string]int64 // by queue
}

// hits tells whether a delivery was at the mercy of the kill.
func (k Kill) hits(e Entry) bool {
	return (k.PID == 0 || k.PID == e.PID) && (k.Host == 0 || k.Host == e.Host)
}

// InFlightAt lists the deliveries that had started and not ended at a kill, where it struck.
func InFlightAt(entries []Entry, k Kill) []Entry {
	return InFlight(slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.At > k.Gone || !k.hits(e) }))
}

// Repeat is a second delivery of what stands at one place of one queue.
type Repeat struct {
	First, Again Entry // their starts
	Ended        bool  // the first delivery had been answered
	Kill         int   // index of the kill between the two; -1 = there is none
}

// Audit is what a ledger says against what was produced.
type Audit struct {
	Lost        []string // produced, neither handled nor dead-lettered
	WronglyDead []string // dead-lettered, though not told to
	InFlight    []int    // by kill
	Repeats     []Repeat
	// Copies are bodies that were handled at more than one place although no delivery of theirs was repeated: the broker
	// stored them twice, as happens when the answer to a send is lost.
	Copies []string
	// Handled counts the produced bodies that were handled; Twice those of them that were handled more than once.
	Handled, Twice int
}

// place is where a message stands.
type place struct {
	queue  string
	offset int64
}

// RetryQueue is how Committed names a queue of the group's retry topic.
func RetryQueue(broker string, id int32) string { return fmt.Sprintf("retry:%s/%d", broker, id) }

// PlaceOf is where a delivery was pulled from, with the queue as Committed names it.
func PlaceOf(e Entry) (queue string, offset int64) {
	p := placeOf(e)
	return p.queue, p.offset
}

// placeOf is where a delivery was pulled from. A second attempt comes from the retry topic, whose broker and queue id the
// message shows beside its original topic.
func placeOf(e Entry) place {
	if _, rest, ok := strings.Cut(e.Queue, "/"); ok && e.Attempt > 1 {
		return place{"retry:" + rest, e.Offset}
	}
	return place{e.Queue, e.Offset}
}

// Check holds the ledger against what was produced (acknowledged sends), what is in the dead-letter topic, and the kills.
// reject tells which bodies belong there.
func Check(entries []Entry, produced, dead []string, kills []Kill, reject func(body string) bool) *Audit {
	a := &Audit{}
	inDead := map[string]bool{}
	for _, b := range dead {
		inDead[b] = true
		if !reject(b) {
			a.WronglyDead = append(a.WronglyDead, b)
		}
	}
	handled := Handled(entries)
	for _, b := range produced {
		switch {
		case handled[b] == 0 && !inDead[b]:
			a.Lost = append(a.Lost, b)
		case handled[b] > 1:
			a.Twice++
			fallthrough
		case handled[b] == 1:
			a.Handled++
		}
	}
	for _, k := range kills {
		a.InFlight = append(a.InFlight, len(InFlightAt(entries, k)))
	}
	a.repeats(entries, kills)
	a.copies(entries)
	return a
}

// repeats pairs each delivery with the one before at its place.
func (a *Audit) repeats(entries []Entry, kills []Kill) {
	type open struct {
		start Entry
		ended bool
	}
	last := map[place]*open{}
	for _, e := range entries {
		p := placeOf(e)
		o := last[p]
		if e.Event == End {
			if o != nil && o.start.PID == e.PID {
				o.ended = true
			}
			continue
		}
		if o != nil {
			a.Repeats = append(a.Repeats, Repeat{First: o.start, Again: e, Ended: o.ended, Kill: between(kills, o.start, e)})
		}
		last[p] = &open{start: e}
	}
}

// between returns the last kill that explains why a delivery came again.
func between(kills []Kill, first, again Entry) int {
	for i, k := range slices.Backward(kills) {
		if first.At <= k.Gone && again.At >= k.At && k.hits(first) {
			return i
		}
	}
	return -1
}

func (a *Audit) copies(entries []Entry) {
	repeated := map[string]bool{}
	for _, r := range a.Repeats {
		repeated[r.First.Body] = true
	}
	at := map[string]map[place]bool{}
	for _, e := range entries {
		if e.Event != End || e.Error != "" || repeated[e.Body] {
			continue
		}
		if at[e.Body] == nil {
			at[e.Body] = map[place]bool{}
		}
		at[e.Body][placeOf(e)] = true
	}
	for body, places := range at {
		if len(places) > 1 {
			a.Copies = append(a.Copies, body)
		}
	}
	slices.Sort(a.Copies)
}

// Bound is how many deliveries a kill may repeat: what was in flight at it and, when offsets are given, what had been
// settled beyond them.
func Bound(entries []Entry, k Kill) (inFlight, settled int) {
	inFlight = len(InFlightAt(entries, k))
	if k.Committed == nil {
		return inFlight, 0
	}
	seen := map[place]bool{}
	for _, e := range entries {
		if e.Event == End && e.At <= k.Gone && k.hits(e) && e.Offset >= k.Committed[placeOf(e).queue] {
			seen[placeOf(e)] = true
		}
	}
	return inFlight, len(seen)
}

// Faults says what breaks the promises: empty when all hold. slack is how many records per kill the host may have been
// about to hear of: answered in the plugin, not yet read from its pipe.
func (a *Audit) Faults(entries []Entry, kills []Kill, slack int) []string {
	var faults []string
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if len(a.Lost) > 0 {
		say("LOSS %d: %.300v", len(a.Lost), a.Lost)
	}
	if len(a.WronglyDead) > 0 {
		say("%d dead letters that no handler rejected: %.300v", len(a.WronglyDead), a.WronglyDead)
	}
	counts := a.ByKill(len(kills))
	for i, k := range kills {
		if a.InFlight[i] == 0 {
			say("kill %d of %s hit no work in flight: it proves nothing", i+1, k.What)
		}
		inFlight, settled := Bound(entries, k)
		if c := counts[i]; c.Answered > settled+slack || c.Open > inFlight {
			say("kill %d of %s: %d answered and %d unanswered deliveries came again; %d were settled since the last commit and %d in flight", i+1, k.What, c.Answered, c.Open, settled, inFlight)
		}
	}
	for _, r := range a.Repeats {
		switch {
		case r.Kill < 0:
			say("%q came again at %s@%d, and no kill hit what ran it: a duplicate in steady state", r.Again.Body, r.Again.Queue, r.Again.Offset)
		case r.Ended && kills[r.Kill].Committed != nil && r.Again.Offset < kills[r.Kill].Committed[placeOf(r.Again).queue]:
			at := placeOf(r.Again)
			say("%q came again at %s@%d, though %d was committed", r.Again.Body, at.queue, at.offset, kills[r.Kill].Committed[at.queue])
		}
	}
	return faults
}

// Count is what one kill led to.
type Count struct {
	Answered int // deliveries repeated although they had been answered: the duplicates
	Open     int // deliveries repeated that had no answer
}

// ByKill counts the repeats of each kill. A place that came again more than once counts once.
func (a *Audit) ByKill(kills int) []Count {
	counts := make([]Count, kills)
	type cause struct {
		kill int
		place
	}
	seen := map[cause]bool{}
	for _, r := range a.Repeats {
		c := cause{r.Kill, placeOf(r.Again)}
		if r.Kill < 0 || seen[c] {
			continue
		}
		seen[c] = true
		if r.Ended {
			counts[r.Kill].Answered++
		} else {
			counts[r.Kill].Open++
		}
	}
	return counts
}

// Text is one line for each kill and a summary.
func (a *Audit) Text(entries []Entry, kills []Kill) string {
	var b strings.Builder
	counts := a.ByKill(len(kills))
	most, total := 0, 0
	for i, k := range kills {
		inFlight, settled := Bound(entries, k)
		fmt.Fprintf(&b, "kill %2d %-22s in flight %3d, settled since the last commit %4d; came again: %3d in flight, %3d answered\n",
			i+1, k.What, inFlight, settled, counts[i].Open, counts[i].Answered)
		most = max(most, counts[i].Answered)
		total += counts[i].Answered
	}
	fmt.Fprintf(&b, "handled %d, LOST %d, answered deliveries repeated %d (at most %d a kill), handled more than once %d, stored twice %d",
		a.Handled, len(a.Lost), total, most, a.Twice, len(a.Copies))
	return b.String()
}
