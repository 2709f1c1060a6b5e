package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onClean is 306, 316 and 329, by which tools have a broker remove what expired or belongs to no topic. Here retention
// removes messages with their index as they expire, and a topic's go with the topic, so nothing is ever left over.
func (b *Broker) onClean(*remote.Request) *remote.Answer { return plain(wire.RespSuccess, "") }
