package sim

import (
	"flag"
	"testing"
	"time"

	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/sdk"
)

var (
	seeds = flag.Int("seeds", 8, "seeds to run")
	seed  = flag.Uint64("seed", 0, "run only this seed")
)

// simulate runs one seed: a minute of faults, then calm. It returns the hash of everything that happened.
func simulate(t *testing.T, seed uint64) (trace uint64, length time.Duration) {
	t.Helper()
	w := newWorld(t, seed)
	began := w.now
	for range 1 + w.rng.IntN(3) {
		w.join()
	}
	w.produce(w.between(20*time.Millisecond, 200*time.Millisecond), w.now.Add(60*time.Second))
	w.persist()
	w.faults()
	w.run(60 * time.Second)
	w.calm = true
	w.calmsAfter(w.now)
	if len(w.members) == 0 || allLeaving(w.members) {
		w.join()
	}
	w.run(15 * time.Second)
	w.provePlugins()
	w.run(4 * time.Minute)
	// What a long freeze left behind has its poisons too, and each is told from a broken plugin alone, one after the other.
	for range 60 {
		if w.unsettled() == 0 {
			break
		}
		w.produce(500*time.Millisecond, w.now.Add(time.Minute))
		w.run(2 * time.Minute)
	}
	w.settled()
	return w.trace, w.now.Sub(began)
}

// unsettled counts what is not committed.
func (w *world) unsettled() (n int64) {
	for q, log := range w.logs {
		n += int64(len(log)) - w.committed[q]
	}
	return n
}

func allLeaving(ms []*member) bool {
	for _, m := range ms {
		if !m.leaving {
			return false
		}
	}
	return true
}

// provePlugins keeps a trickle coming, so that poison can be told from a broken plugin.
func (w *world) provePlugins() { w.produce(500*time.Millisecond, w.now.Add(3*time.Minute)) }

// settled checks what must hold once nothing breaks any more.
func (w *world) settled() {
	for _, e := range w.ended {
		if got := e.own.Safe(); got != e.safe {
			w.t.Errorf("seed %d: %s went from %d to %d after the end of its epoch", w.seed, e.own.Queue, e.safe, got)
		}
	}
	owners := map[sdk.Queue]int{}
	for _, m := range w.members {
		for _, q := range m.core.Queues() {
			if q.State == group.Owned {
				owners[q.Queue]++
			}
		}
	}
	for q, log := range w.logs {
		if owners[q] != 1 {
			w.t.Errorf("seed %d: %s has %d owners", w.seed, q, owners[q])
		}
		if w.committed[q] != int64(len(log)) {
			w.t.Errorf("seed %d: %s is committed to %d of %d", w.seed, q, w.committed[q], len(log))
		}
	}
	for id := 1; id <= w.produced; id++ {
		msg := message{id: id}
		if poison(msg) {
			if !w.dead[id] || w.acked[id] > 0 {
				w.t.Errorf("seed %d: poison %d dead-lettered %t, acked %d times", w.seed, id, w.dead[id], w.acked[id])
			}
			continue
		}
		if n := w.acked[id]; n > 1 && w.born[id].After(w.quiet.Add(time.Minute)) {
			w.t.Errorf("seed %d: message %d was handled %d times, though nothing was broken any more", w.seed, id, n)
		}
		if w.acked[id] == 0 && !w.dead[id] {
			w.t.Errorf("seed %d: message %d is lost", w.seed, id)
		}
	}
}

func TestSeeds(t *testing.T) {
	first, n := uint64(1), uint64(*seeds)
	if *seed != 0 {
		first, n = *seed, 1
	}
	began, total := time.Now(), time.Duration(0)
	for s := first; s < first+n; s++ {
		_, length := simulate(t, s)
		total += length
	}
	took := time.Since(began)
	t.Logf("%d seeds from %d: %.1f hours simulated in %s, %.2f hours a second", n, first, total.Hours(), took.Round(time.Millisecond), total.Hours()/took.Seconds())
}

// A failing seed has to replay exactly.
func TestSeedsReplayExactly(t *testing.T) {
	for s := uint64(1000); s < 1002; s++ {
		a, _ := simulate(t, s)
		if b, _ := simulate(t, s); a != b {
			t.Errorf("seed %d went %x, then %x", s, a, b)
		}
	}
}
