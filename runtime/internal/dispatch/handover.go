package dispatch

import (
	"slices"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// Strand is a strand as one dispatcher tells another of it.
type Strand struct {
	Number uint32
	Key    string
	Out    int // messages at the settler, or among the suspects that follow
}

// Left is what a dispatcher that has ended leaves to the one that replaces it.
type Left struct {
	Strands map[*queue.Ownership][]Strand
	Waiting []*queue.Delivery
}

// Quiesce lets the dispatcher of ordered queues end: it sends no more, waits up to limit for what is out, then aborts its
// lanes. Done is closed when Run returns, and Left tells what it has not sent: only then may another dispatcher begin, so
// that no strand is at two handlers.
func (d *Dispatcher) Quiesce(limit time.Duration) {
	d.push(Input{Kind: InQuiesce})
	d.retire <- limit
}

// Left returns what is to be taken over. It may be called once Done is closed, and when nobody pushes any more.
func (d *Dispatcher) Left() Left {
	for _, in := range d.take() {
		d.step(d.cfg.Now(), in)
	}
	return d.core.left()
}

// TakeOver takes what another dispatcher has left.
func (d *Dispatcher) TakeOver(l Left) {
	for o, strands := range l.Strands {
		for _, st := range strands {
			d.push(Input{Kind: InAdopt, Own: o, Strand: st})
		}
	}
	for _, m := range l.Waiting {
		d.push(Input{Kind: InMove, One: m})
	}
}

// Settled tells that a message of a strand is settled.
func (d *Dispatcher) Settled(o *queue.Ownership, strand uint32) {
	d.push(Input{Kind: InDone, Own: o, Strand: Strand{Number: strand}})
}

// Broken tells that a message of a strand, which its handler acked, is going to be tried again: what follows it is taken back from
// the handler. Then its verdict j is settled.
func (d *Dispatcher) Broken(one *queue.Delivery, j *settle.Job) {
	d.push(Input{Kind: InBroken, One: one, Job: j})
}

func (c *Core) left() Left {
	l := Left{Strands: make(map[*queue.Ownership][]Strand), Waiting: c.suspects}
	c.suspects = nil
	for o, s := range c.sources {
		for _, st := range s.keys {
			if st.out > 0 {
				l.Strands[o] = append(l.Strands[o], Strand{Number: st.number, Key: st.id.key, Out: st.out})
			}
		}
		rest := c.endStrands(s)
		for s.ready.len() > 0 {
			rest = append(rest, s.ready.popFront())
		}
		c.ready -= len(rest)
		if !o.Ordered() {
			slices.Reverse(rest) // each goes to the head of its queue; one of a strand goes out as soon as it comes
		}
		l.Waiting = append(l.Waiting, rest...)
	}
	return l
}

// adopt takes over a strand of which messages are not settled yet.
func (c *Core) adopt(o *queue.Ownership, a Strand) {
	s := c.source(o)
	if s.revoked {
		return
	}
	st := &strand{id: strandID{queue: o.Queue, key: a.Key}, number: a.Number, source: s, out: a.Out}
	if s.keys == nil {
		s.keys = make(map[string]*strand)
	}
	s.keys[a.Key] = st
	c.strands[a.Number] = st
}

// offerStrands takes messages of an ordered queue. Without any it looks again at those that wait: the queue's lock was
// renewed after it had been over.
func (c *Core) offerStrands(s *source, ds []queue.Delivery) {
	for i := range ds {
		c.wait(s, &ds[i])
	}
	if len(ds) == 0 {
		for _, st := range s.keys {
			c.goOn(st)
		}
	}
}
