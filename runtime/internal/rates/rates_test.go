package rates

import (
	"math"
	"testing"
	"time"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func near(got, want float64) bool     { return math.Abs(got-want) <= 0.1*want+0.001 }
func newClock() *clock                { return &clock{at: time.Unix(1_700_000_001, 0)} }
func (c *clock) minuteOf(f func(), n int) { // n calls over a minute
	for range n {
		f()
		c.pass(time.Minute / time.Duration(n))
	}
}

func TestRatesOfTheLastMinute(t *testing.T) {
	c := newClock()
	table := New(c.now)
	work := func() {
		table.Pulled("T", 32, 40*time.Millisecond)
		table.Pulled("T", 0, 15*time.Second) // nothing came: no pull that counts
		table.Consumed("T", 30, 10*time.Millisecond)
		table.Failed("T", 50*time.Millisecond)
		table.Failed("T", 50*time.Millisecond)
		table.Consumed("Other", 7, time.Second)
	}
	for range 3 { // what is older does not count
		c.minuteOf(work, 60)
	}
	r := table.Read("T")
	if !near(r.Pulled, 32) || !near(r.OK, 30) || !near(r.Failed, 2) || r.PullTime != 40*time.Millisecond || r.ConsumeTime != 12500*time.Microsecond {
		t.Errorf("%+v", r)
	}
	if r.FailedHour != 360 {
		t.Errorf("%d failures in the last hour, want 360", r.FailedHour)
	}
	if o := table.Read("Other"); !near(o.OK, 7) || o.Failed != 0 || o.Pulled != 0 || o.ConsumeTime != time.Second {
		t.Errorf("the other topic: %+v", o)
	}
	c.pass(2 * time.Minute)
	if r := table.Read("T"); r.OK != 0 || r.Pulled != 0 || r.ConsumeTime != 0 || r.FailedHour != 360 {
		t.Errorf("two minutes later: %+v", r)
	}
	c.pass(time.Hour)
	if r := table.Read("T"); r != (Reading{}) {
		t.Errorf("an hour later: %+v", r)
	}
}

func TestAYoungTableDividesByItsAge(t *testing.T) {
	c := newClock()
	table := New(c.now)
	if r := table.Read("T"); r != (Reading{}) {
		t.Errorf("an empty table: %+v", r)
	}
	for range 10 {
		table.Consumed("T", 5, time.Millisecond)
		c.pass(time.Second)
	}
	if r := table.Read("T"); !near(r.OK, 5) {
		t.Errorf("%.2f a second after ten seconds of 5", r.OK)
	}
}
