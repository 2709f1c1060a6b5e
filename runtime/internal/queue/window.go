package queue

import (
	"fmt"
	"time"
)

// Limits bound a window. A limit is exceeded, not reached, before it holds (consumer-semantics.md 3.2), so that one
// message larger than a limit still passes.
type Limits struct {
	Messages int
	Bytes    int64
	Span     int64 // from the lowest unsettled offset to the highest
}

// Window is the messages of one queue that were pulled and are not settled. It settles in any order and knows the
// offset that is safe to commit. It is a pure core: no goroutine, no clock, no I/O; Ownership guards it.
type Window struct {
	ring  []slot // power of two long
	head  uint64 // position of the lowest unsettled
	tail  uint64 // position after the highest
	next  int64  // offset to pull next
	live  int    // unsettled, dropped ones included: they hold the offset
	ready int    // unsettled and not dropped
	bytes int64

	settled     uint64 // ever
	lastSettled int64  // greatest store time of a settled message, milliseconds
}

type slot struct {
	offset int64
	d      *Delivery // nil once settled
}

// NewWindow starts a window whose first message will be pulled at next.
func NewWindow(next int64) *Window { return &Window{next: next, ring: make([]slot, 64)} }

// Next is the offset to pull next.
func (w *Window) Next() int64 { return w.next }

// Safe is the offset that may be committed: everything below it is settled.
func (w *Window) Safe() int64 {
	if w.head == w.tail {
		return w.next
	}
	return w.at(w.head).offset
}

// Count is the number of unsettled messages, Active those of them that were not dropped.
func (w *Window) Count() int { return w.live }

// Active is the number of messages that somebody still works on.
func (w *Window) Active() int { return w.ready }

// Bytes is the memory that the window's pulls hold.
func (w *Window) Bytes() int64 { return w.bytes }

// Settled counts the messages settled so far.
func (w *Window) Settled() uint64 { return w.settled }

// LastSettledMillis is the greatest store time of a settled message, 0 when none was settled.
func (w *Window) LastSettledMillis() int64 { return w.lastSettled }

// Span is the distance from the lowest unsettled offset to the highest pulled.
func (w *Window) Span() int64 {
	if w.head == w.tail {
		return 0
	}
	return w.at(w.tail-1).offset - w.at(w.head).offset
}

// Holder is the message that holds the offset, nil when nothing does.
func (w *Window) Holder() *Delivery {
	if w.head == w.tail {
		return nil
	}
	return w.at(w.head).d
}

// Full tells why no pull may be sent now; the zero Hold means that one may.
func (w *Window) Full(l Limits) Hold {
	switch {
	case w.live > l.Messages:
		return Hold{Kind: HoldWindowCount, Text: fmt.Sprintf("window has %d messages, limit %d", w.live, l.Messages)}
	case w.bytes > l.Bytes:
		return Hold{Kind: HoldWindowBytes, Text: fmt.Sprintf("window has %d bytes, limit %d", w.bytes, l.Bytes)}
	case w.Span() > l.Span:
		return Hold{Kind: HoldWindowSpan, Text: fmt.Sprintf("window spans %d offsets, limit %d", w.Span(), l.Span)}
	}
	return Hold{}
}

// Admit takes the messages of a chunk, which are in offset order and not below Next, and moves Next to next.
// A chunk without messages only moves Next: filtered messages hold nothing.
func (w *Window) Admit(c *Chunk, next int64, now time.Time) {
	c.live, c.admitted = len(c.Deliveries), now
	for i := range c.Deliveries {
		d := &c.Deliveries[i]
		d.chunk = c
		w.push(d)
	}
	w.live += c.live
	w.ready += c.live
	w.next = max(w.next, next)
	if c.live > 0 {
		w.bytes += c.bytes
	}
}

func (w *Window) push(d *Delivery) {
	if w.tail-w.head == uint64(len(w.ring)) {
		w.grow()
	}
	d.position = w.tail
	*w.at(w.tail) = slot{offset: d.holds(), d: d}
	w.tail++
}

func (w *Window) grow() {
	bigger := make([]slot, 2*len(w.ring))
	for p := w.head; p < w.tail; p++ {
		bigger[p&uint64(len(bigger)-1)] = *w.at(p)
	}
	w.ring = bigger
}

func (w *Window) at(p uint64) *slot { return &w.ring[p&uint64(len(w.ring)-1)] }

// Settle marks a message settled. freed is the memory given back: that of its pull, when it was the pull's last.
func (w *Window) Settle(d *Delivery) (freed int64) {
	w.settled++
	w.ready--
	w.live--
	w.lastSettled = max(w.lastSettled, d.StoreMillis)
	w.at(d.position).d = nil
	for w.head < w.tail && w.at(w.head).d == nil {
		w.head++
	}
	return w.unref(d)
}

// Drop tells that nobody works on a message any more (revoked, cut off). It stays unsettled and holds the offset.
func (w *Window) Drop(d *Delivery) {
	w.ready--
	d.dropped = true
}

// End lets go of the pulls of dropped messages when the window's epoch is over; freed is the memory given back.
func (w *Window) End() (freed int64) {
	for p := w.head; p < w.tail; p++ {
		if d := w.at(p).d; d != nil && d.dropped {
			freed += w.unref(d)
		}
	}
	return freed
}

// unref lets go of a message's share in its pull.
func (w *Window) unref(d *Delivery) int64 {
	c := d.chunk
	c.live--
	if c.live > 0 {
		return 0
	}
	freed := c.bytes
	w.bytes -= freed
	c.free()
	return freed
}
