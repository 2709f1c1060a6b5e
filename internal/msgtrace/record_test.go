package msgtrace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

func begin() time.Time { return time.UnixMilli(1_795_962_060_678) }

// fields are those of a record, which ends with its separator and nothing after it.
func fields(t *testing.T, text string) []string {
	t.Helper()
	body, ok := strings.CutSuffix(text, "\x02")
	if !ok || strings.Contains(body, "\x02") {
		t.Fatalf("%q is not one record", text)
	}
	return strings.Split(body, "\x01")
}

// T25: the fields in Java's order (consumer-semantics.md 10.2).
func TestRecordsHaveJavasFields(t *testing.T) {
	a := Attempt{Region: "DefaultRegion", Group: "G", Topic: "T", RequestID: "R", MessageID: "M", Keys: "k1 k2", Retries: 2, Began: begin()}
	bare := a
	bare.Keys = ""
	sent := &rocketmq.SentMessage{
		Message:       &rocketmq.OutgoingMessage{Topic: "T", Tag: "tag", Keys: []string{"k1", "k2"}},
		Result:        rocketmq.SendResult{Status: rocketmq.SendOK, MessageID: "M", OffsetMessageID: "O", Region: "east"},
		ProducerGroup: "PG", Addr: "127.0.0.1:10911", Bytes: 17, Began: begin(), Took: 12 * time.Millisecond,
	}
	half, delayed := *sent, *sent
	half.Half, half.Message = true, &rocketmq.OutgoingMessage{Topic: "T"}
	delayed.Delayed, delayed.Result.Status, delayed.Result.Region = true, rocketmq.SendFlushDiskTimeout, ""
	for name, c := range map[string]struct {
		got  record
		want []string
	}{
		"before":         {a.before(), []string{"SubBefore", "1795962060678", "DefaultRegion", "G", "R", "M", "2", "k1 k2"}},
		"before, no key": {bare.before(), []string{"SubBefore", "1795962060678", "DefaultRegion", "G", "R", "M", "2", "null"}},
		"success":        {a.after(Ended{At: begin().Add(1500 * time.Millisecond)}), []string{"SubAfter", "R", "M", "1500", "true", "k1 k2", "0", "1795962062178", "G"}},
		"failure":        {bare.after(Ended{At: begin(), Code: CodeFailed}), []string{"SubAfter", "R", "M", "0", "false", "null", "4", "1795962060678", "G"}},
		"published":      {published(sent), []string{"Pub", "1795962060678", "east", "PG", "T", "M", "tag", "k1 k2", "127.0.0.1:10911", "17", "12", "0", "O", "true"}},
		"half message":   {published(&half), []string{"Pub", "1795962060678", "east", "PG", "T", "M", "null", "null", "127.0.0.1:10911", "17", "12", "1", "O", "true"}},
		"delayed":        {published(&delayed), []string{"Pub", "1795962060678", "DefaultRegion", "PG", "T", "M", "tag", "k1 k2", "127.0.0.1:10911", "17", "12", "3", "O", "false"}},
	} {
		if got := fields(t, c.got.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if c.got.topic != "T" || c.got.keys[0] != "M" {
			t.Errorf("%s: found by %v, of topic %s", name, c.got.keys, c.got.topic)
		}
	}
	if got := a.before().keys; !slices.Equal(got, []string{"M", "k1", "k2"}) {
		t.Errorf("found by %v, want the id and each key", got)
	}
}

// Records of one topic share messages, none of which grows beyond its limits.
func TestMessagesKeepTheirLimits(t *testing.T) {
	var records []record
	for range 4 {
		records = append(records, record{topic: "A", text: strings.Repeat("a", 50_000), keys: []string{"same"}}, record{topic: "B", text: "b", keys: []string{"b"}})
	}
	long := strings.Repeat("k", 9<<10)
	records = append(records, record{topic: "C", text: "c", keys: []string{long + "1"}}, record{topic: "C", text: "c", keys: []string{long + "2"}})
	total := uint64(0)
	all := messages(records)
	for _, m := range all {
		total += m.records
		if len(m.text) > maxText || m.keySize > maxKeys || len(m.order) != len(m.keys) {
			t.Errorf("a message of %d bytes with %d bytes of keys %d", len(m.text), m.keySize, len(m.order))
		}
	}
	if len(all) != 5 || total != uint64(len(records)) {
		t.Errorf("%d messages with %d records; want A in two, B in one, C in two, and all %d", len(all), total, len(records))
	}
}
