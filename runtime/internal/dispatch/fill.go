package dispatch

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// quantum is how many messages of one queue go into a batch before the next queue's turn: enough that settling stays
// cheap, few enough that no queue waits for another's backlog.
const quantum = 8

// fill sends batches while there are messages and credits.
func (c *Core) fill(now time.Time) {
	for len(c.listed) > 0 {
		l := c.freest()
		if l == nil || c.lingers(now, l) {
			return
		}
		if !c.send(now, l) {
			return
		}
	}
}

// freest is the open lane with the most credits.
func (c *Core) freest() (best *lane) {
	for _, l := range c.lanes {
		if l.solo || l.closing || l.credits <= 0 {
			continue
		}
		if best == nil || l.credits > best.credits {
			best = l
		}
	}
	return best
}

// lingers tells that a batch that is not full may wait: only while its lane has work anyway.
func (c *Core) lingers(now time.Time, l *lane) bool {
	return c.ready < c.settings.BatchMax && len(l.flights) > 0 && now.Sub(c.since) < c.settings.Linger
}

// send sends one batch; false when nothing was left to send, though what was waiting may have been answered instead.
func (c *Core) send(now time.Time, l *lane) bool {
	f := l.begin()
	room, bytes := min(c.settings.BatchMax, l.credits), 0
	for room > len(f.items) && len(c.listed) > 0 {
		if c.turn >= len(c.listed) {
			c.turn = 0
		}
		s := c.listed[c.turn]
		full := c.takeFrom(now, s, l, f, room, &bytes)
		if !s.sendable() {
			c.unlist(c.turn)
		} else {
			c.turn++
		}
		if full {
			break
		}
	}
	c.since = now
	if len(f.items) == 0 {
		l.end(f)
		return len(c.listed) > 0
	}
	c.launch(l, f)
	return true
}

// takeFrom moves up to a quantum of messages into a batch and tells whether the batch is full by bytes.
func (c *Core) takeFrom(now time.Time, s *source, l *lane, f *flight, room int, bytes *int) (full bool) {
	if s.own.Ordered() {
		return c.takeStrands(now, s, l, f, min(room, c.settings.BatchMax), bytes)
	}
	if len(c.listed) == 1 {
		room = min(room, c.settings.BatchMax)
	} else {
		room = min(room, len(f.items)+quantum)
	}
	for len(f.items) < room && s.ready.len() > 0 {
		d := s.ready.front()
		if !c.fits(d, l, f, *bytes) {
			return true
		}
		s.ready.popFront()
		c.ready--
		s.out++
		if oversized(d, l) {
			c.tooLarge(d, l)
			continue
		}
		put(now, d, f, bytes)
	}
	return false
}

// fits tells that a message has room in a batch of so many bytes; the first always has.
func (c *Core) fits(d *queue.Delivery, l *lane, f *flight, bytes int) bool {
	size := bytes + d.Size()
	return bytes == 0 || size <= c.settings.BatchBytes && (l.info.MaxBytes <= 0 || size+(len(f.items)+1)*frameOverhead <= l.info.MaxBytes)
}

func put(now time.Time, d *queue.Delivery, f *flight, bytes *int) {
	*bytes += d.Size()
	d.SentAt = now
	f.items = append(f.items, d)
}

// oversized tells that no frame of the plugin can carry a message.
func oversized(d *queue.Delivery, l *lane) bool {
	return l.info.MaxBytes > 0 && d.Size()+frameOverhead > l.info.MaxBytes
}

// frameOverhead is what columns and framing add to one record, at most.
const frameOverhead = 1 << 10

// tooLarge rejects an oversized message: trying again cannot help.
func (c *Core) tooLarge(d *queue.Delivery, l *lane) {
	c.scratch = append(c.scratch, d)
	c.act(Action{Kind: ActTake, Own: d.Own, Items: c.scratch[len(c.scratch)-1:]})
	c.verdict(d, l, frame.Verdict{Kind: frame.VerdictReject, Class: "too_large", Text: "message is larger than the plugin's largest frame"})
}

func (c *Core) launch(l *lane, f *flight) {
	l.launch(f)
	c.counters.Batches++
	c.counters.Records += uint64(len(f.items))
	c.act(Action{Kind: ActSend, Lane: l.id, Seq: f.seq, Items: f.items})
}

// Next is when Step must be called again though nothing happens; zero = never.
func (c *Core) Next(now time.Time) (at time.Time) {
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(c.listed) > 0 && !c.quiet && !c.full {
		if l := c.freest(); l != nil && c.lingers(now, l) {
			soonest(c.since.Add(c.settings.Linger))
		}
	}
	for i := range c.running {
		soonest(c.running[i].until)
	}
	if c.triesSolo(now) {
		soonest(c.solo.notUntil)
	}
	return at
}
