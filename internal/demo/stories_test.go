package demo

import (
	"testing"
	"time"
)

func TestStories(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	s := newStories()
	s.logged("t7")
	for i, step := range []struct {
		after       time.Duration
		order       string
		attempt     int
		outcome     string
		about, text string
	}{
		{0, "A-1", 1, "handled", "", ""},
		{0, "A-2", 1, "failed", "retry", `A-2 attempt 1 at m1 "db timeout", again in 1s`},
		{0, "A-3", 1, "failed", "", ""}, // one is followed already
		{time.Second, "A-2", 2, "handled", "handled", "A-2 attempt 2 at m1"},
		{2 * time.Second, "A-4", 1, "failed", "", ""},  // calm
		{10 * time.Second, "A-3", 2, "failed", "", ""}, // its beginning was not told
		{10 * time.Second, "A-7", 1, "failed", "retry", `A-7 attempt 1 at m1 "db timeout", again in 1s`},
		{11 * time.Second, "A-7", 2, "failed", "retry", `A-7 attempt 2 at m1 "db timeout", again in 1s`},
		{12 * time.Second, "A-7", 3, "failed", "", ""},
	} {
		a := &attempt{Order: step.order, Attempt: step.attempt, Outcome: step.outcome}
		if step.outcome != "handled" {
			a.Error = "order " + step.order + ": db timeout"
		}
		if about, text := s.attempted(a, "m1", begin.Add(step.after)); about != step.about || text != step.text {
			t.Errorf("step %d: %q %q, want %q %q", i, about, text, step.about, step.text)
		}
	}
	if s.buried(&deadLetter{order: "A-3", trace: "t3"}) != "" || s.example() != nil {
		t.Error("an order that is not followed is told")
	}
	if got, want := s.buried(&deadLetter{order: "A-7", trace: "t7"}), `A-7 attempt 3 "db timeout" → trace t7`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if l := s.example(); l == nil || l.order != "A-7" {
		t.Errorf("the example is %+v", l)
	}
}
