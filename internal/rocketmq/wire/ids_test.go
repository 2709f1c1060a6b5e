package wire

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	const offsetID = "0A00000500002A9F0000000000000000"
	tests := map[string]struct{ properties, identity, id, topic string }{
		"first attempt":       {"UNIQ_KEY\x01U\x02", offsetID, "U", "T"},
		"without a key":       {"", offsetID, offsetID, "T"},
		"retried":             {"UNIQ_KEY\x01U\x02ORIGIN_MESSAGE_ID\x01O\x02RETRY_TOPIC\x01Orders\x02", "O", "U", "Orders"},
		"two keys of a batch": {"UNIQ_KEY\x01own\x02UNIQ_KEY\x01batch\x02", offsetID, "batch", "T"},
	}
	for name, tt := range tests {
		m := plainMessage()
		m.Properties = []byte(tt.properties)
		if got := Identity(m); got != tt.identity {
			t.Errorf("%s: identity %s, want %s", name, got, tt.identity)
		}
		if m.ID() != tt.id || m.OriginTopic() != tt.topic {
			t.Errorf("%s: id %s, origin topic %s", name, m.ID(), m.OriginTopic())
		}
	}
	m := plainMessage()
	if m.Attempt() != 1 || m.Tag() != nil || m.UniqueKey() != "" || len(m.Keys()) != 0 {
		t.Errorf("a plain message: attempt %d, tag %q", m.Attempt(), m.Tag())
	}
}

func TestParseOffsetIDErrors(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "0A", strings.Repeat("G", offsetIDv4), strings.Repeat("F", offsetIDv4), strings.Repeat("0", offsetIDv4+2)} {
		if host, offset, err := ParseOffsetID(id); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %s %d %v", id, host, offset, err)
		}
	}
	if host, offset, err := ParseOffsetID(strings.ToLower("0A00000500002A9F000000000001E240")); err != nil || offset != 123456 || host.Port() != 10911 {
		t.Errorf("lower case: %s %d %v", host, offset, err)
	}
}

func TestIDGenerator(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 8*3600)
	// The last millisecond of a month of 31 days in that zone needs all 32 bits.
	now := time.Date(2026, 12, 31, 23, 59, 59, 999e6, zone)
	g := NewIDGenerator(netip.MustParseAddr("2001:db8::1"), 1<<16+5, 7)
	const prefix = "20010DB8000000000000000000000001" + "0005" + "00000007"
	if id := g.Next(now); id != prefix+"9FA523FF"+"0001" {
		t.Errorf("id %s", id)
	}
	got, err := ParseUniqueID(prefix+"9FA523FF0001", now.Add(time.Hour))
	if err != nil || !got.Time.Equal(now) {
		t.Errorf("read in the next month: %v, %v", got.Time, err)
	}
	if id := NewIDGenerator(netip.MustParseAddr("::ffff:10.0.0.1"), 1, 2).Next(now); !strings.HasPrefix(id, "0A000001") || len(id) != 32 {
		t.Errorf("a mapped address: %s", id)
	}
	if id := NewIDGenerator(netip.Addr{}, 1, 2).Next(now); len(id) != 32 {
		t.Errorf("no address: %s", id)
	}
	for _, bad := range []string{"", "zz", strings.Repeat("0", 34)} {
		if _, err := ParseUniqueID(bad, now); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestIDGeneratorConcurrently(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 1000
	g := NewIDGenerator(netip.MustParseAddr("10.0.0.1"), 1, 2)
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	made := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				made[w] = append(made[w], g.Next(now))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, ids := range made {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s was made twice", id)
			}
			seen[id] = true
		}
	}
}

func TestMessageCRC(t *testing.T) {
	t.Parallel()
	m := plainMessage()
	m.Properties = []byte("a\x01b\x02")
	m.Properties = AppendPropertyCRC(m.Properties, 0)
	raw := stored(t, m)
	split := len(raw) - (len(PropCRC) + 1 + crcDigits + 1)
	raw = AppendPropertyCRC(raw[:split:split], BodyCRC(raw[:split]))
	var got Message
	if _, err := got.Decode(raw); err != nil {
		t.Fatal(err)
	}
	if checked, err := got.CheckMessageCRC(); !checked || err != nil {
		t.Errorf("right sum: %t, %v", checked, err)
	}
	raw[20]++ // the queue offset
	if _, err := got.Decode(raw); err != nil {
		t.Fatal(err)
	}
	if checked, err := got.CheckMessageCRC(); !checked || !errors.Is(err, ErrChecksum) {
		t.Errorf("wrong sum: %t, %v", checked, err)
	}
	if _, err := got.Decode(stored(t, plainMessage())); err != nil {
		t.Fatal(err)
	}
	if checked, err := got.CheckMessageCRC(); checked || err != nil {
		t.Errorf("no sum: %t, %v", checked, err)
	}
}

func TestBodyCRC(t *testing.T) {
	t.Parallel()
	m := plainMessage()
	if err := m.CheckCRC(); err != nil {
		t.Error(err)
	}
	m.Body = []byte("c")
	if err := m.CheckCRC(); !errors.Is(err, ErrChecksum) {
		t.Errorf("another body: %v", err)
	}
}
