package queue

import (
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Identity names the message over all its attempts: ORIGIN_MESSAGE_ID, else its own offset message id (design.md 7), with
// its place when it is part of a stored batch.
// It is made once: call it from whoever has the message.
func (d *Delivery) Identity() string {
	if d.identity == "" {
		var b [64]byte
		d.identity = string(d.AppendIdentity(b[:0]))
	}
	return d.identity
}

// AppendIdentity appends the identity to b.
func (d *Delivery) AppendIdentity(b []byte) []byte {
	if len(d.Props.OriginID) > 0 {
		return append(b, d.Props.OriginID...)
	}
	if d.Part != nil {
		if len(d.Part.origin) > 0 {
			b = append(b, d.Part.origin...)
		} else {
			b = wire.AppendOffsetID(b, d.Msg.StoreHost, d.Msg.LogOffset)
		}
		return strconv.AppendInt(append(b, '#'), int64(d.Part.Index), 10)
	}
	return wire.AppendOffsetID(b, d.Msg.StoreHost, d.Msg.LogOffset)
}

// MessageID is what RocketMQ's tools call the message: UNIQ_KEY, else its own offset message id.
func (d *Delivery) MessageID() string {
	if len(d.Props.UniqKey) > 0 {
		return string(d.Props.UniqKey)
	}
	return string(wire.AppendOffsetID(nil, d.Msg.StoreHost, d.Msg.LogOffset))
}

// OffsetID is the offset message id of this very copy.
func (d *Delivery) OffsetID() string {
	return string(wire.AppendOffsetID(nil, d.Msg.StoreHost, d.Msg.LogOffset))
}

// KeyList is the message's keys as producers set them, separated by spaces.
func (d *Delivery) KeyList() []string { return strings.Fields(string(d.Props.Keys)) }
