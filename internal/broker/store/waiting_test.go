package store

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/bubbletest"
)

// keysOf counts what a store has by the first byte of its keys.
func keysOf(t *testing.T, s *Store) map[byte]int {
	t.Helper()
	kinds := map[byte]int{}
	err := s.view(func(db *pebble.DB) error {
		return scan(db, nil, func(k, _ []byte) error {
			kinds[k[0]]++
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func waiting(t *testing.T, s *Store, body string, due int64) *Change {
	t.Helper()
	c := message(body)
	c.Appends[0].Topic, c.Appends[0].Records[0].Due, c.Appends[0].Records[0].Keys = "Timer", due, []string{"a", "b"}
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func due(t *testing.T, s *Store, until int64) []Scheduled {
	t.Helper()
	all, _, err := s.Scheduled(0, until, 1<<20, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Topic, all[i].Keys = "Timer", []string{"a", "b"}
	}
	return all
}

// TestDelivered_leavesNothing of the message that waited: a broker that delays much and keeps everything else must not keep it
// twice. What still waits, and what lies elsewhere, stays.
func TestDelivered_leavesNothing(t *testing.T) {
	t.Parallel()
	s := openHere(t, Options{})
	if err := s.Apply(message("other")); err != nil {
		t.Fatal(err)
	}
	before := keysOf(t, s)
	for i := range 50 {
		waiting(t, s, "early", int64(100+i%7))
		waiting(t, s, "late", 1000)
	}
	delivery := message("delivered")
	delivery.Unschedule = due(t, s, 500)
	if err := s.Apply(delivery); err != nil {
		t.Fatal(err)
	}
	late := due(t, s, 2000)
	if len(delivery.Unschedule) != 50 || len(late) != 50 || late[0].Raw == nil || s.CountScheduled() != 50 {
		t.Fatalf("%d were delivered, %d wait, counted %d", len(delivery.Unschedule), len(late), s.CountScheduled())
	}
	recall := &Change{Unschedule: late}
	if err := s.Apply(recall); err != nil {
		t.Fatal(err)
	}
	after := keysOf(t, s)
	// One message more, its run, and the bounds of a second queue. The last run is the delivery's.
	for kind, more := range map[byte]int{prefixMessage: 1, prefixLog: 1, prefixQueue: 1, prefixSchedule: 0, prefixIndex: 0} {
		if after[kind] != before[kind]+more {
			t.Errorf("of %q there were %d and are %d, want %d more", kind, before[kind], after[kind], more)
		}
	}
}

// TestRecall_keepsTheEndOfTheLog: the last message is recalled, and its log offset is not given to another one.
func TestRecall_keepsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := Options{Dir: "data", FS: fs}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	last := waiting(t, s, "recalled", 1000).Appends[0].Positions[0].LogOffset
	if err := s.Apply(&Change{Unschedule: due(t, s, 2000)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	next := message("next")
	if err := s.Apply(next); err != nil {
		t.Fatal(err)
	}
	if at := next.Appends[0].Positions[0]; at.LogOffset <= last {
		t.Errorf("the next message lies at %d, the recalled one lay at %d", at.LogOffset, last)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestScheduled_endedTwice: a recall and a delivery end the same entry, in one change, in two at once, and one after the other.
func TestScheduled_endedTwice(t *testing.T) {
	t.Parallel()
	s := openHere(t, Options{})
	for range 4 {
		waiting(t, s, "x", 100)
	}
	all := due(t, s, 100)
	done := make(chan error, 2)
	for _, c := range []*Change{{Unschedule: slices.Concat(all[:1], all[:2])}, {Unschedule: all[:2]}} {
		if err := s.Submit(c, func(err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(&Change{Unschedule: all[:3]}); err != nil {
		t.Fatal(err)
	}
	if n := s.CountScheduled(); n != 1 {
		t.Errorf("%d wait, one does", n)
	}
}

// TestClock_countsSleep of the machine, which the monotonic clock leaves out, and never goes back.
func TestClock_countsSleep(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) { // Nothing but sleep takes time here.
		slept := 5 * time.Hour
		c := newClock(func() time.Duration { return slept })
		start := c.now()
		for _, step := range []struct{ sleeps, counts time.Duration }{
			{0, 0},
			{300 * time.Millisecond, 0},
			{time.Hour, time.Hour + 300*time.Millisecond},
			{-10 * time.Millisecond, time.Hour + 300*time.Millisecond},
			{time.Minute, time.Hour + time.Minute + 290*time.Millisecond},
		} {
			slept += step.sleeps
			c.look.Store(0) // It looks now.
			if got := time.Duration(c.now()-start) * time.Millisecond; got != step.counts {
				t.Errorf("after %v more of sleep the clock is ahead by %v, want %v", step.sleeps, got, step.counts)
			}
		}
	})
	if got := suspended(); got < 0 {
		t.Errorf("this machine has slept for %v", got)
	}
}
