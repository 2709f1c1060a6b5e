package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Cause is something that happened to a group and that may explain why what was handled is handled again.
type Cause struct {
	What string
	// Host is the member that it happened to; 0: to all of them.
	Host int
	// From and Until bound when the second handling starts; nanoseconds since 1970.
	From, Until int64
	// Reach is how long before From the first handling may have ended: what was settled and not stored as an offset.
	Reach time.Duration
	// Foreign limits the cause to repeats in which a member that is no streamd had a part.
	Foreign bool
}

// Handling is one delivery that was acknowledged, or that its member did not live to answer.
type Handling struct {
	Entry        // its start
	End    int64 // nanoseconds since 1970; of one without an answer, its start
	Acked  bool
	Answer bool // there is an answer
}

// Group is a ledger that all members of a group kept together, held against what happened to them.
type Group struct {
	Lost []string
	// Again counts the messages that were handled again, by the cause that explains it.
	Again map[string]int
	// Faults are repeats that nothing explains, overlaps between streamd members, and disorder.
	Faults []string
	// Overlaps counts handlings of one queue by two members at a time, by what explains it.
	Overlaps map[string]int
	// Disorder counts the starts of foreign members that came before what stands in front of them was handled.
	Disorder int
}

// Streamd tells which hosts are streamd members.
type Streamd func(host int) bool

// CheckGroup holds a ledger against what was produced and what happened. ordered asks for order within each queue too: nobody
// starts what stands behind a message that was not yet handled.
func CheckGroup(entries []Entry, produced []string, dead func(body string) bool, causes []Cause, ours Streamd, ordered bool) *Group {
	g := &Group{Again: map[string]int{}, Overlaps: map[string]int{}}
	all := handlings(entries)
	byBody, failed := map[string][]Handling{}, map[string][]Handling{}
	for _, h := range all {
		if h.Acked {
			byBody[h.Body] = append(byBody[h.Body], h)
		} else {
			failed[h.Body] = append(failed[h.Body], h)
		}
	}
	for _, body := range produced {
		if len(byBody[body]) == 0 && !dead(body) {
			g.Lost = append(g.Lost, body)
		}
	}
	for _, body := range produced {
		for i, h := range byBody[body] {
			if i > 0 {
				g.again(byBody[body][i-1], h, failed[body], causes, ours)
			}
		}
	}
	g.overlaps(all, causes, ours)
	if ordered {
		g.disorder(all, ours)
	}
	return g
}

// handlings pairs starts with ends, in the order of the starts.
func handlings(entries []Entry) (all []Handling) {
	type key struct {
		queue   string
		offset  int64
		attempt int
		pid     int
	}
	open := map[key]int{}
	for _, e := range entries {
		k := key{e.Queue, e.Offset, e.Attempt, e.PID}
		if e.Event == Start {
			open[k] = len(all)
			all = append(all, Handling{Entry: e, End: e.At})
		} else if i, ok := open[k]; ok {
			all[i].End, all[i].Answer, all[i].Acked = e.At, true, e.Error == ""
			delete(open, k)
		}
	}
	slices.SortStableFunc(all, func(a, b Handling) int { return cmp.Compare(a.At, b.At) })
	return all
}

func explain(a, b Handling, causes []Cause, ours Streamd) string {
	if !ours(a.Host) && !ours(b.Host) {
		return "between members that are no streamd" // streamd promises nothing of them
	}
	foreign := !ours(a.Host) || !ours(b.Host)
	for _, c := range slices.Backward(causes) { // the last thing that happened
		if c.Host != 0 && c.Host != a.Host && c.Host != b.Host || c.Foreign && !foreign {
			continue
		}
		if b.At >= c.From && b.At <= c.Until && a.End >= c.From-int64(c.Reach) {
			return c.What
		}
	}
	return ""
}

// explainPair is explain for two that need not be in order.
func explainPair(a, b Handling, causes []Cause, ours Streamd) string {
	if b.At < a.At {
		a, b = b, a
	}
	return explain(a, b, causes, ours)
}

// again finds out why b came though a was acknowledged. When an attempt was delivered twice and one of the two failed, a retry of it
// is on its way whatever became of the other; when both failed, there are two retries.
func (g *Group) again(a, b Handling, failed []Handling, causes []Cause, ours Streamd) {
	why := explain(a, b, causes, ours)
	for i, f := range failed {
		if why != "" {
			break
		}
		twins := []Handling{a, b}
		if i > 0 {
			twins = append(twins, failed[i-1])
		}
		for _, twin := range twins {
			if why == "" && twin.Attempt == f.Attempt && f.Attempt < max(a.Attempt, b.Attempt) {
				why = explainPair(f, twin, causes, ours)
			}
		}
	}
	if why != "" {
		g.Again[why]++
		return
	}
	g.Faults = append(g.Faults, fmt.Sprintf("%q was handled by %d at %s@%d until %s, and again by %d at %s@%d from %s: nothing explains it",
		a.Body, a.Host, a.Queue, a.Offset, clock(a.End), b.Host, b.Queue, b.Offset, clock(b.At)))
}

// overlaps finds two members at work on one queue at a time. What was pulled from a retry topic stands elsewhere.
func (g *Group) overlaps(all []Handling, causes []Cause, ours Streamd) {
	last := map[string]Handling{} // the one that ends last, by queue
	for _, h := range all {
		if h.Attempt > 1 {
			continue
		}
		if before, ok := last[h.Queue]; ok && before.Host != h.Host && h.At < before.End {
			switch why := explain(before, h, causes, ours); {
			case why != "":
				g.Overlaps[why]++
			case ours(before.Host) && ours(h.Host):
				g.Faults = append(g.Faults, fmt.Sprintf("streamd members %d and %d were both at work on %s at %s", before.Host, h.Host, h.Queue, clock(h.At)))
			default:
				g.Overlaps["unexplained, with a foreign member"]++
			}
		}
		if h.End >= last[h.Queue].End {
			last[h.Queue] = h
		}
	}
}

// tick is how exactly the members' clocks are written down: a Java member's in milliseconds.
const tick = int64(2 * time.Millisecond)

func (g *Group) disorder(all []Handling, ours Streamd) {
	first := map[string]map[int64]int64{} // when what stands there was first handled
	for _, h := range all {
		if first[h.Queue] == nil {
			first[h.Queue] = map[int64]int64{}
		}
		if at, ok := first[h.Queue][h.Offset]; h.Acked && (!ok || h.End < at) {
			first[h.Queue][h.Offset] = h.End
		}
	}
	type step struct{ offset, handled int64 } // all up to offset are handled by then
	steps := map[string][]step{}
	for queue, at := range first {
		latest := int64(0)
		for _, offset := range slices.Sorted(maps.Keys(at)) {
			latest = max(latest, at[offset])
			steps[queue] = append(steps[queue], step{offset, latest})
		}
	}
	for _, h := range all {
		s := steps[h.Queue]
		i, _ := slices.BinarySearchFunc(s, h.Offset, func(s step, o int64) int { return cmp.Compare(s.offset, o) })
		if i == 0 || s[i-1].handled <= h.At+tick {
			continue
		}
		if !ours(h.Host) {
			g.Disorder++
			continue
		}
		g.Faults = append(g.Faults, fmt.Sprintf("streamd member %d started %s@%d at %s, before all that stands in front of it was handled (%s)", h.Host, h.Queue, h.Offset, clock(h.At), clock(s[i-1].handled)))
	}
}

func clock(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000") }
