package stats

import (
	"maps"
	"sync"
	"time"
)

// Name is what is counted, in RocketMQ's words.
type Name string

// The names that 315 is asked for. Keys are a topic, or topic@group.
const (
	TopicPutNums  Name = "TOPIC_PUT_NUMS"
	TopicPutSize  Name = "TOPIC_PUT_SIZE"
	GroupGetNums  Name = "GROUP_GET_NUMS"
	GroupGetSize  Name = "GROUP_GET_SIZE"
	SendBackNums  Name = "SNDBCK_PUT_NUMS"
	BrokerPutNums Name = "BROKER_PUT_NUMS"
	BrokerGetNums Name = "BROKER_GET_NUMS"
)

// Span is a statistic over one span of time.
type Span struct {
	Sum     int64
	PerSec  float64
	Average float64 // of one event
}

// Spans is a statistic over the last minute, hour and day. The youngest part of each is not complete yet.
type Spans struct{ Minute, Hour, Day Span }

type key struct {
	name Name
	key  string
}

// item counts one key.
type item struct {
	mu                sync.Mutex
	since             time.Time
	minute, hour, day window
}

func newItem(now time.Time) *item {
	return &item{
		since: now, minute: newWindow(10*time.Second, 6), hour: newWindow(10*time.Minute, 6), day: newWindow(time.Hour, 24),
	}
}

// Table is the statistics of one broker.
type Table struct {
	limit int

	mu    sync.RWMutex
	items map[key]*item
}

// NewTable makes a table that counts at most limit keys; further ones are not counted.
func NewTable(limit int) *Table { return &Table{limit: limit, items: make(map[key]*item)} }

// Add counts sum, which came with so many events.
func (t *Table) Add(name Name, of string, sum, times int64) {
	now := time.Now()
	i := t.item(key{name, of}, now)
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range []*window{&i.minute, &i.hour, &i.day} {
		w.add(now, sum, times)
	}
}

func (t *Table) item(k key, now time.Time) *item {
	t.mu.RLock()
	i := t.items[k]
	t.mu.RUnlock()
	if i != nil {
		return i
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i = t.items[k]; i == nil && len(t.items) < t.limit {
		i = newItem(now)
		t.items[k] = i
	}
	return i
}

// Get returns a statistic; false when nothing was ever counted under this name and key.
func (t *Table) Get(name Name, of string) (Spans, bool) {
	t.mu.RLock()
	i := t.items[key{name, of}]
	t.mu.RUnlock()
	if i == nil {
		return Spans{}, false
	}
	now := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	return Spans{
		Minute: i.spanOf(&i.minute, now, time.Minute), Hour: i.spanOf(&i.hour, now, time.Hour), Day: i.spanOf(&i.day, now, 24*time.Hour),
	}, true
}

// spanOf divides by the time that was counted, which is less than whole at first.
func (i *item) spanOf(w *window, now time.Time, whole time.Duration) Span {
	total := w.last(now, len(w.buckets))
	counted := min(max(now.Sub(i.since), time.Second), whole)
	s := Span{Sum: total.sum, PerSec: float64(total.sum) / counted.Seconds()}
	if total.times > 0 {
		s.Average = float64(total.sum) / float64(total.times)
	}
	return s
}

// Forget drops the statistics whose key match accepts: those of a topic or group that was deleted.
func (t *Table) Forget(match func(of string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.items, func(k key, _ *item) bool { return match(k.key) })
}
