package dispatch

import (
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

func (c *Core) lane(id LaneID) *lane {
	for _, l := range c.lanes {
		if l.id == id {
			return l
		}
	}
	return nil
}

func (c *Core) opened(in Input) {
	l := newLane(in.Lane, in.Info, in.Solo)
	c.lanes = append(c.lanes, l)
	if in.Solo {
		c.solo.state, c.solo.lane = soloOpen, l
	}
}

func (c *Core) event(now time.Time, id LaneID, e *frame.Event) {
	l := c.lane(id)
	if l == nil {
		if id == noLane && c.solo.state == soloOpening {
			c.solo.state = soloNone // the solo lane could not be opened
		}
		return
	}
	switch e.Kind {
	case frame.EventCredit:
		l.credits += e.Credits
	case frame.EventStarted:
		c.started(now, l, e.Ref)
	case frame.EventResults:
		c.results(now, l, e.Results)
	case frame.EventDrained:
		c.lost(now, l, &frame.Lost{Cause: frame.CauseSwap})
	case frame.EventLost:
		c.lost(now, l, e.Lost)
	}
}

// startedAfter is how long a record runs before the SDK says so.
const startedAfter = time.Second

// deadlineGrace is how long the SDK's own deadline verdict may take to come before the engine gives its own.
const deadlineGrace = 500 * time.Millisecond

func (c *Core) started(now time.Time, l *lane, r frame.Ref) {
	f := l.flights[r.Seq]
	if f == nil || int(r.Index) >= len(f.items) || f.items[r.Index] == nil {
		return
	}
	again := slices.ContainsFunc(c.running, func(o running) bool { return o.lane == l && o.seq == r.Seq && o.index == r.Index })
	if c.settings.Deadline > 0 && !again {
		c.running = append(c.running, running{lane: l, seq: r.Seq, index: r.Index, until: now.Add(c.settings.Deadline + deadlineGrace - startedAfter)})
	}
}

// overdue gives the verdict for records whose deadline passed without one. What the handler says later is late.
func (c *Core) overdue(now time.Time) {
	c.running = slices.DeleteFunc(c.running, func(r running) bool {
		f := r.lane.flights[r.seq]
		if f == nil || int(r.index) >= len(f.items) || f.items[r.index] == nil {
			return true
		}
		if now.Before(r.until) {
			return false
		}
		d, index := r.lane.answer(f, r.index), []uint32{r.index}
		if d.Strand != 0 {
			c.ghost(r.lane, r.seq, r.index, d)
			index = append(index, c.giveUpRest(now, r.lane, f, d)...)
		}
		r.lane.end(f)
		c.counters.Deadlines++
		c.act(Action{Kind: ActCancel, Lane: r.lane.id, Seq: r.seq, Index: index})
		c.verdict(d, r.lane, frame.Verdict{Index: r.index, Kind: frame.VerdictRetry, Class: "deadline", Text: "no answer within " + c.settings.Deadline.String()})
		return true
	})
}

// results takes verdicts. Acks without outputs are settled in runs of one queue; all others one by one.
func (c *Core) results(now time.Time, l *lane, r *frame.Results) {
	c.exorcise(l, r)
	f := l.flights[r.Seq]
	if f == nil {
		c.counters.Late += uint64(countAnswers(r))
		return
	}
	outputs := outputsByRecord(r)
	start := len(c.scratch)
	for k := 0; k+1 < len(r.AckRuns); k += 2 {
		first, n := r.AckRuns[k], r.AckRuns[k+1]
		for i := first; i < first+n && int(i) <= len(f.items); i++ {
			start = c.ack(l, f, i, r, outputs, start)
		}
	}
	c.flushAcks(l, start)
	for i := range r.Verdicts {
		c.other(now, l, f, r.Verdicts[i])
	}
	l.end(f)
}

func countAnswers(r *frame.Results) (n uint32) {
	for k := 1; k < len(r.AckRuns); k += 2 {
		n += r.AckRuns[k]
	}
	return n + uint32(len(r.Verdicts))
}

func outputsByRecord(r *frame.Results) map[uint32][]int {
	if len(r.Cause) == 0 {
		return nil
	}
	m := make(map[uint32][]int, len(r.Cause))
	for i, cause := range r.Cause {
		m[cause] = append(m[cause], i)
	}
	return m
}

// ack collects one ack; runs of one queue become one action. It returns where the open run starts in scratch.
func (c *Core) ack(l *lane, f *flight, i uint32, r *frame.Results, outputs map[uint32][]int, start int) int {
	d := l.answer(f, i)
	if d == nil {
		c.counters.Late++
		return start
	}
	c.counters.Acks++
	c.acks[l.key]++
	src := c.source(d.Own)
	src.out--
	if src.revoked {
		c.forget(src)
	}
	if out := outputs[i]; c.stores(d, len(out) > 0) || len(out) > 0 || d.Direct != nil || d.Retried() {
		c.counters.Outputs += uint64(len(out))
		c.act(Action{Kind: ActVerdict, D: d, Verdict: frame.Verdict{Index: i, Kind: frame.VerdictAck}, Info: &l.info, Results: r, Outputs: out})
		return start
	}
	if d.Strand != 0 {
		c.strandDone(d.Own, d.Strand)
	}
	if start < len(c.scratch) && c.scratch[start].Own != d.Own {
		c.flushAcks(l, start)
		start = len(c.scratch)
	}
	c.scratch = append(c.scratch, d)
	return start
}

func (c *Core) flushAcks(l *lane, start int) {
	if start < len(c.scratch) {
		run := c.scratch[start:len(c.scratch):len(c.scratch)]
		c.act(Action{Kind: ActAck, Own: run[0].Own, Items: run, Info: &l.info})
	}
}

func (c *Core) other(now time.Time, l *lane, f *flight, v frame.Verdict) {
	d := l.answer(f, v.Index)
	if d == nil {
		c.counters.Late++
		return
	}
	switch v.Kind {
	case frame.VerdictUntouched:
		c.counters.Untouched++
		if d.Crashed() {
			c.backToSuspects(d)
			return
		}
		c.requeue(now, d)
	case frame.VerdictAck:
		c.counters.Acks++
		c.acks[l.key]++
		c.settle(d, l, v)
	case frame.VerdictReject:
		c.counters.Rejects++
		c.settle(d, l, v)
	default:
		v.Kind = frame.VerdictRetry
		c.counters.Retries++
		c.settle(d, l, v)
	}
}

// verdict counts and passes on a verdict that the engine itself gives.
func (c *Core) verdict(d *queue.Delivery, l *lane, v frame.Verdict) {
	if v.Kind == frame.VerdictReject {
		c.counters.Rejects++
	} else {
		c.counters.Retries++
	}
	c.settle(d, l, v)
}

func (c *Core) settle(d *queue.Delivery, l *lane, v frame.Verdict) {
	s := c.source(d.Own)
	s.out--
	if s.revoked {
		c.forget(s)
	}
	c.act(Action{Kind: ActVerdict, D: d, Verdict: v, Info: &l.info})
}
