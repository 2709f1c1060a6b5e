package stats

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// span of time that Times looks back over, once it has passed (printTPSInterval of RocketMQ).
const timesSpan = time.Minute

// The upper bounds of what is told apart, and RocketMQ's words for it.
func timeClasses() ([]time.Duration, []string) {
	const ms, s = time.Millisecond, time.Second
	return []time.Duration{0, 10 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms, s, 2 * s, 3 * s, 4 * s, 5 * s, 10 * s},
		[]string{
			"[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]", "[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]",
			"[5~10s]", "[10s~]",
		}
}

const (
	classes = 13
	// Percentiles are looked up in buckets of a millisecond, then ten, then a hundred.
	fine, middle, coarse = 100, 190, 80
)

// Times is how long something took: its most, and its distribution over the last whole minute.
type Times struct {
	mu            sync.Mutex
	most          time.Duration
	minute        int64 // of now
	present, last timesOf
}

type timesOf struct {
	count   int64
	classes [classes]int64
	buckets [fine + middle + coarse + 1]int64
}

// NewTimes begins to count.
func NewTimes() *Times { return new(Times) }

// Add counts one.
func (t *Times) Add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	t.most = max(t.most, took)
	t.present.count++
	t.present.classes[classOf(took.Truncate(time.Millisecond))]++
	t.present.buckets[bucketOf(took.Milliseconds())]++
}

// turn begins a new minute. Whoever holds the mutex calls it.
func (t *Times) turn() {
	minute := time.Now().UnixNano() / int64(timesSpan)
	if minute == t.minute {
		return
	}
	t.last = timesOf{}
	if minute == t.minute+1 {
		t.last = t.present
	}
	t.present, t.minute = timesOf{}, minute
}

// Most is the longest since the beginning, in milliseconds.
func (t *Times) Most() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most.Milliseconds()
}

// Percentile is the time, in milliseconds, that the given share of the last minute's took at most; 0 when there were none.
func (t *Times) Percentile(share float64) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	wanted := max(int64(share*float64(t.last.count)), 1)
	if t.last.count == 0 {
		return 0
	}
	for i, n := range t.last.buckets {
		if wanted -= n; wanted <= 0 {
			return upperOf(i)
		}
	}
	return upperOf(len(t.last.buckets) - 1)
}

// Distribution is that of the last minute, in RocketMQ's form.
func (t *Times) Distribution() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	_, names := timeClasses()
	var b strings.Builder
	for i, n := range t.last.classes {
		fmt.Fprintf(&b, "%s:%d ", names[i], n)
	}
	return b.String()
}

func classOf(took time.Duration) int {
	bounds, names := timeClasses()
	for i, most := range bounds {
		if took < most || i == 0 && took <= 0 {
			return i
		}
	}
	return len(names) - 1
}

func bucketOf(millis int64) int {
	switch {
	case millis < fine:
		return int(max(millis, 0))
	case millis < 2000:
		return fine + int(millis-fine)/10
	case millis < 10_000:
		return fine + middle + int(millis-2000)/100
	}
	return fine + middle + coarse
}

func upperOf(bucket int) float64 {
	switch {
	case bucket < fine:
		return float64(bucket + 1)
	case bucket < fine+middle:
		return float64(fine + (bucket-fine+1)*10)
	}
	return float64(2000 + min(bucket-fine-middle+1, coarse)*100)
}
