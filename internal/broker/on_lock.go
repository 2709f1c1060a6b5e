package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onLock is 41: the queues that the client now holds, with success even when that is none.
func (b *Broker) onLock(r *remote.Request) *remote.Answer {
	var body wire.LockBody
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	return jsonBody(wire.LockResult{Queues: b.locks.lock(body.Group, body.ClientID, body.Queues)}, wire.Standard)
}

// onUnlock is 42.
func (b *Broker) onUnlock(r *remote.Request) *remote.Answer {
	var body wire.LockBody
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	b.locks.unlock(body.Group, body.ClientID, body.Queues)
	return plain(wire.RespSuccess, "")
}
