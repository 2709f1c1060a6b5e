package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func sample() ([]row, totals) {
	return []row{
		{member: "m1", queues: "Orders 0-3", rate: 251.2, lag: 1200, oldest: 120 * time.Millisecond, inFlight: 9, plugin: "orders ok"},
		{member: "m2", queues: "Orders 4-7", rate: 9, plugin: "orders backoff", hold: "no process answers for the handler"},
		{member: "m3", silent: "does not answer"},
	}, totals{handled: 14210, retried: 31, dead: 3}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	rows, sums := sample()
	want := strings.TrimPrefix(`
 MEMBER  QUEUES            RATE    LAG  OLDEST  IN FLIGHT  PLUGIN
 m1      Orders 0-3       251/s  1,200    0.1s          9  orders ok
 m2      Orders 4-7         9/s      0    0.0s          0  orders backoff
   no process answers for the handler
 m3      does not answer
 handled 14,210  retried 31  dead 3  lost 0  duplicates 0`, "\n")
	if got := strings.Join(draw(rows, sums, 100), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDraw_narrow takes columns away until the table fits, never the members and their queues.
func TestDraw_narrow(t *testing.T) {
	t.Parallel()
	rows, sums := sample()
	for width := 120; width >= 30; width-- {
		lines := draw(rows, sums, width)
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > width && !strings.Contains(l, "no process") {
				t.Fatalf("at a width of %d this line has %d: %q", width, n, l)
			}
		}
		text := strings.Join(lines, "\n")
		for _, word := range []string{"m1", "Orders 0-3", "handled 14,210", "lost 0"} {
			if !strings.Contains(text, word) {
				t.Fatalf("at a width of %d the picture has no %q:\n%s", width, word, text)
			}
		}
	}
}

func TestGroupedAndRanges(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -100: "-100", -1000: "-1,000"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
	for want, ids := range map[string][]int32{"-": nil, "Orders 0-2,5": {5, 1, 0, 2}, "Orders 3": {3}} {
		if got := ranges(ids); got != want {
			t.Errorf("ranges(%v) = %s, want %s", ids, got, want)
		}
	}
}
