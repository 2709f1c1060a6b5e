package broker

import (
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
)

type topicQueue struct {
	topic string
	queue int32
}

// held is a pull that waits for a message. It is in the table until exactly one of arrival, time-out and disconnection
// takes it out.
type held struct {
	pull  *pull
	timer *time.Timer
}

// holdTable is the held pulls (PullRequestHoldService; consumer-semantics.md 9.1).
type holdTable struct {
	mu     sync.Mutex
	queues map[topicQueue]map[*held]struct{}
	conns  map[*remote.Conn]int // how many pulls are of each
	total  int
	bytes  int // what their filters take, about
}

func newHoldTable() *holdTable {
	return &holdTable{queues: make(map[topicQueue]map[*held]struct{}), conns: make(map[*remote.Conn]int)}
}

// The most pulls that are held, and of one connection: a client has one for each queue that it owns. One more is answered
// as if its time were up.
const (
	maxHeld       = 100_000
	maxHeldOfConn = 20_000
	maxHeldBytes  = 64 << 20
)

// size is what the filter of a held pull takes, about: that is what its client chooses.
func (h *held) size() int { return len(h.pull.expression) + 4*len(h.pull.filter.hashes) }

func (t *holdTable) add(k topicQueue, h *held, timeout time.Duration, expired func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	conn := h.pull.request.Conn
	if t.total >= maxHeld || t.conns[conn] >= maxHeldOfConn || t.bytes+h.size() > maxHeldBytes {
		return false
	}
	t.bytes += h.size()
	t.conns[conn]++
	waiting := t.queues[k]
	if waiting == nil {
		waiting = make(map[*held]struct{})
		t.queues[k] = waiting
	}
	waiting[h] = struct{}{}
	t.total++
	h.timer = time.AfterFunc(timeout, expired)
	return true
}

// take removes h and tells whether it was still there: whoever gets true answers it.
func (t *holdTable) take(k topicQueue, h *held) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.queues[k][h]; !ok {
		return false
	}
	t.removeLocked(k, h)
	return true
}

func (t *holdTable) removeLocked(k topicQueue, h *held) {
	h.timer.Stop()
	delete(t.queues[k], h)
	t.total--
	t.bytes -= h.size()
	conn := h.pull.request.Conn
	if t.conns[conn]--; t.conns[conn] == 0 {
		delete(t.conns, conn)
	}
	if len(t.queues[k]) == 0 {
		delete(t.queues, k)
	}
}

// takeMatching removes the pulls of a queue that match accepts.
func (t *holdTable) takeMatching(k topicQueue, match func(*pull) bool) []*pull {
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken []*pull
	for h := range t.queues[k] {
		if match(h.pull) {
			t.removeLocked(k, h)
			taken = append(taken, h.pull)
		}
	}
	return taken
}

// drop removes the pulls of a connection that ended.
func (t *holdTable) drop(c *remote.Conn) {
	t.removeAll(func(h *held) bool { return h.pull.request.Conn == c })
}

func (t *holdTable) clear() { t.removeAll(func(*held) bool { return true }) }

func (t *holdTable) removeAll(match func(*held) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, waiting := range t.queues {
		for h := range waiting {
			if match(h) {
				t.removeLocked(k, h)
			}
		}
	}
}

// each hands over the pulls that match accepts.
func (t *holdTable) each(match func(*pull) bool, do func(*pull)) {
	t.mu.Lock()
	var keys []topicQueue
	for k := range t.queues {
		keys = append(keys, k)
	}
	t.mu.Unlock()
	for _, k := range keys {
		for _, p := range t.takeMatching(k, match) {
			do(p)
		}
	}
}

func (t *holdTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// hold parks a pull until a message comes that it lets pass, or its time is up.
func (b *Broker) hold(p *pull) {
	p.request.Command.Body = nil // Aliases the connection's buffer; a pull has none that counts.
	p.request.Command.Ext = nil  // Was read.
	if p.filter.sql == nil {
		p.expression = "" // Its hashes count.
	}
	k, h := topicQueue{p.topic, p.queue}, &held{pull: p}
	held := b.holds.add(k, h, time.Duration(p.suspend)*time.Millisecond, func() {
		if b.holds.take(k, h) {
			b.resume(p)
		}
	})
	if !held {
		b.resume(p)
		return
	}
	// A message may have come between the read that found nothing and now.
	if _, next, ok := b.storage.Bounds(p.topic, p.queue); ok && next > p.offset && b.holds.take(k, h) {
		b.resume(p)
	}
}

// resume answers a held pull; it is not held again and commits nothing again.
func (b *Broker) resume(p *pull) {
	p.request.Reply(b.answering(func() *remote.Answer {
		a, _ := b.tryPull(p)
		return a
	}))
	b.changes.happened()
}

// arrived wakes the pulls of a queue that let one of the new messages pass. The others stay until their time is up.
func (b *Broker) arrived(topic string, queue int32, records []store.Record) {
	woken := b.holds.takeMatching(topicQueue{topic, queue}, func(p *pull) bool {
		for _, r := range records {
			if p.filter.accepts(r.TagHash, r.Raw) {
				return true
			}
		}
		return false
	})
	for _, p := range woken {
		b.resume(p)
	}
}
