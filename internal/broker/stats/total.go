package stats

import (
	"sync"
	"time"
)

// Total is one number that only grows, with its rate over the last ten minutes at most and where it stood at the last two
// midnights, local time.
type Total struct {
	mu               sync.Mutex
	since            time.Time
	value            int64
	seconds          window
	day              string
	today, yesterday int64 // value at their midnights
}

// The spans that brokers give rates for.
const (
	tenSeconds = 10
	oneMinute  = 60
	tenMinutes = 600
)

// NewTotal begins to count.
func NewTotal() *Total {
	now := time.Now()
	return &Total{since: now, seconds: newWindow(time.Second, tenMinutes+1), day: dayOf(now)}
}

func dayOf(t time.Time) string { return t.Format(time.DateOnly) }

// Add counts n.
func (t *Total) Add(n int64) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	t.value += n
	t.seconds.add(now, n, 1)
}

// turn notes the value at midnight. A day without a word has the value of the one before.
func (t *Total) turn(now time.Time) {
	day := dayOf(now)
	if day == t.day {
		return
	}
	t.yesterday = t.today
	if t.day != dayOf(now.AddDate(0, 0, -1)) {
		t.yesterday = t.value
	}
	t.today, t.day = t.value, day
}

// Value is the number now.
func (t *Total) Value() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.value
}

// Mornings is what the number was at the last midnight and at the one before.
func (t *Total) Mornings() (today, yesterday int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(time.Now())
	return t.today, t.yesterday
}

// Rates is the number a second over the last ten seconds, minute and ten minutes. The present second, which is not over,
// is left out.
func (t *Total) Rates() [3]float64 {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var rates [3]float64
	open := t.seconds.last(now, 1)
	age := max(int(now.Sub(t.since)/time.Second), 1)
	for i, span := range []int{tenSeconds, oneMinute, tenMinutes} {
		sum := t.seconds.last(now, span+1).sum - open.sum
		rates[i] = float64(sum) / float64(min(span, age))
	}
	return rates
}
