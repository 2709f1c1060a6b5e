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
	own := newOwnership(q, 0, m.QueueOffset, nil, make(chan struct{}, 1))
	d := Delivery{Msg: *m, Body: m.Body, Props: ScanProperties(m.Properties), Own: own, Queue: q, Offset: m.QueueOffset, Attempt: m.Attempt(), Direct: answer}
	d.Topic = q.Topic
	if len(d.Props.RetryTopic) > 0 {
		d.Topic = string(d.Props.RetryTopic)
	}
	if m.IsCompressed() {
		if body, err := wire.NewInflater(mostInflated).AppendBody(nil, m); err == nil {
			d.Body = body
		}
	}
	c := &Chunk{Deliveries: []Delivery{d}}
	own.window.Admit(c, m.QueueOffset+1, time.Time{})
	return own, c.Deliveries
}

// End ends the ownership of a direct message: a late verdict changes nothing.
func (o *Ownership) End() { o.fence() }
