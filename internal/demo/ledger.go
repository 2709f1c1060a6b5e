package demo

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// firstOrder is the number of the first order's id.
const firstOrder = 1001

// orderID is the id of the n-th order, counted from 0.
func orderID(n int) string { return fmt.Sprintf("A-%d", firstOrder+n) }

// orderNumber is the reverse; an id that the demo did not make is not ok.
func orderNumber(id string) (n int, ok bool) {
	text, ok := strings.CutPrefix(id, "A-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n - firstOrder, err == nil && n >= firstOrder
}

// ledger holds what is known of each order: what the broker said of its sending, what the handlers wrote of its attempts,
// and whether it lies in the dead-letter topic. It believes no counter of streamd.
//
// The facts of one order come in any order: a handler may be faster than the broker's answer to the sender. Its methods
// are safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	fate    []fate             // by order number; a byte each, so that a demo can run for days
	open    map[int]*openOrder // stored, and neither handled nor dead
	totals  totals
	cleared time.Time // orders that nobody touched since before are lost
}

// fate packs what became of one order.
type fate uint8

const (
	stored  fate = 1 << iota // the broker said so
	unsure                   // the broker may have it: no answer came
	handled                  // a handler was through with it
	dead                     // it lies in the dead-letter topic
)

// openOrder is one that somebody still has to work on.
type openOrder struct {
	touched time.Time // last sign of it
}

// totals are the sums so far.
type totals struct {
	stored, unsure, refused int // sendings: confirmed, without an answer, not accepted
	handled, retried, dead  int // orders handled, attempts after the first of an order, dead letters
	lost                    int
	duplicates              int // times that something was done once more to an order that was done
	open                    int
}

func newLedger() *ledger { return &ledger{open: map[int]*openOrder{}} }

func (l *ledger) at(n int) *fate {
	for len(l.fate) <= n {
		l.fate = append(l.fate, 0)
	}
	return &l.fate[n]
}

// sent notes the end of a sending: err is nil, or says why it is not confirmed; mayBe that the broker may have it all the same.
func (l *ledger) sent(n int, now time.Time, err error, mayBe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.at(n)
	switch {
	case err == nil:
		l.totals.stored++
		*f |= stored
		if *f&(handled|dead) == 0 {
			l.touch(n, now)
		}
	case mayBe:
		l.totals.unsure++
		*f |= unsure
	default:
		l.totals.refused++
	}
}

func (l *ledger) touch(n int, now time.Time) {
	if o := l.open[n]; o != nil {
		o.touched = now
		return
	}
	l.open[n] = &openOrder{touched: now}
}

// attempted notes what a handler wrote of one attempt, the first being 1. A retry is counted when it comes, so that no sum has
// to be taken back for a failed attempt that turns out to be the last.
func (l *ledger) attempted(n int, now time.Time, attempt int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.at(n)
	if attempt > 1 {
		l.totals.retried++
	}
	switch {
	case !ok:
		if *f&stored != 0 && *f&(handled|dead) == 0 {
			l.touch(n, now)
		}
		return
	case *f&(handled|dead) != 0:
		l.totals.duplicates++
	}
	if *f&handled == 0 {
		l.totals.handled++
	}
	*f |= handled
	delete(l.open, n)
}

// buried notes a message in the dead-letter topic.
func (l *ledger) buried(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.at(n)
	if *f&(handled|dead) != 0 {
		l.totals.duplicates++
	}
	if *f&dead == 0 {
		l.totals.dead++
	}
	*f |= dead
	delete(l.open, n)
}

// clear says that whatever was touched last before this time should be done by now: an order that is still open is lost.
// Who cannot tell does not call it.
func (l *ledger) clear(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before.After(l.cleared) {
		l.cleared = before
	}
}

// sums returns the totals as they stand.
func (l *ledger) sums() totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.totals
	t.open = len(l.open)
	for _, o := range l.open {
		if o.touched.Before(l.cleared) {
			t.lost++
		}
	}
	return t
}
