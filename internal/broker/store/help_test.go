package store_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func encode(tb testing.TB, topic, body, properties string) []byte {
	tb.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	m := wire.Message{
		BornHost: host, StoreHost: host, Topic: []byte(topic), Body: []byte(body), BodyCRC: wire.BodyCRC([]byte(body)),
		Properties: []byte(properties),
	}
	raw, err := m.Append(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func record(tb testing.TB, topic, body string, hash int32) store.Record {
	tb.Helper()
	return store.Record{Raw: encode(tb, topic, body, ""), TagHash: hash}
}

func decode(tb testing.TB, raw []byte) wire.Message {
	tb.Helper()
	var m wire.Message
	if n, err := m.Decode(raw); err != nil || n != len(raw) {
		tb.Fatalf("decoding %d of %d bytes: %v", n, len(raw), err)
	}
	return m
}

func open(tb testing.TB, o store.Options) *store.Store {
	tb.Helper()
	if o.Dir == "" {
		o.Dir = "data"
	}
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	s, err := store.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func put(tb testing.TB, s *store.Store, topic string, records ...store.Record) []store.Position {
	tb.Helper()
	c := &store.Change{Appends: []store.Append{{Topic: topic, Records: records}}}
	if err := s.Apply(c); err != nil {
		tb.Fatal(err)
	}
	return c.Appends[0].Positions
}

func fill(tb testing.TB, s *store.Store, topic string, n int) []store.Position {
	tb.Helper()
	var all []store.Position
	for i := 0; i < n; {
		var records []store.Record
		for ; i < n && len(records) < fillAtOnce; i++ {
			records = append(records, record(tb, topic, fmt.Sprint(i), int32(i%3)))
		}
		all = append(all, put(tb, s, topic, records...)...)
	}
	return all
}

// fillAtOnce is how many messages fill stores at once.
const fillAtOnce = 256

// done waits for an edit of the store.
func done(tb testing.TB, edit func(func(error))) {
	tb.Helper()
	result := make(chan error, 1)
	edit(func(err error) { result <- err })
	if err := <-result; err != nil {
		tb.Fatal(err)
	}
}

func expire(tb testing.TB, s *store.Store, topic string, first int64) {
	tb.Helper()
	done(tb, func(f func(error)) { s.Expire(topic, 0, first, f) })
}

func remove(tb testing.TB, s *store.Store, topic string) {
	tb.Helper()
	done(tb, func(f func(error)) { s.Delete(topic, f) })
}

func read(tb testing.TB, s *store.Store, topic string, offset int64, limits store.Limits, tag func(int32) bool) store.Result {
	tb.Helper()
	r, err := s.Read(topic, 0, offset, limits, store.Match{Tag: tag})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func search(tb testing.TB, s *store.Store, topic string, millis int64, upper bool) int64 {
	tb.Helper()
	offset, err := s.Search(topic, 0, millis, upper)
	if err != nil {
		tb.Fatal(err)
	}
	return offset
}

func lookup(tb testing.TB, s *store.Store, logOffset int64) ([]byte, bool) {
	tb.Helper()
	raw, found, err := s.Lookup(logOffset)
	if err != nil {
		tb.Fatal(err)
	}
	return raw, found
}
