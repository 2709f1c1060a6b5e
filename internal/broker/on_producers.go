package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onAllProducers is 328: every producer of every group.
func (b *Broker) onAllProducers(*remote.Request) *remote.Answer {
	return jsonBody(wire.ProducerTable{Data: b.members.allProducers()}, wire.Standard)
}

func (t *memberTable) allProducers() map[string][]wire.ProducerInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string][]wire.ProducerInfo, len(t.producers))
	for group, members := range t.producers {
		for _, m := range members {
			all[group] = append(all[group], wire.ProducerInfo{
				ClientID: m.clientID, Language: m.language, SeenMillis: m.seen.UnixMilli(), RemoteIP: "/" + m.conn.Remote().String(), Version: m.version,
			})
		}
	}
	return all
}
