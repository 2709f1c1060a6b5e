package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker/memstore"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func record(t *testing.T, topic, body string, hash int32) memstore.Record {
	t.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	m := wire.Message{BornHost: host, StoreHost: host, Topic: []byte(topic), Body: []byte(body), BodyCRC: wire.BodyCRC([]byte(body))}
	raw, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return memstore.Record{Raw: raw, TagHash: hash}
}

func decode(t *testing.T, raw []byte) wire.Message {
	t.Helper()
	var m wire.Message
	if n, err := m.Decode(raw); err != nil || n != len(raw) {
		t.Fatalf("decoding %d of %d bytes: %v", n, len(raw), err)
	}
	return m
}

func fill(t *testing.T, s *memstore.Store, topic string, n int) []memstore.Position {
	t.Helper()
	var all []memstore.Position
	for i := range n {
		p, err := s.Append(topic, 0, record(t, topic, fmt.Sprint(i), int32(i%3)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p...)
	}
	return all
}

var limits = memstore.Limits{Messages: 4, Bytes: 1 << 20, Scan: 8}

func TestRead_statusTable(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	fill(t, s, "T", 20)
	s.Expire("T", 0, 5)
	onlyTwo := func(hash int32) bool { return hash == 2 }
	nothing := func(int32) bool { return false }
	for name, c := range map[string]struct {
		topic  string
		offset int64
		match  func(int32) bool
		status memstore.Status
		next   int64
		count  int
	}{
		"never written":          {"none", 0, nil, memstore.NoMessageInQueue, 0, 0},
		"below min":              {"T", 4, nil, memstore.OffsetTooSmall, 5, 0},
		"negative":               {"T", -1, nil, memstore.OffsetTooSmall, 5, 0},
		"at max":                 {"T", 20, nil, memstore.OverflowOne, 20, 0},
		"beyond":                 {"T", 21, nil, memstore.OverflowBadly, 20, 0},
		"all":                    {"T", 5, nil, memstore.Found, 9, 4},
		"end":                    {"T", 18, nil, memstore.Found, 20, 2},
		"by tag, scan is over":   {"T", 5, onlyTwo, memstore.Found, 13, 3},
		"none matches, goes on":  {"T", 5, nothing, memstore.NoMatchedMessage, 13, 0},
		"none matches up to end": {"T", 15, nothing, memstore.NoMatchedMessage, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.Read(c.topic, 0, c.offset, limits, c.match)
			if r.Status != c.status || r.Next != c.next || len(r.Messages) != c.count {
				t.Errorf("%s next %d with %d messages, want %s %d %d", r.Status, r.Next, len(r.Messages), c.status, c.next, c.count)
			}
		})
	}
}

func TestRead_firstMessageAlwaysFits(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	fill(t, s, "T", 3)
	r := s.Read("T", 0, 0, memstore.Limits{Messages: 32, Bytes: 1, Scan: 800}, nil)
	if len(r.Messages) != 1 || r.Next != 1 || r.TotalSize != len(r.Messages[0]) {
		t.Errorf("%+v", r)
	}
}

func TestAppend_stampsPlaceAndTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		positions := fill(t, s, "T", 3)
		for i, p := range positions {
			raw, ok := s.Lookup(p.LogOffset)
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

func TestAppend_refusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	good := record(t, "T", "x", 0)
	for name, raw := range map[string][]byte{"empty": nil, "short": good.Raw[:20], "cut": good.Raw[:len(good.Raw)-1], "long": append(slices.Clip(good.Raw), 0)} {
		if _, err := s.Append("T", 0, good, memstore.Record{Raw: raw}); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	for _, queue := range []int32{-1, 1 << 16, 1<<31 - 1} {
		if _, err := s.Append("T", queue, good); err == nil {
			t.Errorf("queue %d was made", queue)
		}
	}
	if _, next, _ := s.Bounds("T", 0); next != 0 {
		t.Errorf("%d messages were stored by refused appends", next)
	}
}

// TestLookup_findsOnlyStartsOfReadableMessages tries every offset of the log.
func TestLookup_findsOnlyStartsOfReadableMessages(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	starts := make(map[int64]bool)
	for _, p := range fill(t, s, "T", 10) {
		starts[p.LogOffset] = true
	}
	gone := fill(t, s, "Gone", 5)
	s.Delete("Gone")
	expired := fill(t, s, "Old", 5)
	s.Expire("Old", 0, 3)
	for _, p := range expired[3:] {
		starts[p.LogOffset] = true
	}
	end := expired[4].LogOffset + 1000
	for offset := int64(-10); offset < end; offset++ {
		if _, ok := s.Lookup(offset); ok != starts[offset] {
			t.Fatalf("offset %d found: %t, deleted topic began at %d", offset, ok, gone[0].LogOffset)
		}
	}
	for _, offset := range []int64{-1 << 63, 1<<63 - 1, 1 << 40} {
		if _, ok := s.Lookup(offset); ok {
			t.Errorf("offset %d was found", offset)
		}
	}
}

func TestSlices_stayValid(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	fill(t, s, "T", 100)
	r := s.Read("T", 0, 0, memstore.Limits{Messages: 100, Bytes: 1 << 20, Scan: 100}, nil)
	s.Expire("T", 0, 100)
	fill(t, s, "T", 1000) // More chunks.
	s.Delete("T")
	for i, raw := range r.Messages {
		if m := decode(t, raw); string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d changed: %q", i, m.Body)
		}
	}
}

func TestSearch_byStoreTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		start := time.Now().UnixMilli()
		for range 3 { // Two messages a second: at 0, 1000, 2000 ms.
			fill(t, s, "T", 2)
			timer := time.NewTimer(time.Second)
			<-timer.C
		}
		for _, c := range []struct{ at, lower, upper int64 }{
			{-1, 0, 0}, {0, 0, 1}, {1, 2, 1}, {1000, 2, 3}, {1500, 4, 3}, {2000, 4, 5}, {2001, 6, 5},
		} {
			if got := s.Search("T", 0, start+c.at, false); got != c.lower {
				t.Errorf("first at %d ms: %d, want %d", c.at, got, c.lower)
			}
			if got := s.Search("T", 0, start+c.at, true); got != c.upper {
				t.Errorf("last at %d ms: %d, want %d", c.at, got, c.upper)
			}
		}
		if got := s.Search("none", 0, start, false); got != 0 {
			t.Errorf("unknown queue: %d", got)
		}
	})
}

// TestModel compares a store with a plain list over random operations.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := memstore.New()
		var bodies []string
		first := 0
		for step := range 400 {
			switch random.IntN(10) {
			case 0:
				if to := first + random.IntN(5); to <= len(bodies) {
					first = to
				}
				s.Expire("T", 0, int64(first))
			case 1:
				to := max(first, len(bodies)-random.IntN(3))
				bodies = bodies[:to]
				s.Truncate("T", 0, int64(to))
			default:
				body := fmt.Sprintf("%d-%d", seed, step)
				if _, err := s.Append("T", 0, record(t, "T", body, 0)); err != nil {
					t.Fatal(err)
				}
				bodies = append(bodies, body)
			}
			if step%20 > 0 {
				continue
			}
			stored := s.Messages("T", 0, 0, 0)
			if len(stored) != len(bodies)-first {
				t.Fatalf("seed %d step %d: %d messages, want %d", seed, step, len(stored), len(bodies)-first)
			}
			for i, raw := range stored {
				if m := decode(t, raw); string(m.Body) != bodies[first+i] || m.QueueOffset != int64(first+i) {
					t.Fatalf("seed %d step %d: message %d is %q at %d", seed, step, i, m.Body, m.QueueOffset)
				}
			}
		}
	}
}
