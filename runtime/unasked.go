package runtime

import "github.com/streamd/streamd/internal/rocketmq"

// tellUnasked says, once, that access control keeps members from asking each other: then a new owner does not wait for the old
// one, and nobody sees that another member divides the queues otherwise.
func (m *member) tellUnasked(err error) {
	if _, refused := rocketmq.AccessRefused(err); refused && !m.unasked.Swap(true) {
		m.s.log.Warn("members may not be asked what they hold; until they may, a queue that changes its owner may repeat what was in flight", "error", err.Error())
	}
}
