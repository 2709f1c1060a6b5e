package rocketmq

import (
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The fields of a heartbeat's answer by which a broker takes part in heartbeat V2 (5.1.3; remoting-protocol.md 2.4).
const (
	fieldHeartbeatV2 = "IS_SUPPORT_HEART_BEAT_V2"
	fieldSubChange   = "IS_SUB_CHANGE"
)

// told remembers what a broker was told of the subscriptions on the present connection, so that heartbeats can leave them
// out. Anything in doubt (a new connection, a change of ours, the broker's word that it knows others) is told in full.
type told struct {
	mu   sync.Mutex
	on   *remoting.Conn // where it said so; an answer may still come on a connection that drains, when there is a newer one
	able bool           // the broker says that it takes heartbeats without subscriptions
	full string         // the last heartbeat that it took in full; empty = it has to be told
}

// encode writes a heartbeat for a connection in the shortest form that the broker understands. full is its full form. The full form has the
// fingerprint from the first heartbeat on, as Java's: older brokers do not look at it.
func (t *told) encode(on *remoting.Conn, data *wire.HeartbeatData) (body []byte, full string, err error) {
	if data.HeartbeatFingerprint, err = data.Fingerprint(); err != nil {
		return nil, "", err
	}
	if body, err = wire.EncodeBody(data, wire.Standard); err != nil {
		return nil, "", err
	}
	full = string(body)
	t.mu.Lock()
	short := t.on == on && t.able && t.full == full
	t.mu.Unlock()
	if !short {
		return body, full, nil
	}
	body, err = wire.EncodeBody(withoutSubscriptions(data), wire.Standard)
	return body, full, err
}

func withoutSubscriptions(data *wire.HeartbeatData) *wire.HeartbeatData {
	short := *data
	short.WithoutSub = true
	short.ConsumerDataSet = make([]wire.ConsumerData, len(data.ConsumerDataSet))
	for i, c := range data.ConsumerDataSet {
		c.SubscriptionDataSet = []wire.SubscriptionData{}
		short.ConsumerDataSet[i] = c
	}
	return &short
}

// took notes the broker's answer, on a connection, to a heartbeat whose full form is full.
func (t *told) took(on *remoting.Conn, full string, answer wire.Fields) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.able, t.full = on, answer.Get(fieldHeartbeatV2) == "true", full
	if answer.Get(fieldSubChange) != "false" { // another member told it something else, or it says nothing
		t.full = ""
	}
}

func (t *told) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.able, t.full = nil, false, ""
}
