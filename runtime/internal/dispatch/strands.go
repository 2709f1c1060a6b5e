package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// strandID is what a strand is about: it outlives the ownership of its queue.
type strandID struct {
	queue sdk.Queue
	key   string // order by key
}

// strand is the messages of one owned queue that must stay in order. While one of them is out, or at the settler, no other is
// sent; those of one batch come after one another in the plugin. What comes behind a suspect waits for it, and a suspect for what
// comes before it.
type strand struct {
	id      strandID
	number  uint32 // in frames; unique in the stream, never 0
	source  *source
	waiting []*queue.Delivery // in the order of their offsets
	out     int               // given to a lane and not settled since: on lanes, at the settler, suspects
	listed  bool              // among the source's runnable ones
	storing bool              // something of what is out was acked with outputs: what is acked after it is settled after it
}

// runnable tells that the strand's next message may be sent.
func (c *Core) runnable(st *strand) bool {
	if len(st.waiting) == 0 || c.ghosts[st.id] > 0 {
		return false
	}
	n, first := c.suspectsOf(st)
	return st.out == n && st.waiting[0].Offset < first
}

// suspectsOf is the number of suspects of a strand, and the lowest of their offsets; none: one that no message has.
func (c *Core) suspectsOf(st *strand) (n int, first int64) {
	first = math.MaxInt64
	for _, d := range c.suspects {
		if d.Own == st.source.own && d.Strand == st.number {
			n, first = n+1, min(first, d.Offset)
		}
	}
	return n, first
}

// strandOf is the strand of a message, made if need be.
func (c *Core) strandOf(s *source, d *queue.Delivery) *strand {
	if st := c.strands[d.Strand]; st != nil && st.source == s {
		return st
	}
	var key []byte
	if s.own.Order == queue.OrderKey {
		key = d.OrderKey()
	}
	st := s.keys[string(key)]
	if st == nil {
		number := d.Strand // of the dispatcher before this one; who settles the message knows it by it
		if number == 0 {
			number = c.number()
		}
		st = &strand{id: strandID{queue: s.own.Queue, key: string(key)}, number: number, source: s}
		if s.keys == nil {
			s.keys = make(map[string]*strand)
		}
		s.keys[st.id.key] = st
		c.strands[number] = st
	}
	d.Strand = st.number
	return st
}

// wait puts a message into its strand, at its place, and lists the strand when it may go on.
func (c *Core) wait(s *source, d *queue.Delivery) {
	st := c.strandOf(s, d)
	i := len(st.waiting)
	for i > 0 && st.waiting[i-1].Offset > d.Offset {
		i--
	}
	st.waiting = slices.Insert(st.waiting, i, d)
	c.ready++
	c.goOn(st)
}

// goOn lists a strand that may go on, and forgets one that is done.
func (c *Core) goOn(st *strand) {
	switch {
	case c.runnable(st) && !st.listed:
		st.listed = true
		st.source.runnable = append(st.source.runnable, st)
		c.list(st.source)
	case st.out == 0 && len(st.waiting) == 0 && !st.listed:
		delete(st.source.keys, st.id.key)
		delete(c.strands, st.number)
	}
}

// strandDone tells that a message of a strand that was out is settled, or back.
func (c *Core) strandDone(o *queue.Ownership, number uint32) {
	if st := c.strands[number]; st != nil && st.source.own == o {
		st.out--
		c.goOn(st)
	}
}

// back takes a message that was out back into its strand.
func (c *Core) back(s *source, d *queue.Delivery) {
	if st := c.strands[d.Strand]; st != nil && st.source == s {
		st.out--
	}
	c.wait(s, d)
}

// takeStrands moves messages of a source's strands into a batch: of each strand as many as fit, in order. It tells whether
// the batch is full by bytes.
func (c *Core) takeStrands(now time.Time, s *source, l *lane, f *flight, room int, bytes *int) (full bool) {
	if s.own.LeaseOver(now) {
		c.unlistStrands(s) // the worker hears of it and takes the queue back, or offers again when the lock is renewed
		return false
	}
	for len(f.items) < room && len(s.runnable) > 0 && !full {
		st := s.runnable[0]
		s.runnable, st.listed, st.storing = slices.Delete(s.runnable, 0, 1), false, false
		_, suspect := c.suspectsOf(st)
		n := 0
		for n < len(st.waiting) && st.waiting[n].Offset < suspect && len(f.items) < room && !full {
			d := st.waiting[n]
			if full = !c.fits(d, l, f, *bytes); full {
				continue
			}
			n++
			c.ready--
			s.out++
			st.out++
			if oversized(d, l) {
				c.tooLarge(d, l)
				break // what follows waits until it is settled
			}
			put(now, d, f, bytes)
			if d.Retried() {
				break // should it fail again, the handler has done nothing behind it that it has to do again
			}
		}
		st.waiting = slices.Delete(st.waiting, 0, n)
		c.goOn(st) // when there was no room for any of it
	}
	return full
}

func (c *Core) unlistStrands(s *source) {
	for _, st := range s.runnable {
		st.listed = false
	}
	s.runnable = s.runnable[:0]
}

// endStrands forgets the strands of a source that goes and returns what waits in them.
func (c *Core) endStrands(s *source) (waiting []*queue.Delivery) {
	for key, st := range s.keys {
		waiting = append(waiting, st.waiting...)
		delete(s.keys, key)
		delete(c.strands, st.number)
	}
	c.unlistStrands(s)
	slices.SortFunc(waiting, byOffset)
	return waiting
}

func byOffset(a, b *queue.Delivery) int {
	switch {
	case a.Offset < b.Offset:
		return -1
	case a.Offset > b.Offset:
		return 1
	}
	return 0
}

// ghost remembers a record that the engine has given up and the handler has not: until it is answered, or its lane is gone,
// nothing of its strand starts, in no epoch.
func (c *Core) ghost(l *lane, seq uint64, index uint32, d *queue.Delivery) {
	if l.ghosts == nil {
		l.ghosts = make(map[frame.Ref]ghost)
	}
	g := ghost{strand: idOf(d), own: d.Own}
	l.ghosts[frame.Ref{Seq: seq, Index: index}] = g
	c.ghosts[g.strand]++
	g.own.Ghost(1)
}

// giveUpRest takes back what follows a message that was given up in its batch. A handler that answers late goes on with it, and
// that is not to count: it comes again after the one that is tried again.
func (c *Core) giveUpRest(now time.Time, l *lane, f *flight, head *queue.Delivery) (index []uint32) {
	for i, d := range slices.Backward(f.items) {
		if d != nil && d.Own == head.Own && d.Strand == head.Strand {
			index = append(index, uint32(i))
			c.ghost(l, f.seq, uint32(i), d)
			c.requeue(now, l.answer(f, uint32(i)))
		}
	}
	return index
}

// broken takes back from handlers what follows a message of a strand that is going to be tried again although they have acked it.
func (c *Core) broken(now time.Time, head *queue.Delivery) {
	for _, l := range c.lanes {
		for _, seq := range l.seqs() {
			f := l.flights[seq]
			if index := c.giveUpRest(now, l, f, head); len(index) > 0 {
				c.act(Action{Kind: ActCancel, Lane: l.id, Seq: seq, Index: index})
			}
			l.end(f)
		}
	}
}

// stores tells whether a message that is acked has to be settled after others of its strand whose outputs are stored, and notes
// that it has outputs itself.
func (c *Core) stores(d *queue.Delivery, outputs bool) bool {
	if d.Strand == 0 {
		return false
	}
	st := c.strands[d.Strand]
	if st == nil || st.source.own != d.Own {
		return false
	}
	st.storing = st.storing || outputs
	return st.storing
}

// idOf is the strand of a message whose ownership may have ended.
func idOf(d *queue.Delivery) strandID {
	id := strandID{queue: d.Own.Queue}
	if d.Own.Order == queue.OrderKey {
		id.key = string(d.OrderKey())
	}
	return id
}

// exorcise takes the answers to ghosts.
func (c *Core) exorcise(l *lane, r *frame.Results) {
	if len(l.ghosts) == 0 {
		return
	}
	for k := 0; k+1 < len(r.AckRuns); k += 2 {
		for ref, g := range l.ghosts {
			if ref.Seq == r.Seq && ref.Index >= r.AckRuns[k] && ref.Index-r.AckRuns[k] < r.AckRuns[k+1] {
				c.layGhost(l, ref, g)
			}
		}
	}
	for i := range r.Verdicts {
		ref := frame.Ref{Seq: r.Seq, Index: r.Verdicts[i].Index}
		if g, ok := l.ghosts[ref]; ok {
			c.layGhost(l, ref, g)
		}
	}
}

func (c *Core) layGhost(l *lane, ref frame.Ref, g ghost) {
	delete(l.ghosts, ref)
	g.own.Ghost(-1)
	id := g.strand
	if c.ghosts[id]--; c.ghosts[id] > 0 {
		return // the handler has an older one of the strand as well
	}
	delete(c.ghosts, id)
	for _, s := range c.sources {
		if st := s.keys[id.key]; st != nil && st.id == id {
			c.goOn(st)
		}
	}
}

// layGhosts forgets the ghosts of a lane that is gone, and its process with it.
func (c *Core) layGhosts(l *lane) {
	for ref, g := range l.ghosts {
		c.layGhost(l, ref, g)
	}
}

// nextSuspect is the suspect to try alone next; -1: none may go now.
func (c *Core) nextSuspect(now time.Time) int {
	return slices.IndexFunc(c.suspects, func(d *queue.Delivery) bool { return d.Strand == 0 || c.mayGoAlone(now, d) })
}

// mayGoAlone tells that a suspect is the first of its strand, with what waits there, and that all else of the strand that is out
// are suspects too. What was acked before it may be back: its output could not be stored, or the crash took its answer.
func (c *Core) mayGoAlone(now time.Time, d *queue.Delivery) bool {
	st := c.strands[d.Strand]
	if st == nil || c.ghosts[st.id] > 0 || d.Own.LeaseOver(now) {
		return false
	}
	n, first := c.suspectsOf(st)
	return st.out == n && d.Offset == first && (len(st.waiting) == 0 || st.waiting[0].Offset > first)
}
