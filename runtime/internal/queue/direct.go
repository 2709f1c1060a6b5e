package queue

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// NewDirect makes a message that an operator sends to the handler (309): it is of no owned queue and never settled; answer
// takes its verdict and must not block.
func NewDirect(q sdk.Queue, m *wire.Message, answer func(frame.Verdict)) (*Ownership, []Delivery) {
	own := NewOwnership(q, 0, m.QueueOffset, nil, make(chan struct{}, 1))
	d := Delivery{
		Own: own, Offset: m.QueueOffset, StoreMillis: m.StoreMillis, Attempt: m.Attempt(), Topic: q.Topic, Body: m.Body, Props: ScanProperties(m.Properties),
		BornMillis: m.BornMillis, LogOffset: m.LogOffset, storeHost: &m.StoreHost, msg: m, Direct: answer,
	}
	if topic := d.Props.RetryTopic(); len(topic) > 0 {
		d.Topic = string(topic)
	}
	if m.IsCompressed() {
		if body, err := wire.NewInflater(mostInflated).AppendBody(nil, m); err == nil {
			d.Body = body
		}
	}
	ds := []Delivery{d}
	own.Admit(ds, m.QueueOffset+1, time.Time{})
	return own, ds
}

// End ends the epoch: a late verdict changes nothing. It returns the safe offset.
func (o *Ownership) End() (safe int64) {
	safe, _ = o.fence()
	return safe
}

// Close tells that the queue goes: nothing of it is sent to a handler any more.
func (o *Ownership) Close() { o.closing.Store(true) }
