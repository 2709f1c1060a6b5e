package stats_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker/stats"
	"github.com/streamd/streamd/internal/bubbletest"
)

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestTable_spans(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		table := stats.NewTable(10)
		if _, ok := table.Get(stats.TopicPutNums, "T"); ok {
			t.Error("there are statistics of what was never counted")
		}
		for range 6 { // A minute with 10 a second, in batches of 20.
			for range 5 {
				table.Add(stats.TopicPutNums, "T", 20, 1)
			}
			pass(10 * time.Second)
		}
		s, ok := table.Get(stats.TopicPutNums, "T")
		if !ok || s.Hour.Sum != 600 || s.Day.Sum != 600 || !near(s.Hour.PerSec, 10) || !near(s.Hour.Average, 20) {
			t.Errorf("after a minute: %+v", s)
		}
		if s.Minute.Sum != 500 { // The first of six buckets has made way for the present one.
			t.Errorf("minute %+v", s.Minute)
		}
		pass(2 * time.Hour)
		if s, _ = table.Get(stats.TopicPutNums, "T"); s.Minute.Sum != 0 || s.Hour.Sum != 0 || s.Day.Sum != 600 {
			t.Errorf("two hours later: %+v", s)
		}
		pass(24 * time.Hour)
		if s, _ = table.Get(stats.TopicPutNums, "T"); s != (stats.Spans{}) {
			t.Errorf("a day later: %+v", s)
		}
	})
}

func TestTable_isBoundedAndForgets(t *testing.T) {
	t.Parallel()
	table := stats.NewTable(3)
	for i := range 10 {
		table.Add(stats.TopicPutNums, strconv.Itoa(i), 1, 1)
	}
	known := 0
	for i := range 10 {
		if _, ok := table.Get(stats.TopicPutNums, strconv.Itoa(i)); ok {
			known++
		}
	}
	if known != 3 {
		t.Errorf("%d keys are counted", known)
	}
	table.Forget(func(of string) bool { return of == "0" })
	table.Add(stats.TopicPutNums, "new", 1, 1)
	if _, ok := table.Get(stats.TopicPutNums, "new"); !ok {
		t.Error("a forgotten key made no room")
	}
	if _, ok := table.Get(stats.TopicPutNums, "0"); ok {
		t.Error("a forgotten key is still there")
	}
}

func TestTotal_ratesAndMornings(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) { // Begins at a midnight, UTC.
		total := stats.NewTotal()
		for range 20 {
			total.Add(5)
			pass(time.Second)
		}
		if r := total.Rates(); !near(r[0], 5) || !near(r[1], 5) || !near(r[2], 5) {
			t.Errorf("rates %v", r)
		}
		pass(40 * time.Second)
		if r := total.Rates(); r[0] != 0 || !near(r[1], 100.0/60) || !near(r[2], 100.0/60) {
			t.Errorf("rates after a pause %v", r)
		}
		if today, yesterday := total.Mornings(); today != 0 || yesterday != 0 || total.Value() != 100 {
			t.Errorf("mornings %d %d of %d", today, yesterday, total.Value())
		}
		pass(24 * time.Hour)
		total.Add(7)
		if today, yesterday := total.Mornings(); today != 100 || yesterday != 0 {
			t.Errorf("mornings of day two %d %d", today, yesterday)
		}
		pass(24 * time.Hour)
		if today, yesterday := total.Mornings(); today != 107 || yesterday != 100 {
			t.Errorf("mornings of day three %d %d", today, yesterday)
		}
		pass(72 * time.Hour)
		if today, yesterday := total.Mornings(); today != 107 || yesterday != 107 {
			t.Errorf("mornings after three silent days %d %d", today, yesterday)
		}
	})
}
