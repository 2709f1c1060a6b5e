package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
)

var limits = store.Limits{Messages: 4, Bytes: 1 << 20, Scan: 8}

func TestRead_statusTable(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	fill(t, s, "T", 20)
	expire(t, s, "T", 5)
	onlyTwo := func(hash int32) bool { return hash == 2 }
	nothing := func(int32) bool { return false }
	for name, c := range map[string]struct {
		topic  string
		offset int64
		match  func(int32) bool
		status store.Status
		next   int64
		count  int
	}{
		"never written":          {"none", 0, nil, store.NoMessageInQueue, 0, 0},
		"below min":              {"T", 4, nil, store.OffsetTooSmall, 5, 0},
		"negative":               {"T", -1, nil, store.OffsetTooSmall, 5, 0},
		"at max":                 {"T", 20, nil, store.OverflowOne, 20, 0},
		"beyond":                 {"T", 21, nil, store.OverflowBadly, 20, 0},
		"all":                    {"T", 5, nil, store.Found, 9, 4},
		"end":                    {"T", 18, nil, store.Found, 20, 2},
		"by tag, scan is over":   {"T", 5, onlyTwo, store.Found, 13, 3},
		"none matches, goes on":  {"T", 5, nothing, store.NoMatchedMessage, 13, 0},
		"none matches up to end": {"T", 15, nothing, store.NoMatchedMessage, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := read(t, s, c.topic, c.offset, limits, c.match)
			if r.Status != c.status || r.Next != c.next || len(r.Messages) != c.count {
				t.Errorf("%s next %d with %d messages, want %s %d %d", r.Status, r.Next, len(r.Messages), c.status, c.next, c.count)
			}
		})
	}
}

func TestRead_firstMessageAlwaysFits(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	fill(t, s, "T", 3)
	r := read(t, s, "T", 0, store.Limits{Messages: 32, Bytes: 1, Scan: 800}, nil)
	if len(r.Messages) != 1 || r.Next != 1 || r.TotalSize != len(r.Messages[0]) {
		t.Errorf("%+v", r)
	}
}

func TestAppend_stampsPlaceAndTime(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := open(t, store.Options{})
		positions := fill(t, s, "T", 3)
		for i, p := range positions {
			raw, ok := lookup(t, s, p.LogOffset)
			if !ok {
				t.Fatalf("message %d is not at %d", i, p.LogOffset)
			}
			m := decode(t, raw)
			if m.QueueOffset != int64(i) || m.LogOffset != p.LogOffset || m.StoreMillis != time.Now().UnixMilli() || string(m.Body) != fmt.Sprint(i) {
				t.Errorf("message %d: %+v", i, m)
			}
		}
	})
}

func TestSubmit_refusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	good := func() store.Record { return record(t, "T", "x", 0) }
	for name, raw := range map[string][]byte{"empty": nil, "short": good().Raw[:20], "cut": good().Raw[:91], "long": append(good().Raw, 0)} {
		c := &store.Change{Appends: []store.Append{{Topic: "T", Records: []store.Record{good(), {Raw: raw}}}}}
		if err := s.Apply(c); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	for _, queue := range []int32{-1, 1 << 16, 1<<31 - 1} {
		if err := s.Apply(&store.Change{Appends: []store.Append{{Topic: "T", Queue: queue, Records: []store.Record{good()}}}}); err == nil {
			t.Errorf("queue %d was made", queue)
		}
	}
	if _, next, _ := s.Bounds("T", 0); next != 0 {
		t.Errorf("%d messages were stored by refused changes", next)
	}
}

// TestLookup_findsOnlyStartsOfReadableMessages tries every offset of the log.
func TestLookup_findsOnlyStartsOfReadableMessages(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	starts := make(map[int64]bool)
	for _, p := range fill(t, s, "T", 10) {
		starts[p.LogOffset] = true
	}
	gone := fill(t, s, "Gone", 5)
	remove(t, s, "Gone")
	expired := fill(t, s, "Old", 5)
	expire(t, s, "Old", 3)
	for _, p := range expired[3:] {
		starts[p.LogOffset] = true
	}
	end := expired[4].LogOffset + 1000
	for offset := int64(-10); offset < end; offset++ {
		if _, ok := lookup(t, s, offset); ok != starts[offset] {
			t.Fatalf("offset %d found: %t, deleted topic began at %d", offset, ok, gone[0].LogOffset)
		}
	}
	for _, offset := range []int64{-1 << 63, 1<<63 - 1, 1 << 40} {
		if _, ok := lookup(t, s, offset); ok {
			t.Errorf("offset %d was found", offset)
		}
	}
}

func TestSlices_stayValid(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	fill(t, s, "T", 100)
	r := read(t, s, "T", 0, store.Limits{Messages: 100, Bytes: 1 << 20, Scan: 100}, nil)
	expire(t, s, "T", 100)
	fill(t, s, "T", 1000) // More chunks.
	remove(t, s, "T")
	for i, raw := range r.Messages {
		if m := decode(t, raw); string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d changed: %q", i, m.Body)
		}
	}
}

func TestSearch_byStoreTime(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		s := open(t, store.Options{})
		start := time.Now().UnixMilli()
		for range 3 { // Two messages a second: at 0, 1000, 2000 ms.
			fill(t, s, "T", 2)
			timer := time.NewTimer(time.Second)
			<-timer.C
		}
		for _, c := range []struct{ at, lower, upper int64 }{
			{-1, 0, 0}, {0, 0, 1}, {1, 2, 1}, {1000, 2, 3}, {1500, 4, 3}, {2000, 4, 5}, {2001, 6, 5},
		} {
			if got := search(t, s, "T", start+c.at, false); got != c.lower {
				t.Errorf("first at %d ms: %d, want %d", c.at, got, c.lower)
			}
			if got := search(t, s, "T", start+c.at, true); got != c.upper {
				t.Errorf("last at %d ms: %d, want %d", c.at, got, c.upper)
			}
		}
		if got := search(t, s, "none", start, false); got != 0 {
			t.Errorf("unknown queue: %d", got)
		}
	})
}
