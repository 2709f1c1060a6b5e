package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func chunkOf(offsets ...int64) *Chunk {
	c := &Chunk{bytes: int64(len(offsets))}
	for _, o := range offsets {
		c.Deliveries = append(c.Deliveries, Delivery{Offset: o})
	}
	return c
}

func TestWindowSettlesOutOfOrderAndCommitsInOrder(t *testing.T) {
	w := NewWindow(10)
	c := chunkOf(10, 11, 15)
	w.Admit(c, 20, time.Time{})
	a, b, last := &c.Deliveries[0], &c.Deliveries[1], &c.Deliveries[2]
	if w.Safe() != 10 || w.Next() != 20 || w.Count() != 3 || w.Span() != 5 || w.Bytes() != 3 {
		t.Fatalf("%+v", w)
	}
	w.Settle(last)
	w.Settle(a)
	if w.Safe() != 11 || w.Holder() != b || w.Count() != 1 {
		t.Fatalf("safe %d, want 11", w.Safe())
	}
	if freed := w.Settle(b); w.Safe() != 20 || freed != 3 || w.Bytes() != 0 || w.Holder() != nil {
		t.Fatalf("safe %d, freed %d; want 20 and 3", w.Safe(), freed)
	}
}

func TestWindowLimitsAreExceededNotReached(t *testing.T) {
	w := NewWindow(0)
	w.Admit(chunkOf(0, 1, 2), 3, time.Time{})
	for name, l := range map[string]Limits{
		"messages": {Messages: 3, Bytes: 100, Span: 100}, "bytes": {Messages: 100, Bytes: 3, Span: 100}, "span": {Messages: 100, Bytes: 100, Span: 2},
	} {
		if h := w.Full(l); h.Held() {
			t.Errorf("%s reached is not exceeded: %+v", name, h)
		}
		l.Messages, l.Bytes, l.Span = l.Messages-1, l.Bytes-1, l.Span-1
		if h := w.Full(l); !h.Held() {
			t.Errorf("%s exceeded holds nothing", name)
		}
	}
}

// The safe offset never passes an unsettled message, whatever the order: against a plain model.
func TestWindowAgainstAModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := NewWindow(100)
		var unsettled []*Delivery
		next, bytes := int64(100), int64(0)
		open := map[*Chunk]int{}
		for range 300 {
			if r.IntN(3) == 0 {
				var offsets []int64
				for range r.IntN(40) {
					next += int64(r.IntN(4)) // gaps: filtered on the way
					offsets = append(offsets, next)
					next++
				}
				c := chunkOf(offsets...)
				next += int64(r.IntN(3))
				w.Admit(c, next, time.Time{})
				for i := range c.Deliveries {
					unsettled = append(unsettled, &c.Deliveries[i])
				}
				if len(offsets) > 0 {
					bytes += c.bytes
					open[c] = len(offsets)
				}
			}
			for range min(r.IntN(25), len(unsettled)) {
				i := r.IntN(len(unsettled))
				d := unsettled[i]
				unsettled = slices.Delete(unsettled, i, i+1)
				c, size := d.chunk, d.chunk.bytes
				if open[c]--; open[c] == 0 {
					bytes -= size
				}
				w.Settle(d)
			}
			safe := next
			for _, d := range unsettled {
				safe = min(safe, d.Offset)
			}
			if w.Safe() != safe || w.Count() != len(unsettled) || w.Bytes() != bytes || w.Next() != next {
				t.Fatalf("seed %d: safe %d count %d bytes %d next %d; want %d %d %d %d", seed, w.Safe(), w.Count(), w.Bytes(), w.Next(), safe, len(unsettled), bytes, next)
			}
		}
	}
}

func TestScanProperties(t *testing.T) {
	p := ScanProperties([]byte("KEYS\x01a b\x02UNIQ_KEY\x01own\x02broken\x02UNIQ_KEY\x01batch\x02TAGS\x01t"))
	if string(p.Keys()) != "a b" || string(p.UniqKey()) != "batch" || string(p.Tags()) != "t" || len(p.OriginID()) != 0 {
		t.Errorf("%+v", p)
	}
}
