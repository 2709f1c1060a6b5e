// Package rates counts what a member did lately, topic by topic, as RocketMQ's tools show it of a consumer
// (ConsumerStatsManager, ConsumeStatus): rates and mean times over the last minute, failures over the last hour.
//
// A Table is safe for concurrent use. It is called once for each pull and each batch of verdicts, so it does nothing but
// add under a mutex that guards memory only.
package rates

import (
	"sync"
	"time"
)

// Table holds the counts of a member.
type Table struct {
	now func() time.Time

	mu     sync.Mutex
	topics map[string]*topic
}

// Reading is what a topic's counts come to. Rates are per second, times are means.
type Reading struct {
	PullTime    time.Duration // of the pulls that brought messages, the broker's hold included
	Pulled      float64       // messages
	ConsumeTime time.Duration // of a message at its handler
	OK, Failed  float64       // messages
	FailedHour  int64         // messages, in the last hour
}

const (
	step    = 5 * time.Second // the width of a slot
	minute  = time.Minute
	slots   = int(minute / step)
	minutes = 60
)

type topic struct {
	since  time.Time // of the first count
	slots  [slots]slot
	failed [minutes]failures
}

type slot struct {
	at                     int64 // number of the step since the epoch
	pulls, pulled          int64
	ok, failed             int64
	pullTime, consumeTimes time.Duration
}

type failures struct {
	at int64 // number of the minute
	n  int64
}

// New makes an empty table; now tells the time.
func New(now func() time.Time) *Table { return &Table{now: now, topics: map[string]*topic{}} }

// Pulled counts a pull that brought messages and took so long.
func (t *Table) Pulled(name string, messages int, took time.Duration) {
	if messages <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(name)
	s.pulls++
	s.pulled += int64(messages)
	s.pullTime += took
}

// Consumed counts n messages that were acknowledged after took each.
func (t *Table) Consumed(name string, n int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(name)
	s.ok += int64(n)
	s.consumeTimes += time.Duration(n) * took
}

// Failed counts a message that was not, after took.
func (t *Table) Failed(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(name)
	s.failed++
	s.consumeTimes += took
	number := t.now().Unix() / 60
	f := &t.topics[name].failed[number%minutes]
	if f.at != number {
		*f = failures{at: number}
	}
	f.n++
}

// slot is the present one of a topic. The caller holds mu.
func (t *Table) slot(name string) *slot {
	now := t.now()
	one := t.topics[name]
	if one == nil {
		one = &topic{since: now}
		t.topics[name] = one
	}
	number := now.UnixNano() / int64(step)
	s := &one.slots[number%int64(slots)]
	if s.at != number {
		*s = slot{at: number}
	}
	return s
}

// Read tells what a topic's counts come to now.
func (t *Table) Read(name string) (r Reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.topics[name]
	if one == nil {
		return r
	}
	now := t.now()
	last := now.UnixNano() / int64(step)
	var sum slot
	for i := range one.slots {
		if s := &one.slots[i]; s.at > last-int64(slots) && s.at <= last {
			sum.add(s)
		}
	}
	number := now.Unix() / 60
	for i := range one.failed {
		if f := &one.failed[i]; f.at > number-minutes && f.at <= number {
			r.FailedHour += f.n
		}
	}
	// The window ends now and begins with the oldest slot that counts, or with the first count.
	begins := time.Unix(0, (last-int64(slots)+1)*int64(step))
	if one.since.After(begins) {
		begins = one.since
	}
	sum.into(&r, max(now.Sub(begins), time.Second))
	return r
}

func (s *slot) add(o *slot) {
	s.pulls += o.pulls
	s.pulled += o.pulled
	s.ok += o.ok
	s.failed += o.failed
	s.pullTime += o.pullTime
	s.consumeTimes += o.consumeTimes
}

func (s *slot) into(r *Reading, window time.Duration) {
	r.Pulled, r.OK, r.Failed = float64(s.pulled)/window.Seconds(), float64(s.ok)/window.Seconds(), float64(s.failed)/window.Seconds()
	if s.pulls > 0 {
		r.PullTime = s.pullTime / time.Duration(s.pulls)
	}
	if n := s.ok + s.failed; n > 0 {
		r.ConsumeTime = s.consumeTimes / time.Duration(n)
	}
}
