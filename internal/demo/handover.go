package demo

import (
	"strings"
	"sync"
	"time"
)

// handover follows the queues of the topic from one owner to the next, by what the members log. It is safe for concurrent
// use.
type handover struct {
	mu        sync.Mutex
	released  map[string]time.Time // by queue
	assigned  map[string]time.Time
	confirmed map[string]bool // whether the broker has confirmed the offset it was released with
}

func newHandover() *handover {
	h := &handover{}
	h.reset()
	return h
}

// reset begins to count anew.
func (h *handover) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released, h.assigned, h.confirmed = map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}
}

func (h *handover) assign(queue string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(queue, topic+"/") { // the retry topic's queue is not shown
		h.assigned[queue] = at
	}
}

func (h *handover) release(queue string, at time.Time, confirmed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(queue, topic+"/") {
		h.released[queue], h.confirmed[queue] = at, confirmed
	}
}

// moved tells how many queues changed their owner, and the longest time one had none.
func (h *handover) moved() (n int, gap time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q, from := range h.released {
		if to, ok := h.assigned[q]; ok && !to.Before(from) {
			n++
			gap = max(gap, to.Sub(from))
		}
	}
	return n, gap
}

// commits tells how many queues were released with their offset confirmed, and how many at all.
func (h *handover) commits() (confirmed, released int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ok := range h.confirmed {
		if ok {
			confirmed++
		}
	}
	return confirmed, len(h.confirmed)
}
