package broker

import (
	"slices"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
)

// armLocked makes sure that a timer looks for members that have gone silent.
func (t *memberTable) armLocked(after time.Duration) {
	if t.expiry == nil {
		t.expiry = time.AfterFunc(after, t.expire)
	}
}

// expire drops the members without a heartbeat for too long and arms the timer for the next that may be.
func (t *memberTable) expire() {
	t.mu.Lock()
	t.expiry = nil
	var conns []*remote.Conn
	silent := func(m member) bool {
		if time.Since(m.seen) < t.ttl {
			return false
		}
		if !slices.Contains(conns, m.conn) {
			conns = append(conns, m.conn)
		}
		return true
	}
	groups := t.removeLocked(silent)
	if oldest, ok := t.oldestLocked(); ok {
		t.armLocked(t.ttl - time.Since(oldest))
	}
	t.mu.Unlock()
	if len(conns) > 0 && t.expired != nil {
		t.expired(groups, conns)
	}
}

func (t *memberTable) oldestLocked() (oldest time.Time, ok bool) {
	look := func(members []member) {
		for _, m := range members {
			if !ok || m.seen.Before(oldest) {
				oldest, ok = m.seen, true
			}
		}
	}
	for _, g := range t.consumers {
		look(g.members)
	}
	for _, p := range t.producers {
		look(p)
	}
	return oldest, ok
}

// onExpired tells those who stay and closes the connections of those who went silent, as RocketMQ does.
func (b *Broker) onExpired(groups []string, conns []*remote.Conn) {
	b.notify(groups)
	defer b.changes.happened()
	for _, c := range conns {
		c.Close()
	}
}
