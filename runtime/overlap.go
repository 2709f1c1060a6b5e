package runtime

import (
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
)

// overlaps knows the queues that another member was seen to have while this one had them: where the ownership overlaps it
// is named and counted (design.md 1.3). The member's mutex guards it.
type overlaps struct {
	count uint64
	told  map[Queue]uint64 // epoch of the ownership here that was told of
}

// noteOverlaps looks for queues that another member lists as its own and that are still here. A new owner takes a queue
// only after its release here, so that both having it is never a clean hand-over.
func (m *member) noteOverlaps(id string, info *wire.ConsumerRunningInfo) {
	p, err := ParsePeerInfo(info)
	if err != nil || m.s.config().Broadcasting {
		return // not a streamd: nobody can tell; or all have all
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues { // as they stand after the other's word
		theirs := p.Queues[q.Queue.String()].State
		if q.State == group.Waiting || theirs != string(group.Owned) && theirs != string(group.Draining) || m.overlaps.told[q.Queue] == q.Epoch {
			continue
		}
		m.overlaps.count++
		m.overlaps.told[q.Queue] = q.Epoch
		m.s.log.Warn("two members have one queue; its messages may be handled twice until one gives it up", "queue", q.Queue.String(), "member", id, "state_here", string(q.State), "state_there", theirs)
	}
}
