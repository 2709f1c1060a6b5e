package sdk

import (
	"cmp"
	"fmt"
)

// Queue names one queue of a topic: what RocketMQ calls a MessageQueue. It is comparable, so it serves as a map key.
type Queue struct {
	Topic  string `json:"topic"`
	Broker string `json:"broker"` // broker name, not an address
	ID     int32  `json:"id"`
}

// Compare orders queues by topic, then broker name, then numeric id, as MessageQueue.compareTo does.
func (q Queue) Compare(other Queue) int {
	return cmp.Or(cmp.Compare(q.Topic, other.Topic), cmp.Compare(q.Broker, other.Broker), cmp.Compare(q.ID, other.ID))
}

// String is for people: topic/broker/id.
func (q Queue) String() string { return fmt.Sprintf("%s/%s/%d", q.Topic, q.Broker, q.ID) }
