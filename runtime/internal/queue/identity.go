package queue

import (
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Identity names the message over all its attempts: ORIGIN_MESSAGE_ID, else its own offset message id (design.md 7), with
// its place when it is part of a stored batch.
func (d *Delivery) Identity() string {
	var b [64]byte
	return string(d.AppendIdentity(b[:0]))
}

// AppendIdentity appends the identity to b.
func (d *Delivery) AppendIdentity(b []byte) []byte {
	if id := d.Props.OriginID(); len(id) > 0 {
		return append(b, id...)
	}
	if d.Part != nil {
		if len(d.Part.origin) > 0 {
			b = append(b, d.Part.origin...)
		} else {
			b = wire.AppendOffsetID(b, d.StoreHost(), d.LogOffset)
		}
		return strconv.AppendInt(append(b, '#'), int64(d.Part.Index), 10)
	}
	return wire.AppendOffsetID(b, d.StoreHost(), d.LogOffset)
}

// MessageID is what RocketMQ's tools call the message: UNIQ_KEY, else its own offset message id.
func (d *Delivery) MessageID() string {
	if id := d.Props.UniqKey(); len(id) > 0 {
		return string(id)
	}
	return string(wire.AppendOffsetID(nil, d.StoreHost(), d.LogOffset))
}

// OffsetID is the offset message id of this very copy.
func (d *Delivery) OffsetID() string {
	return string(wire.AppendOffsetID(nil, d.StoreHost(), d.LogOffset))
}

// KeyList is the message's keys as producers set them, separated by spaces.
func (d *Delivery) KeyList() []string { return strings.Fields(string(d.Props.Keys())) }
