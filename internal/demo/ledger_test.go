package demo

import (
	"errors"
	"testing"
	"time"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		do   func(l *ledger)
		want totals
	}{
		"handled": {
			func(l *ledger) { l.sent(0, at(0), nil, false); l.attempted(0, at(1), 1, true) },
			totals{stored: 1, handled: 1},
		},
		"handled before the sender knew": {
			func(l *ledger) { l.attempted(0, at(0), 1, true); l.sent(0, at(1), nil, false) },
			totals{stored: 1, handled: 1},
		},
		"handled twice": {
			func(l *ledger) {
				l.sent(0, at(0), nil, false)
				l.attempted(0, at(1), 1, true)
				l.attempted(0, at(2), 1, true)
			},
			totals{stored: 1, handled: 1, duplicates: 1},
		},
		"failed, then handled": {
			func(l *ledger) {
				l.sent(0, at(0), nil, false)
				l.attempted(0, at(1), 1, false)
				l.attempted(0, at(2), 2, true)
			},
			totals{stored: 1, handled: 1, retried: 1},
		},
		"waits for its next attempt": {
			func(l *ledger) { l.sent(0, at(0), nil, false); l.attempted(0, at(5), 1, false); l.clear(at(3)) },
			totals{stored: 1, open: 1},
		},
		"lost": {
			func(l *ledger) { l.sent(0, at(0), nil, false); l.clear(at(3)) },
			totals{stored: 1, open: 1, lost: 1},
		},
		"lost after a failed attempt": {
			func(l *ledger) { l.sent(0, at(0), nil, false); l.attempted(0, at(5), 1, false); l.clear(at(9)) },
			totals{stored: 1, open: 1, lost: 1},
		},
		"not lost after all": {
			func(l *ledger) {
				l.sent(0, at(0), nil, false)
				l.clear(at(3))
				l.attempted(0, at(4), 1, true)
			},
			totals{stored: 1, handled: 1},
		},
		"dead after three attempts": {
			func(l *ledger) {
				l.sent(0, at(0), nil, false)
				for i := range 3 {
					l.attempted(0, at(i), i+1, false)
				}
				l.buried(0)
			},
			totals{stored: 1, retried: 2, dead: 1},
		},
		"dead and handled": {
			func(l *ledger) {
				l.sent(0, at(0), nil, false)
				l.attempted(0, at(1), 1, false)
				l.buried(0)
				l.attempted(0, at(2), 1, true)
			},
			totals{stored: 1, handled: 1, dead: 1, duplicates: 1},
		},
		"nobody knows whether it was stored": {
			func(l *ledger) { l.sent(0, at(0), gone, true); l.clear(at(9)) },
			totals{unsure: 1},
		},
		"not stored": {
			func(l *ledger) { l.sent(0, at(0), gone, false); l.clear(at(9)) },
			totals{refused: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			c.do(l)
			if got := l.sums(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What is shown as a sum never falls, in whatever order the facts come.
func TestLedger_sumsNeverFall(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	l := newLedger()
	var last totals
	for i, do := range []func(){
		func() { l.sent(0, now, nil, false) },
		func() { l.attempted(0, now, 1, false) },
		func() { l.attempted(0, now, 2, false) },
		func() { l.attempted(1, now, 1, false) },
		func() { l.attempted(0, now, 3, false) },
		func() { l.buried(0) },
		func() { l.buried(0) },
		func() { l.attempted(1, now, 2, true) },
		func() { l.attempted(1, now, 1, true) },
		func() { l.buried(1) },
	} {
		do()
		now := l.sums()
		if now.handled < last.handled || now.retried < last.retried || now.dead < last.dead || now.duplicates < last.duplicates || now.stored < last.stored {
			t.Errorf("after fact %d: %+v, before %+v", i, now, last)
		}
		last = now
	}
	if last.retried != 3 {
		t.Errorf("retried %d: 0 was tried twice more, 1 once", last.retried)
	}
}

func TestOrderNumber(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"A-1001": 0, "A-1042": 41} {
		if n, ok := orderNumber(id); n != want || !ok || orderID(n) != id {
			t.Errorf("%s: %d %t, want %d", id, n, ok, want)
		}
	}
	for _, id := range []string{"MY-1", "A-", "A-x", "A-9", ""} {
		if n, ok := orderNumber(id); ok {
			t.Errorf("%q is taken for order %d of the demo", id, n)
		}
	}
}
