package store_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func encode(t testing.TB, topic, body, properties string) []byte {
	t.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	m := wire.Message{
		BornHost: host, StoreHost: host, Topic: []byte(topic), Body: []byte(body), BodyCRC: wire.BodyCRC([]byte(body)),
		Properties: []byte(properties),
	}
	raw, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func record(t testing.TB, topic, body string, hash int32) store.Record {
	t.Helper()
	return store.Record{Raw: encode(t, topic, body, ""), TagHash: hash}
}

func decode(t testing.TB, raw []byte) wire.Message {
	t.Helper()
	var m wire.Message
	if n, err := m.Decode(raw); err != nil || n != len(raw) {
		t.Fatalf("decoding %d of %d bytes: %v", n, len(raw), err)
	}
	return m
}

func open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = "data"
	}
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, s *store.Store, topic string, records ...store.Record) []store.Position {
	t.Helper()
	c := &store.Change{Appends: []store.Append{{Topic: topic, Records: records}}}
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
	return c.Appends[0].Positions
}

func fill(t testing.TB, s *store.Store, topic string, n int) []store.Position {
	t.Helper()
	var all []store.Position
	for i := range n {
		all = append(all, put(t, s, topic, record(t, topic, fmt.Sprint(i), int32(i%3)))...)
	}
	return all
}

// done waits for an edit of the store.
func done(t testing.TB, edit func(func(error))) {
	t.Helper()
	result := make(chan error, 1)
	edit(func(err error) { result <- err })
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func expire(t testing.TB, s *store.Store, topic string, first int64) {
	t.Helper()
	done(t, func(f func(error)) { s.Expire(topic, 0, first, f) })
}

func truncate(t testing.TB, s *store.Store, topic string, next int64) {
	t.Helper()
	done(t, func(f func(error)) { s.Truncate(topic, 0, next, f) })
}

func remove(t testing.TB, s *store.Store, topic string) {
	t.Helper()
	done(t, func(f func(error)) { s.Delete(topic, f) })
}

func read(t testing.TB, s *store.Store, topic string, offset int64, limits store.Limits, tag func(int32) bool) store.Result {
	t.Helper()
	r, err := s.Read(topic, 0, offset, limits, store.Match{Tag: tag})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func search(t testing.TB, s *store.Store, topic string, millis int64, upper bool) int64 {
	t.Helper()
	offset, err := s.Search(topic, 0, millis, upper)
	if err != nil {
		t.Fatal(err)
	}
	return offset
}

func lookup(t testing.TB, s *store.Store, logOffset int64) ([]byte, bool) {
	t.Helper()
	raw, found, err := s.Lookup(logOffset)
	if err != nil {
		t.Fatal(err)
	}
	return raw, found
}
