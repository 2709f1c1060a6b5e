package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

const (
	// batchBytes is where a batch is cut. Brokers take up to 4 MiB; smaller ones keep their write lock short.
	batchBytes = 1 << 20
	batchParts = 1024
)

func (o *outgoing) batchSize() int {
	const fixed = 22 // of a part without body and properties (remoting-protocol.md 4.6)
	return fixed + len(o.body) + len(o.properties)
}

// SendBatch stores several messages of one topic in as few requests as it can (320) and waits for the broker's words.
// Messages for the same queue keep their order; those without a fixed queue or sharding key go to one queue together.
// What a batch cannot carry (delays, retry topics) is sent one by one. Parts keep their own ids.
//
// Results stand in the order of ms; one whose Status is 0 was not stored, or its outcome is unknown, and the error (joined
// over the requests that failed) is not nil then. The others are stored.
func (c *Client) SendBatch(ctx context.Context, topic string, ms []*OutgoingMessage) ([]SendResult, error) {
	results := make([]SendResult, len(ms))
	chunks, failed := c.chunks(ctx, topic, ms)
	errs := forEach(chunks, func(lane [][]indexed) error {
		for _, chunk := range lane {
			if err := c.sendChunk(ctx, chunk, results); err != nil {
				return err // the rest of the lane stays behind what failed: order
			}
		}
		return nil
	})
	return results, errors.Join(append(errs, failed)...)
}

// indexed is a message with its place in the caller's list.
type indexed struct {
	*outgoing
	index int
}

func (c *Client) sendChunk(ctx context.Context, chunk []indexed, results []SendResult) error {
	parts := make([]*outgoing, len(chunk))
	for i, o := range chunk {
		parts[i] = o.outgoing
	}
	if len(parts) == 1 {
		if err := c.compress(parts[0]); err != nil {
			return fmt.Errorf("sending message %s: %w", parts[0].id, err)
		}
	}
	sent, err := c.sendParts(ctx, parts)
	if err != nil {
		return fmt.Errorf("sending %d messages from %s on to topic %s: %w", len(parts), parts[0].id, parts[0].topic, err)
	}
	for i, o := range chunk {
		results[o.index] = sent[i]
	}
	return nil
}

// chunks puts messages into lanes, one for each queue that is fixed and one for the free ones; a lane's chunks are sent one
// after the other, lanes side by side. Messages that cannot be sent are in the error.
func (c *Client) chunks(ctx context.Context, topic string, ms []*OutgoingMessage) (lanes [][][]indexed, failed error) {
	byQueue := map[sdk.Queue]*lane{}
	var order []*lane
	for i, m := range ms {
		o, err := c.batchPart(ctx, topic, m)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("message %d of the batch for topic %s: %w", i, topic, err))
			continue
		}
		var key sdk.Queue
		if o.queue != nil {
			key = *o.queue
		}
		if byQueue[key] == nil {
			byQueue[key] = &lane{}
			order = append(order, byQueue[key])
		}
		byQueue[key].add(indexed{o, i})
	}
	for _, l := range order {
		lanes = append(lanes, l.chunks)
	}
	return lanes, failed
}

// batchPart prepares one message. A sharding key is turned into its queue.
func (c *Client) batchPart(ctx context.Context, topic string, m *OutgoingMessage) (*outgoing, error) {
	if m.Topic != topic {
		return nil, fmt.Errorf("%w: it is for topic %s", ErrInvalidMessage, m.Topic)
	}
	o, err := c.prepare(m)
	if err != nil || o.queue != nil || o.sharding == "" {
		return o, err
	}
	to, err := c.place(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	o.queue = &to.queue
	return o, nil
}

// lane is the messages of one queue, cut into chunks.
type lane struct {
	chunks [][]indexed
	bytes  int
	open   bool // the last chunk takes more
}

func (l *lane) add(o indexed) {
	batchable := !o.timer && !o.delayed && !wire.IsRetryTopic(o.topic)
	size := o.batchSize()
	last := len(l.chunks) - 1
	if batchable && l.open && l.bytes+size <= batchBytes && len(l.chunks[last]) < batchParts {
		l.chunks[last] = append(l.chunks[last], o)
		l.bytes += size
		return
	}
	l.chunks = append(l.chunks, []indexed{o})
	l.bytes, l.open = size, batchable
}
