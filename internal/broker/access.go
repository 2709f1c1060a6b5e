package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// admit carries a request out unless access control refuses it, with code 16 and the reason as 5.3.3 does. A refused one-way
// request is dropped.
func (b *Broker) admit(r *remote.Request) {
	if b.config.Access != nil {
		if remark, ok := b.config.Access(r.Conn.Remote().Addr(), r.Command); !ok {
			b.config.Logger.Debug("access refused", "peer", r.Conn.Remote().String(), "request", r.Command.RequestCode().String(), "reason", remark)
			r.Reply(plain(wire.RespNoPermission, remark))
			b.changes.happened()
			return
		}
	}
	b.dispatch(r)
}
