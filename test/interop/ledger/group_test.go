package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/ledger"
)

const foreign, ours, other = 9, 1, 2

func ms(n int64) int64 { return n * int64(time.Millisecond) }

// handled is a delivery by host from one millisecond to another; to < 0: it has no answer.
func handled(host int, body string, offset, from, to int64) []ledger.Entry {
	e := ledger.Entry{Event: ledger.Start, Body: body, Attempt: 1, Queue: "T/b/0", Offset: offset, PID: host, Host: host, At: ms(from)}
	all := []ledger.Entry{e}
	if to >= 0 {
		e.Event, e.At = ledger.End, ms(to)
		all = append(all, e)
	}
	return all
}

// failed is a delivery that was answered with a failure.
func failed(host int, body string, offset, from, to int64) []ledger.Entry {
	all := handled(host, body, offset, from, to)
	all[1].Error = "told to fail"
	return all
}

// retried is a second attempt.
func retried(host int, body string, offset, from, to int64) []ledger.Entry {
	all := handled(host, body, offset, from, to)
	all[0].Attempt, all[1].Attempt = 2, 2
	return all
}

func TestCheckGroup(t *testing.T) {
	kill := ledger.Cause{What: "kill", Host: ours, From: ms(100), Until: ms(200), Reach: 50 * time.Millisecond}
	handOver := ledger.Cause{What: "hand-over", From: ms(100), Until: ms(200), Reach: 50 * time.Millisecond, Foreign: true}
	for _, c := range []struct {
		name    string
		entries [][]ledger.Entry
		causes  []ledger.Cause
		ordered bool
		faults  []string
		again   map[string]int
		lost    int
	}{
		{name: "one handling each", entries: [][]ledger.Entry{handled(ours, "a", 0, 1, 2), handled(other, "b", 1, 3, 4)}},
		{name: "one is missing", entries: [][]ledger.Entry{handled(ours, "a", 0, 1, 2)}, lost: 1},
		{name: "one has no answer", entries: [][]ledger.Entry{handled(ours, "a", 0, 1, 2), handled(ours, "b", 1, 3, -1)}, lost: 1},
		{
			name: "again for no reason", entries: [][]ledger.Entry{handled(ours, "a", 0, 1, 2), handled(ours, "b", 1, 3, 4), handled(other, "a", 0, 5, 6)},
			faults: []string{`"a" was handled by 1`},
		},
		{
			name: "again after a kill", entries: [][]ledger.Entry{handled(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), handled(other, "a", 0, 150, 160)},
			causes: []ledger.Cause{kill}, again: map[string]int{"kill": 1},
		},
		{
			name: "too long before the kill", entries: [][]ledger.Entry{handled(ours, "a", 0, 10, 20), handled(ours, "b", 1, 91, 92), handled(other, "a", 0, 150, 160)},
			causes: []ledger.Cause{kill}, faults: []string{`"a"`},
		},
		{
			name: "too long after the kill", entries: [][]ledger.Entry{handled(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), handled(other, "a", 0, 250, 260)},
			causes: []ledger.Cause{kill}, faults: []string{`"a"`},
		},
		{
			name: "a kill of somebody else", entries: [][]ledger.Entry{handled(other, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), handled(other, "a", 0, 150, 160)},
			causes: []ledger.Cause{kill}, faults: []string{`"a"`},
		},
		{
			name: "a hand-over to a foreign member", entries: [][]ledger.Entry{handled(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), handled(foreign, "a", 0, 150, 160)},
			causes: []ledger.Cause{handOver}, again: map[string]int{"hand-over": 1},
		},
		{
			name: "no excuse between streamd members", entries: [][]ledger.Entry{handled(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), handled(other, "a", 0, 150, 160)},
			causes: []ledger.Cause{handOver}, faults: []string{`"a"`},
		},
		{name: "two copies of a retry, after a kill", causes: []ledger.Cause{kill}, entries: [][]ledger.Entry{
			failed(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), failed(other, "a", 0, 150, 160), retried(other, "a", 5, 500, 501), retried(other, "a", 6, 600, 601),
		}, again: map[string]int{"kill": 1}},
		{name: "two copies of a retry for no reason", causes: []ledger.Cause{kill}, entries: [][]ledger.Entry{
			failed(ours, "a", 0, 80, 90), handled(ours, "b", 1, 91, 92), retried(other, "a", 5, 500, 501), retried(other, "a", 6, 600, 601),
		}, faults: []string{`"a"`}},
		{name: "interrupted by the leave of a foreign member, which sent it back", causes: []ledger.Cause{handOver}, entries: [][]ledger.Entry{
			failed(foreign, "a", 0, 99, 101), handled(ours, "b", 1, 91, 92), handled(ours, "a", 0, 150, 160), retried(other, "a", 5, 1150, 1151),
		}, again: map[string]int{"hand-over": 1}},
		{name: "the same, and the retry is handled first", causes: []ledger.Cause{handOver}, entries: [][]ledger.Entry{
			handled(foreign, "a", 0, 99, -1), handled(ours, "b", 1, 91, 92), retried(other, "a", 5, 140, 141), handled(ours, "a", 0, 150, 160),
		}, again: map[string]int{"hand-over": 1}},
		{name: "a retry after a success, with no failure", causes: []ledger.Cause{handOver}, entries: [][]ledger.Entry{
			handled(ours, "a", 0, 150, 160), handled(ours, "b", 1, 91, 92), retried(other, "a", 5, 1150, 1151),
		}, faults: []string{`"a"`}},
		{name: "a retry after a success, and a failure long before", causes: []ledger.Cause{handOver}, entries: [][]ledger.Entry{
			failed(foreign, "a", 0, 1, 2), handled(ours, "b", 1, 91, 92), handled(ours, "a", 0, 150, 160), retried(other, "a", 5, 1150, 1151),
		}, faults: []string{`"a"`}},
		{
			name: "between two that are no streamd", entries: [][]ledger.Entry{handled(foreign, "a", 0, 1, 2), handled(ours, "b", 1, 3, 4), handled(foreign, "a", 0, 5, 6)},
			again: map[string]int{"between members that are no streamd": 1},
		},
		{
			name: "two at work on a queue", entries: [][]ledger.Entry{handled(ours, "a", 0, 10, 20), handled(other, "b", 1, 15, 25)},
			faults: []string{"both at work on T/b/0"},
		},
		{
			name: "out of order", ordered: true, entries: [][]ledger.Entry{handled(ours, "b", 1, 10, 20), handled(ours, "a", 0, 30, 40)},
			faults: []string{"started T/b/0@1"},
		},
		{
			name: "again in order", ordered: true, causes: []ledger.Cause{kill},
			entries: [][]ledger.Entry{handled(ours, "a", 0, 80, 90), handled(ours, "b", 1, 95, -1), handled(other, "a", 0, 150, 155), handled(other, "b", 1, 156, 157)},
			again:   map[string]int{"kill": 1},
		},
		{name: "a foreign member out of order", ordered: true, entries: [][]ledger.Entry{handled(foreign, "b", 1, 10, 20), handled(foreign, "a", 0, 30, 40)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []ledger.Entry
			for _, e := range c.entries {
				all = append(all, e...)
			}
			g := ledger.CheckGroup(all, []string{"a", "b"}, func(string) bool { return false }, c.causes, func(h int) bool { return h != foreign }, c.ordered)
			if len(g.Lost) != c.lost || len(g.Faults) != len(c.faults) {
				t.Fatalf("lost %v, faults %q, want %d and %q", g.Lost, g.Faults, c.lost, c.faults)
			}
			for i, f := range c.faults {
				if !strings.Contains(g.Faults[i], f) {
					t.Errorf("fault %q, want %q in it", g.Faults[i], f)
				}
			}
			for why, n := range c.again {
				if g.Again[why] != n {
					t.Errorf("again %v, want %v", g.Again, c.again)
				}
			}
		})
	}
}
