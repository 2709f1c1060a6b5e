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

func TestDecideStart(t *testing.T) {
	for name, c := range map[string]struct {
		facts  StartFacts
		action StartAction
		offset int64
	}{
		"stored":                   {StartFacts{HasStored: true, Stored: 7, OthersHaveOffsets: true, Min: 9}, StartAt, 7},
		"stored zero":              {StartFacts{HasStored: true}, StartAt, 0},
		"new, last":                {StartFacts{Min: 3}, StartAtMax, 0},
		"new, first":               {StartFacts{Min: 3, From: From{Where: WhereFirst}}, StartFresh, 3},
		"new, timestamp":           {StartFacts{From: From{Where: WhereTimestamp}}, StartAtTime, 0},
		"retry topic":              {StartFacts{Retry: true, From: From{Where: WhereTimestamp}}, StartFresh, 0},
		"new queue":                {StartFacts{OthersHaveOffsets: true}, StartFresh, 0},
		"offsets lost":             {StartFacts{OthersHaveOffsets: true, Min: 1, From: From{Where: WhereFirst}}, StartHold, 0},
		"stored wins on retry too": {StartFacts{Retry: true, HasStored: true, Stored: 5}, StartAt, 5},
	} {
		if a, o := DecideStart(c.facts); a != c.action || o != c.offset {
			t.Errorf("%s: action %d at %d, want %d at %d", name, a, o, c.action, c.offset)
		}
	}
}

func TestDecideRepair(t *testing.T) {
	for name, c := range map[string]struct {
		facts           RepairFacts
		action          RepairAction
		offset, expired int64
	}{
		"reset by its remark":      {RepairFacts{Requested: 50, Next: 10, Min: 60, Max: 90, Reset: true}, RepairReset, 10, 0},
		"reset within the queue":   {RepairFacts{Requested: 70, Next: 65, Min: 60, Max: 90}, RepairReset, 65, 0},
		"below the start":          {RepairFacts{Requested: 50, Next: 60, Min: 60, Max: 90}, RepairExpired, 60, 10},
		"above, time known":        {RepairFacts{Requested: 91, Next: 90, Min: 60, Max: 90, LastSettledMillis: 5}, RepairByTime, 0, 0},
		"above, time unknown":      {RepairFacts{Requested: 91, Next: 0, Min: 0, Max: 90}, RepairHold, 0, 0},
		"made anew, nothing in it": {RepairFacts{Requested: 91}, RepairHold, 0, 0},
	} {
		if a, o, e := DecideRepair(c.facts); a != c.action || o != c.offset || e != c.expired {
			t.Errorf("%s: action %d to %d, expired %d; want %d, %d, %d", name, a, o, e, c.action, c.offset, c.expired)
		}
	}
}

func TestScanProperties(t *testing.T) {
	p := ScanProperties([]byte("KEYS\x01a b\x02UNIQ_KEY\x01own\x02broken\x02UNIQ_KEY\x01batch\x02TAGS\x01t"))
	if string(p.Keys()) != "a b" || string(p.UniqKey()) != "batch" || string(p.Tags()) != "t" || len(p.OriginID()) != 0 {
		t.Errorf("%+v", p)
	}
}
