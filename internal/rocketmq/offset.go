package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Committed returns the offset that the broker stores for a group and queue: the next one to consume. ok is false only
// when the broker says that it stores none (22); an error says nothing about the offset.
//
// The broker is told not to answer 0 for a young queue without an offset (setZeroIfNotFound=false, from 5.0), so ok is the
// truth. A 4.9 broker does not know the field: for a queue whose first message is still near the end of its log, and for
// an empty one, it answers 0 as if 0 were stored (consumer-semantics.md 2.7). There each answer of 0 is looked up in the
// table of what the broker stores (43), so that ok is the truth as well.
func (c *Client) Committed(ctx context.Context, group string, q sdk.Queue) (offset int64, ok bool, err error) {
	var answer wire.OffsetResponse
	err = c.ask(ctx, inQueue(q, &wire.QueryOffsetRequest{
		Group: group, Topic: q.Topic, QueueID: q.ID, SetZeroIfNotFound: wire.Some(false), Common: named(q.Broker),
	}), &answer)
	var resp *ResponseError
	switch {
	case errors.As(err, &resp) && resp.Code == wire.RespQueryNotFound:
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("asking for the offset of %s in %s: %w", group, q, err)
	case answer.Offset == 0 && c.answersZero(q.Broker):
		if offset, ok, err = c.storedZero(ctx, group, q); err != nil {
			err = fmt.Errorf("asking whether offset 0 of %s in %s is stored: %w", group, q, err)
		}
		return offset, ok, err
	}
	return answer.Offset, answer.Offset >= 0, nil
}

// Commit stores an offset and waits for the broker's word. reset is true when the broker ignored it because a reset waits
// to be picked up by a pull (from 5.1.0): it answers success then, and says so only in its remark.
func (c *Client) Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (reset bool, err error) {
	reply, err := c.onMaster(ctx, inQueue(q, &wire.UpdateOffsetRequest{
		Group: group, Topic: q.Topic, QueueID: q.ID, Offset: offset, Common: named(q.Broker),
	}))
	if err != nil {
		return false, fmt.Errorf("committing offset %d of %s in %s: %w", offset, group, q, err)
	}
	defer reply.Release()
	return strings.Contains(reply.Remark, "previously reset"), nil
}

// MinOffset returns the first offset that can be read. A broker answers 0 for a queue it does not have.
func (c *Client) MinOffset(ctx context.Context, q sdk.Queue) (int64, error) {
	return c.offsetOf(ctx, "minimum", q, &wire.MinOffsetRequest{Topic: q.Topic, QueueID: q.ID, Common: named(q.Broker)})
}

// MaxOffset returns the next offset to be written. A broker answers 0 for a queue it does not have.
func (c *Client) MaxOffset(ctx context.Context, q sdk.Queue) (int64, error) {
	return c.offsetOf(ctx, "maximum", q, &wire.MaxOffsetRequest{
		Topic: q.Topic, QueueID: q.ID, Committed: wire.Some(true), Common: named(q.Broker),
	})
}

// OffsetAt returns the first offset that was stored at or after a time; the maximum when there is none. Brokers before
// 5.1.0 answer the entry nearest in time instead, and the last offset for a time after it (remoting-protocol.md 2.7).
func (c *Client) OffsetAt(ctx context.Context, q sdk.Queue, at time.Time) (int64, error) {
	return c.offsetOf(ctx, "time's", q, &wire.SearchOffsetRequest{
		Topic: q.Topic, QueueID: q.ID, Millis: at.UnixMilli(), Boundary: wire.Some(wire.BoundaryLower), Common: named(q.Broker),
	})
}

func (c *Client) offsetOf(ctx context.Context, what string, q sdk.Queue, header wire.Request) (int64, error) {
	var answer wire.OffsetResponse
	if err := c.ask(ctx, inQueue(q, header), &answer); err != nil {
		return 0, fmt.Errorf("asking for the %s offset of %s: %w", what, q, err)
	}
	if answer.Offset < 0 {
		return 0, fmt.Errorf("asking for the %s offset of %s: %w: offset %d", what, q, ErrProtocol, answer.Offset)
	}
	return answer.Offset, nil
}
