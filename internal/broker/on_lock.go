package broker

import (
	"encoding/json"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

type lockBody struct {
	ClientID string     `json:"clientId"`
	Group    string     `json:"consumerGroup"`
	Queues   []queueRef `json:"mqSet"`
}

// onLock is 41: the queues that the client now holds, with success even when that is none.
func (b *Broker) onLock(r *remote.Request) *remote.Answer {
	var body lockBody
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	return jsonBody(struct {
		OK []queueRef `json:"lockOKMQSet"`
	}{b.locks.lock(body.Group, body.ClientID, body.Queues)})
}

// onUnlock is 42.
func (b *Broker) onUnlock(r *remote.Request) *remote.Answer {
	var body lockBody
	if bad := readBody(r, &body); bad != nil {
		return bad
	}
	b.locks.unlock(body.Group, body.ClientID, body.Queues)
	return plain(wire.RespSuccess, "")
}

// readBody reads a JSON body; the answer is nil if that worked.
func readBody(r *remote.Request, into any) *remote.Answer {
	if err := json.Unmarshal(r.Command.Body, into); err != nil {
		return plain(wire.RespSystemError, "the request's body cannot be read: "+err.Error())
	}
	return nil
}

// jsonBody is a success without header class whose body is v.
func jsonBody(v any) *remote.Answer {
	body, err := json.Marshal(v)
	if err != nil {
		return plain(wire.RespSystemError, "the answer's body cannot be written: "+err.Error())
	}
	return withBody(body)
}
