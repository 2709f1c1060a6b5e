package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
)

func TestBudgetServesInLineAndNeverLeaks(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		process := NewBudget("the process", 100, nil)
		b := NewBudget("stream a", 60, process)
		ctx := t.Context()
		if err := b.Acquire(ctx, 50); err != nil {
			t.Fatal(err)
		}
		var served [3]atomic.Bool
		for i := range 3 {
			go func() { served[i].Store(b.Acquire(ctx, 30) == nil) }()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := b.Acquire(short, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the fourth in line got %v", err)
		}
		b.Give(50)
		synctest.Wait()
		if !served[0].Load() || !served[1].Load() || served[2].Load() {
			t.Error("not the first two in line were served")
		}
		b.Give(30)
		synctest.Wait()
		b.Give(60)
		if !served[2].Load() || b.Used() != 0 || process.Used() != 0 {
			t.Errorf("used %d and %d", b.Used(), process.Used())
		}
	})
}

func TestBudgetLetsTheOversizedPass(t *testing.T) {
	b := NewBudget("s", 10, NewBudget("p", 5, nil))
	if err := b.Acquire(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	b.Correct(-400)
	b.Correct(100)
	b.Give(700)
	if b.Used() != 0 || b.parent.Used() != 0 {
		t.Errorf("used %d, %d", b.Used(), b.parent.Used())
	}
}

func TestBudgetWaitsForTheProcess(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		process := NewBudget("the process", 10, nil)
		a, b := NewBudget("a", 100, process), NewBudget("b", 100, process)
		if err := errors.Join(a.Acquire(t.Context(), 9), b.Acquire(t.Context(), 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Acquire(ctx, 5); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "memory of the process") {
			t.Errorf("the process's limit did not hold, or is not told: %v", err)
		}
		if b.Used() != 1 || process.Used() != 10 {
			t.Errorf("%d bytes stay reserved in the stream, %d in the process", b.Used(), process.Used())
		}
		if name, full := b.Full(); full {
			t.Errorf("%s is still waited for", name)
		}
	})
}

// What is stuck elsewhere does not keep a budget of which nothing is in use from going on: its first passes, and when that is
// given back, the first of those that wait.
func TestBudgetGoesOnBesideWhatIsStuck(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		process := NewBudget("the process", 20, nil)
		stream := NewBudget("stream a", 10, process)
		stuck, b := NewBudget("broker x", 8, stream), NewBudget("broker y", 8, stream)
		if err := errors.Join(stuck.Acquire(t.Context(), 8), NewBudget("stream b", 20, process).Acquire(t.Context(), 10)); err != nil {
			t.Fatal(err)
		}
		stuck.Correct(12) // the answers were larger than expected
		var served [3]atomic.Bool
		for i := range 3 {
			go func() { served[i].Store(b.Acquire(t.Context(), 2) == nil) }()
			synctest.Wait()
		}
		for i := range 3 {
			for k := range 3 {
				if got := served[k].Load(); got != (k <= i) {
					t.Fatalf("with %d given back, the one at place %d in line has passed: %t", i, k+1, got)
				}
			}
			b.Give(2)
			synctest.Wait()
		}
		if b.Used() != 0 || stream.Used() != 20 || process.Used() != 30 {
			t.Errorf("used %d, %d and %d", b.Used(), stream.Used(), process.Used())
		}
	})
}

// Who was let in first and waits above goes on before those who still wait to be let in: they would pass one after another, and
// it never.
func TestBudgetPassesInLine(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		stream := NewBudget("stream a", 10, nil)
		b := NewBudget("broker y", 6, stream)
		if err := errors.Join(NewBudget("broker x", 10, stream).Acquire(t.Context(), 10), b.Acquire(t.Context(), 2)); err != nil {
			t.Fatal(err)
		}
		var served [5]atomic.Bool // the first two wait for the stream's memory, the others for the broker's
		for i := range served {
			go func() { served[i].Store(b.Acquire(t.Context(), 2) == nil) }()
			synctest.Wait()
		}
		for i := range served {
			b.Give(2)
			synctest.Wait()
			for k := range served {
				if got := served[k].Load(); got != (k <= i) {
					t.Fatalf("with %d given back, the one at place %d in line has passed: %t", i+1, k+1, got)
				}
			}
		}
	})
}

// A queue that was read to its end reserves nothing for its pull, which is held until there is something: beside what is stuck all
// those of a broker go on, as long as nothing of it is in use.
func TestBudgetLetsTheIdleGoOn(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		stream := NewBudget("stream a", 10, nil)
		stuck, b := NewBudget("broker x", 10, stream), NewBudget("broker y", 10, stream)
		stuck.Correct(11)
		for range 2 {
			if !b.TryAcquire(0) {
				t.Error("nothing is in use, and an idle queue does not go on")
			}
		}
		b.Correct(1) // one of them got something
		if b.TryAcquire(0) {
			t.Error("an idle queue goes on when all is full and something is in use")
		}
		var served [3]atomic.Bool
		for i, n := range []int64{0, 1, 0} {
			go func() { served[i].Store(b.Acquire(t.Context(), n) == nil) }()
			synctest.Wait()
		}
		b.Give(1)
		synctest.Wait()
		if !served[0].Load() || !served[1].Load() || served[2].Load() {
			t.Errorf("passed: %t, %t, %t", served[0].Load(), served[1].Load(), served[2].Load())
		}
		b.Give(1)
		synctest.Wait()
		if !served[2].Load() {
			t.Error("the last in line did not pass")
		}
	})
}

// Those who go on beside what is stuck take no room from who waits in line.
func TestBudgetRoomGoesToTheLine(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		stream := NewBudget("stream a", 10, nil)
		x, y := NewBudget("broker x", 10, stream), NewBudget("broker y", 10, stream)
		if err := errors.Join(x.Acquire(t.Context(), 8), y.Acquire(t.Context(), 2)); err != nil {
			t.Fatal(err)
		}
		var served [2]atomic.Bool
		for i, b := range []*Budget{x, y} {
			go func() { served[i].Store(b.Acquire(t.Context(), 2) == nil) }()
			synctest.Wait()
		}
		y.Give(2)
		synctest.Wait()
		if !served[0].Load() || !served[1].Load() || stream.Used() != 12 {
			t.Errorf("the first in line got the room: %t; the one that needs none went on: %t; used %d", served[0].Load(), served[1].Load(), stream.Used())
		}
	})
}

// Whatever is asked for, given back, corrected and given up in whatever order, and whatever the limits become: nobody waits who may go on,
// nobody is overtaken by one who asked the same budget later, limits are passed by one reservation of each that holds nothing else at most, each budget
// counts what those below it hold, and nothing is left over.
func TestBudgetTree(t *testing.T) {
	for seed := range uint64(60) {
		bubbletest.Run(t, func(t *testing.T) { growTree(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

type reservation struct {
	leaf   *Budget
	n      int64
	cancel context.CancelFunc
	got    chan error
	state  int // 0: waits, 1: granted
}

func growTree(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	const largest = 30
	process := NewBudget("the process", 150, nil)
	streams := []*Budget{NewBudget("a", 80, process), NewBudget("b", 80, process)}
	var leaves []*Budget
	for _, s := range streams {
		leaves = append(leaves, NewBudget("x", 60, s), NewBudget("y", 60, s))
	}
	budgets := append([]*Budget{process}, append(streams, leaves...)...)
	highest := map[*Budget]int64{}
	for _, b := range budgets {
		highest[b] = b.limit
	}
	var all []*reservation
	settle := func() {
		synctest.Wait()
		for i := 0; i < len(all); i++ {
			r := all[i]
			select {
			case err := <-r.got:
				if err == nil {
					r.state = 1
					continue
				}
				all = slices.Delete(all, i, i+1)
				i--
			default:
			}
		}
	}
	check := func(what string) {
		t.Helper()
		held := map[*Budget]int64{}
		waits := map[*Budget]bool{}
		for _, r := range all {
			if r.state == 0 {
				waits[r.leaf] = true
				continue
			}
			if waits[r.leaf] {
				t.Fatalf("after %s: somebody of %s waits who asked before one that holds %d", what, r.leaf.name, r.n)
			}
			for b := r.leaf; b != nil; b = b.parent {
				held[b] += r.n
			}
		}
		for _, b := range budgets {
			if b.held != held[b] || b.used < b.held {
				t.Fatalf("after %s: %s holds %d and uses %d; those below it hold %d", what, b.name, b.held, b.used, held[b])
			}
			if held[b] == 0 && waits[b] {
				t.Fatalf("after %s: somebody of %s waits and nothing of it is in use", what, b.name)
			}
			if room := highest[b] + 6*largest; held[b] > room {
				t.Fatalf("after %s: %s holds %d of %d", what, b.name, held[b], highest[b])
			}
			if len(b.waiting) > 0 && b.fits(b.waiting[0].n) {
				t.Fatalf("after %s: somebody waits for %s, which has room", what, b.name)
			}
		}
	}
	for range 100 {
		what := ""
		switch k := rnd.IntN(11); {
		case k < 5:
			ctx, cancel := context.WithCancel(t.Context())
			r := &reservation{leaf: leaves[rnd.IntN(4)], n: rnd.Int64N(largest), cancel: cancel, got: make(chan error, 1)}
			all = append(all, r)
			go func() { r.got <- r.leaf.Acquire(ctx, r.n) }()
			what = fmt.Sprint("asking for ", r.n)
		case k < 6:
			leaf, n := leaves[rnd.IntN(4)], rnd.Int64N(largest)
			if leaf.TryAcquire(n) {
				all = append(all, &reservation{leaf: leaf, n: n, cancel: func() {}, got: make(chan error), state: 1})
			}
			what = fmt.Sprint("trying for ", n)
		case k == 10:
			b := budgets[rnd.IntN(len(budgets))]
			b.SetLimit(rnd.Int64N(highest[b] + 1))
			what = "another limit of " + b.name
		case len(all) > 0:
			i := rnd.IntN(len(all))
			r := all[i]
			switch {
			case r.state == 0:
				r.cancel()
				what = "giving up"
			case k == 6 && r.n > 0:
				n := rnd.Int64N(r.n)
				r.leaf.Correct(n - r.n)
				r.n = n
				what = "correcting"
			default:
				r.leaf.Give(r.n)
				all = slices.Delete(all, i, i+1)
				what = fmt.Sprint("giving back ", r.n)
			}
		}
		settle()
		check(what)
	}
	for len(all) > 0 {
		if r := all[0]; r.state == 1 {
			r.leaf.Give(r.n)
			all = all[1:]
		} else {
			r.cancel()
		}
		settle()
		check("the end")
	}
	if process.used != 0 {
		t.Errorf("%d bytes are left over", process.used)
	}
}
