package dispatch

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// Core decides what goes where. It is not safe for concurrent use.
type Core struct {
	settings Settings
	lanes    []*lane
	sources  map[*queue.Ownership]*source
	listed   []*source // with something ready, in turn
	turn     int
	ready    int
	since    time.Time // when something became ready, or the last batch went
	running  []running
	solo     soloState
	suspects []*queue.Delivery
	retiring bool
	full     bool // nothing more is sent for now
	quiet    bool // another dispatcher takes over as soon as nothing is out
	strands  map[uint32]*strand
	ghosts   map[strandID]int  // given up here, perhaps still running there
	numbers  *atomic.Uint32    // of strands
	acks     map[string]uint64 // by binary and config: proof that the plugin can do its work

	actions  []Action
	scratch  []*queue.Delivery
	counters Counters
}

// NewCore makes a core without lanes.
func NewCore(s Settings) *Core {
	return &Core{
		settings: s, sources: make(map[*queue.Ownership]*source), acks: make(map[string]uint64),
		strands: make(map[uint32]*strand), ghosts: make(map[strandID]int), numbers: new(atomic.Uint32),
	}
}

// number gives a strand its number.
func (c *Core) number() uint32 {
	for {
		if n := c.numbers.Add(1); n != 0 && c.strands[n] == nil {
			return n
		}
	}
}

// Input is one thing that happened. Kind says which fields count.
type Input struct {
	Kind       InputKind
	Own        *queue.Ownership
	Deliveries []queue.Delivery // InOffer
	One        *queue.Delivery  // InAgain, InMove, InBroken
	Job        *settle.Job      // InBroken
	Strand     Strand           // InDone: Number; InAdopt
	Cut        bool             // InRevoke
	Lane       LaneID           // InOpened, InEvent
	Info       frame.LaneInfo   // InOpened
	Solo       bool             // InOpened, InSoloFailed
	Event      frame.Event      // InEvent
	Settings   *Settings        // InSettings

	lane Lane // InOpened: the shell's
}

// InputKind tells what happened.
type InputKind uint8

// The inputs.
const (
	InOffer     InputKind = iota + 1 // a queue brought messages
	InAgain                          // the settler gives a message back: it is to be tried again in place
	InMove                           // the dispatcher before this one had not sent a message
	InDone                           // Own: the settler has settled a message of Strand
	InBroken                         // One is going to be tried again after its handler has acked it: what follows comes again; Job: its verdict
	InAdopt                          // Own: messages of Strand are at the settler, or follow as suspects
	InRevoke                         // a queue goes; Cut: what is out is given up
	InOpened                         // a lane is open
	InEvent                          // a lane reported something
	InSettings                       // a reload
	InSurrender                      // another dispatcher takes over what is not sent, now and later
	InQuiesce                        // another dispatcher takes over what is not sent once nothing is out: nothing more is sent
	InTick                           // time has passed
)

// Step takes one input and returns what to do. The actions are valid until the next step.
func (c *Core) Step(now time.Time, in Input) []Action {
	c.actions, c.scratch = c.actions[:0], c.scratch[:0]
	switch in.Kind {
	case InOffer:
		c.offer(now, in.Own, in.Deliveries)
	case InAgain:
		c.again(now, in.One, true)
	case InMove:
		c.again(now, in.One, false)
	case InDone:
		c.strandDone(in.Own, in.Strand.Number)
	case InBroken:
		c.broken(now, in.One)
		c.act(Action{Kind: ActSettle, Job: in.Job})
	case InAdopt:
		c.adopt(in.Own, in.Strand)
	case InRevoke:
		c.revoke(in.Own, in.Cut)
	case InOpened:
		c.opened(in)
	case InEvent:
		c.event(now, in.Lane, &in.Event)
	case InSettings:
		c.settings = *in.Settings
	case InSurrender:
		c.retiring = true
	case InQuiesce:
		c.quiet = true
	case InTick:
	}
	c.overdue(now)
	if c.retiring {
		c.surrender()
		return c.actions
	}
	if c.quiet {
		return c.actions
	}
	if !c.full {
		c.fill(now)
	}
	c.trySolo(now)
	return c.actions
}

// Counters returns the counts so far.
func (c *Core) Counters() Counters { return c.counters }

// Ready is the number of messages that wait for a lane, Out of those on lanes.
func (c *Core) Ready() int { return c.ready }

// Lanes is the number of open lanes for ordinary work.
func (c *Core) Lanes() (n int) {
	for _, l := range c.lanes {
		if !l.solo {
			n++
		}
	}
	return n
}

// Info returns who answers on the first open lane.
func (c *Core) Info() (frame.LaneInfo, bool) {
	for _, l := range c.lanes {
		if !l.solo {
			return l.info, true
		}
	}
	return frame.LaneInfo{}, false
}

// Dry tells that messages wait although no lane has anything to do: the plugin grants no credit.
func (c *Core) Dry() bool {
	lanes := 0
	for _, l := range c.lanes {
		if l.solo || l.closing {
			continue
		}
		if l.credits > 0 || len(l.flights) > 0 {
			return false
		}
		lanes++
	}
	return lanes > 0 && c.ready > 0
}

func (c *Core) act(a Action) { c.actions = append(c.actions, a) }

func (c *Core) source(o *queue.Ownership) *source {
	s := c.sources[o]
	if s == nil {
		s = &source{own: o, revoked: o.Closing()}
		c.sources[o] = s
	}
	return s
}

func (c *Core) list(s *source) {
	if !s.listed && s.sendable() {
		s.listed = true
		c.listed = append(c.listed, s)
	}
}

func (c *Core) unlist(i int) {
	c.listed[i].listed = false
	c.listed = slices.Delete(c.listed, i, i+1)
	if c.turn > i {
		c.turn--
	}
}

func (c *Core) forget(s *source) {
	if s.out == 0 && s.ready.len() == 0 && len(s.keys) == 0 {
		delete(c.sources, s.own)
	}
}

func (c *Core) offer(now time.Time, o *queue.Ownership, ds []queue.Delivery) {
	s := c.source(o)
	if s.revoked {
		c.dropAll(o, pointers(ds), false)
		return
	}
	if c.ready == 0 {
		c.since = now
	}
	if o.Ordered() {
		c.offerStrands(s, ds)
		return
	}
	for i := range ds {
		s.ready.pushBack(&ds[i])
	}
	c.ready += len(ds)
	c.list(s)
}

func pointers(ds []queue.Delivery) []*queue.Delivery {
	ps := make([]*queue.Delivery, len(ds))
	for i := range ds {
		ps[i] = &ds[i]
	}
	return ps
}

func (c *Core) dropAll(o *queue.Ownership, ds []*queue.Delivery, out bool) {
	if len(ds) > 0 {
		c.act(Action{Kind: ActDrop, Own: o, Items: ds, Out: out})
	}
}

// requeue puts a message that was out back at the head of its queue, or drops it when the queue went.
func (c *Core) requeue(now time.Time, d *queue.Delivery) {
	s := c.source(d.Own)
	s.out--
	if s.revoked {
		c.dropAll(d.Own, []*queue.Delivery{d}, true)
		c.forget(s)
		return
	}
	if c.ready == 0 {
		c.since = now
	}
	if s.own.Ordered() {
		c.back(s, d)
	} else {
		s.ready.pushFront(d)
		c.ready++
		c.list(s)
	}
	c.returned(d)
}

func (c *Core) returned(d *queue.Delivery) {
	c.scratch = append(c.scratch, d)
	c.act(Action{Kind: ActReturn, Own: d.Own, Items: c.scratch[len(c.scratch)-1:]})
}

// again takes a message from the settler, or (not wasOut) from another dispatcher. It is not on a lane.
func (c *Core) again(now time.Time, d *queue.Delivery, wasOut bool) {
	s := c.source(d.Own)
	switch {
	case s.revoked:
		c.dropAll(d.Own, []*queue.Delivery{d}, false)
		c.forget(s)
	case d.Crashed():
		c.suspects = append(c.suspects, d)
	default:
		if c.ready == 0 {
			c.since = now
		}
		switch {
		case !s.own.Ordered():
			s.ready.pushFront(d)
			c.ready++
			c.list(s)
		case wasOut:
			c.back(s, d)
		default:
			c.wait(s, d)
		}
	}
}

func (c *Core) revoke(o *queue.Ownership, cut bool) {
	s := c.source(o)
	s.revoked = true
	waiting := c.endStrands(s)
	for s.ready.len() > 0 {
		waiting = append(waiting, s.ready.popFront())
	}
	c.ready -= len(waiting)
	if i := slices.Index(c.listed, s); i >= 0 {
		c.unlist(i)
	}
	c.dropAll(o, waiting, false)
	var suspects []*queue.Delivery
	c.suspects = slices.DeleteFunc(c.suspects, func(d *queue.Delivery) bool {
		if d.Own == o {
			suspects = append(suspects, d)
		}
		return d.Own == o
	})
	c.dropAll(o, suspects, false)
	if cut {
		c.cut(s)
	} else if s.out > 0 {
		c.act(Action{Kind: ActRevoke, Own: o})
	}
	c.forget(s)
}

// cut gives up everything of a queue that is out.
func (c *Core) cut(s *source) {
	var gone []*queue.Delivery
	for _, l := range c.lanes {
		for _, seq := range l.seqs() {
			f := l.flights[seq]
			var index []uint32
			for i, d := range f.items {
				if d == nil || d.Own != s.own {
					continue
				}
				index = append(index, uint32(i))
				if s.own.Ordered() {
					c.ghost(l, seq, uint32(i), d)
				}
				gone = append(gone, l.answer(f, uint32(i)))
			}
			if len(index) > 0 {
				c.act(Action{Kind: ActCancel, Lane: l.id, Seq: seq, Index: index})
			}
			l.end(f)
		}
	}
	s.out -= len(gone)
	c.dropAll(s.own, gone, true)
}

// surrender moves everything that is not sent.
func (c *Core) surrender() {
	moved := c.suspects
	c.suspects = nil
	for _, s := range c.listed {
		s.listed = false
		for s.ready.len() > 0 {
			moved = append(moved, s.ready.popFront())
		}
	}
	c.listed, c.ready = c.listed[:0], 0
	if len(moved) > 0 {
		c.act(Action{Kind: ActMove, Items: moved})
	}
}

// Idle tells that nothing is out.
func (c *Core) Idle() bool {
	for _, l := range c.lanes {
		if len(l.flights) > 0 || len(l.ghosts) > 0 {
			return false
		}
	}
	return true
}
