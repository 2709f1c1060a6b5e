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

// epochs is what this member has, each queue with the epoch of its ownership.
func (m *member) epochs() map[Queue]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := make(map[Queue]uint64, len(m.queues))
	for _, q := range m.queues {
		if q.State != group.Waiting {
			had[q.Queue] = q.Epoch
		}
	}
	return had
}

// noteOverlaps looks for queues that another member lists as its own and that are still here. Had is what was here before the
// other was asked: a queue that came later may have been the other's when it answered. A new owner takes a queue only after
// its release here, so that both having it is never a clean hand-over.
func (m *member) noteOverlaps(had map[Queue]uint64, id string, info *wire.ConsumerRunningInfo) {
	p, err := ParsePeerInfo(info)
	if err != nil || m.s.config().Broadcasting {
		return // not a streamd: nobody can tell; or all have all
	}
	now := m.epochs()
	m.mu.Lock()
	defer m.mu.Unlock()
	for q, epoch := range had {
		theirs := p.Queues[q.String()].State
		if now[q] != epoch || theirs != string(group.Owned) && theirs != string(group.Draining) || m.overlaps.told[q] == epoch {
			continue
		}
		m.overlaps.count++
		m.overlaps.told[q] = epoch
		m.s.log.Warn("two members have one queue; its messages may be handled twice until one gives it up", "queue", q.String(), "member", id, "state_there", theirs)
	}
}
