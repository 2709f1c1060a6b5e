package settle

import (
	"cmp"
	"slices"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// Backoff paces the tries of a message in place: First after the first failure, twice as long after each further one, at
// most Most.
type Backoff struct{ First, Most time.Duration }

// leastPause is the shortest pause between two tries in place, also when the handler wishes for less (Java clamps to the
// same; consumer-semantics.md 6.3).
const leastPause = 10 * time.Millisecond

// wait is the pause after a failed attempt. The handler's wish for a delay is kept to: nothing rounds it in place.
func (b Backoff) wait(attempts int, wish time.Duration) time.Duration {
	if wish > 0 {
		return max(leastPause, wish)
	}
	d := b.First
	for range attempts - 1 {
		if d >= b.Most {
			break
		}
		d *= 2
	}
	return max(leastPause, min(d, b.Most))
}

// Head is a message that failed and is tried again in place. In an ordered queue what follows waits for it.
type Head struct {
	Queue   sdk.Queue `json:"queue"`
	Offset  int64     `json:"offset"`
	Message string    `json:"msg_id"` // its identity
	// Key is the key whose messages wait behind it; empty: those of the whole queue do, or none in a stream without order.
	Key     string    `json:"key,omitempty"`
	Attempt int       `json:"attempt"` // the last one made
	Since   time.Time `json:"since"`   // its first failure here
	Next    time.Time `json:"next"`    // the next try; in the past while it is being tried
	Blocked bool      `json:"blocked,omitempty"`
	Text    string    `json:"text"` // how the last attempt failed
}

// maxHeads bounds the list of heads: a stream without order may have thousands.
const maxHeads = 1000

type headID struct {
	own    *queue.Ownership
	offset int64
}

func idOf(d *queue.Delivery) headID { return headID{own: d.Own, offset: d.Offset} }

// Heads lists the messages that are tried in place, in the order of their queues and offsets: at most 1,000.
func (s *Settler) Heads() []Head {
	s.mu.Lock()
	heads := make([]Head, 0, len(s.heads))
	for _, h := range s.heads {
		heads = append(heads, h)
	}
	s.mu.Unlock()
	slices.SortFunc(heads, func(a, b Head) int {
		return cmp.Or(a.Queue.Compare(b.Queue), cmp.Compare(a.Offset, b.Offset))
	})
	return heads
}

// Release tells that a queue goes: what waits for its next try in place is given up at once, so that no hand-over waits
// for a pause. It never blocks.
func (s *Settler) Release(o *queue.Ownership) {
	s.mu.Lock()
	s.released = append(s.released, o)
	s.mu.Unlock()
	s.poke()
}

// release drops what waits to be tried in place of queues that go.
func (s *Settler) release() {
	s.mu.Lock()
	gone := s.released
	s.released = nil
	for id := range s.heads {
		if slices.Contains(gone, id.own) {
			delete(s.heads, id)
		}
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	var dropped []*Job
	s.waiting.remove(func(j *Job) bool {
		drop := j.step.Kind == StepAgain && j.first().Own.Closing()
		if drop {
			dropped = append(dropped, j)
		}
		return drop
	})
	for _, j := range dropped {
		s.drop(j)
	}
	for _, c := range s.bulkheads.remove(func(c *call) bool { return !c.job.live() }) { // a broker that is silent may keep them for long
		s.after(c)
	}
}

// inPlace tells whether a failed message is tried in place.
func (s *Settler) inPlace(d *queue.Delivery) bool {
	p := s.cfg.Policy()
	return p.InPlace || d.Own.Ordered() || s.cfg.Now().Before(p.SendBackFrom)
}

// note keeps the list of heads: a message is on it from its first failure to its end, also while it is being tried.
func (s *Settler) note(j *Job) {
	d := j.first()
	t := d.Trial()
	now := s.cfg.Now()
	if t.Failed.IsZero() {
		t.Failed = now
	}
	j.since = t.Failed
	h := Head{
		Queue: d.Queue(), Offset: d.Offset, Message: d.Identity(), Attempt: d.Attempt, Since: t.Failed, Next: now.Add(j.step.Wait),
		Blocked: j.step.Blocked, Text: j.step.Why,
	}
	if d.Own.Order == queue.OrderKey {
		h.Key = string(d.OrderKey())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.heads[idOf(d)]; known || len(s.heads) < maxHeads {
		s.heads[idOf(d)] = h
	}
}

// unnote takes a message off the list that is settled, or not tried in place any more.
func (s *Settler) unnote(d *queue.Delivery) {
	if !d.Retried() {
		return
	}
	s.mu.Lock()
	delete(s.heads, idOf(d))
	s.mu.Unlock()
}
