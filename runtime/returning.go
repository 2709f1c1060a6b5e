package runtime

import (
	"slices"
	"time"

	"github.com/streamd/streamd/runtime/internal/group"
)

const (
	// returnGrace is how long after a broker came back it counts as one that may not list everybody: a broker that restarted
	// lists who has come back already, and its members come back within two seconds of each other as a rule, each on its own.
	returnGrace = 5 * time.Second
	// heldAfter is how long a member that is listed no more is still asked what it holds: longer than it takes until a list is
	// asked for again.
	heldAfter = 2 * group.Period
)

// returning is what is known of members that a broker does not list for the moment. The member's mutex guards it.
type returning struct {
	began, last time.Time            // when brokers came back: the first in a row, and the last
	listed      map[string]time.Time // by member: when it was listed last
}

// broker notes that one came back. Several in a row, or one that comes and goes, are waited for once.
func (r *returning) broker(now time.Time) {
	if r.began.IsZero() || now.Sub(r.last) >= returnGrace {
		r.began = now
	}
	r.last = now
}

func (r *returning) note(ids []string, now time.Time) {
	if r.listed == nil {
		r.listed = map[string]time.Time{}
	}
	for _, id := range ids {
		r.listed[id] = now
	}
	for id, at := range r.listed {
		if now.Sub(at) >= heldAfter {
			delete(r.listed, id)
		}
	}
}

// awaited lists the other members that were listed for a topic before and are not in ids, while a broker has only just come
// back: they are as good as there. Without them their queues would be divided anew while they still work on them.
func (m *member) awaited(topic string, ids []string) (missing []string) {
	self := m.s.broker.ClientID()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.returning.began.IsZero() || m.s.rt.Now().Sub(m.returning.began) >= returnGrace {
		return nil
	}
	for _, id := range m.ids[topic] {
		if id != self && !slices.Contains(ids, id) && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// mayHold lists the other members, and those that were listed a moment ago: a member that lost its connection to one broker
// is gone from that broker's list at once, and has its queues still. Another broker reaches it; one that has ended, none does.
func (m *member) mayHold() []string {
	ids := m.others()
	self, now := m.s.broker.ClientID(), m.s.rt.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.returning.listed {
		if id != self && now.Sub(at) < heldAfter {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
