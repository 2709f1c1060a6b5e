package ledger

import (
	"strings"
	"testing"
)

// tape makes entries from words: "s" or "e" (or "x", an end with an error), body, offset, pid; the time is the place.
func tape(lines ...string) []Entry {
	var all []Entry
	for i, l := range lines {
		f := strings.Fields(l)
		e := Entry{Event: Start, Body: f[1], Queue: "q", Offset: int64(f[2][0] - '0'), PID: int(f[3][0] - '0'), Attempt: 1, At: int64(i * 10)}
		if f[0] != "s" {
			e.Event = End
		}
		if f[0] == "x" {
			e.Error = "told"
		}
		all = append(all, e)
	}
	return all
}

func never(string) bool { return false }

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name     string
		entries  []Entry
		produced string
		dead     string
		kills    []Kill
		want     string // "" = no fault
	}{
		{"all is well", tape("s a 0 1", "s b 1 1", "e a 0 1", "e b 1 1"), "a b", "", nil, ""},
		{"lost", tape("s a 0 1", "e a 0 1"), "a b", "", nil, "LOSS 1: [b]"},
		{"failed only", tape("s a 0 1", "x a 0 1"), "a", "", nil, "LOSS 1"},
		{"burned", tape("s a 0 1", "e a 0 1"), "a b", "b", nil, "1 dead letters that no handler rejected: [b]"},
		{"killed in flight", tape("s a 0 1", "s a 0 2", "e a 0 2"), "a", "", []Kill{{What: "plugin", At: 5, Gone: 5}}, ""},
		{"killed at rest", tape("s a 0 1", "e a 0 1"), "a", "", []Kill{{What: "plugin", At: 50, Gone: 50}}, "hit no work in flight"},
		{"again without a kill", tape("s a 0 1", "e a 0 1", "s a 0 1", "e a 0 1"), "a", "", nil, "no kill hit"},
		{"again after the kill of another", tape("s a 0 1", "s b 1 3", "e a 0 1", "s a 0 1", "e a 0 1", "s b 1 2", "e b 1 2"), "a b", "", []Kill{{What: "plugin", At: 15, Gone: 15, PID: 3}}, "no kill hit"},
		{"answered, again", tape("s a 0 1", "e a 0 1", "s b 1 1", "s a 0 2", "e a 0 2", "s b 1 2", "e b 1 2"), "a b", "", []Kill{{What: "plugin", At: 25, Gone: 25}}, "1 answered and 1 unanswered deliveries came again; 0 were settled"},
		{
			"settled, not committed", tape("s a 0 1", "e a 0 1", "s b 1 1", "s a 0 2", "e a 0 2", "s b 1 2", "e b 1 2"), "a b", "",
			[]Kill{{What: "streamd", At: 25, Gone: 25, Committed: map[string]int64{"q": 0}}},
			"",
		},
		{
			"committed, again", tape("s a 0 1", "e a 0 1", "s b 1 1", "s a 0 2", "e a 0 2", "s b 1 2", "e b 1 2"), "a b", "",
			[]Kill{{What: "streamd", At: 25, Gone: 25, Committed: map[string]int64{"q": 1}}},
			"though 1 was committed",
		},
	} {
		a := Check(tt.entries, strings.Fields(tt.produced), strings.Fields(tt.dead), tt.kills, never)
		faults := strings.Join(a.Faults(tt.entries, tt.kills, 0), "\n")
		if tt.want == "" && faults != "" || !strings.Contains(faults, tt.want) {
			t.Errorf("%s: faults %q, want %q\n%s", tt.name, faults, tt.want, a.Text(tt.entries, tt.kills))
		}
	}
}

func TestCheck_countsCopies(t *testing.T) {
	e := tape("s a 0 1", "e a 0 1", "s a 1 1", "e a 1 1", "s b 2 1", "e b 2 1")
	a := Check(e, []string{"a", "b"}, nil, nil, never)
	if len(a.Copies) != 1 || a.Copies[0] != "a" || a.Twice != 1 || a.Handled != 2 {
		t.Errorf("%+v", a)
	}
}
