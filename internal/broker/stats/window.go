package stats

import "time"

// window is a ring of buckets, each of which counts over one span of time. Its owner guards it.
type window struct {
	span    time.Duration // of one bucket
	head    int64         // number of the newest bucket: time since 1970 divided by span
	buckets []bucket
}

type bucket struct{ sum, times int64 }

func newWindow(span time.Duration, n int) window {
	return window{span: span, buckets: make([]bucket, n)}
}

func (w *window) number(now time.Time) int64 { return now.UnixNano() / int64(w.span) }

// at returns the bucket with a number.
func (w *window) at(number int64) *bucket { return &w.buckets[number%int64(len(w.buckets))] }

// move makes the bucket of now the newest and empties those that were skipped. A clock that steps back counts into the
// newest bucket until it has caught up.
func (w *window) move(now time.Time) {
	number := w.number(now)
	for n := max(w.head+1, number-int64(len(w.buckets))+1); n <= number; n++ {
		*w.at(n) = bucket{}
	}
	w.head = max(w.head, number)
}

func (w *window) add(now time.Time, sum, times int64) {
	w.move(now)
	b := w.at(w.head)
	b.sum += sum
	b.times += times
}

// last adds up the newest n buckets.
func (w *window) last(now time.Time, n int) (total bucket) {
	w.move(now)
	for i := range int64(min(n, len(w.buckets))) {
		b := w.at(w.head - i)
		total.sum += b.sum
		total.times += b.times
	}
	return total
}
