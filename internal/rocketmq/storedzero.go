package rocketmq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// storedZeros tells a stored offset 0 from the 0 that a broker before 5.0 answers when it has none (see Committed). Only the
// table of all its offsets (43) shows the difference, so it is asked for seldom, and one answer serves all who wait for it.
type storedZeros struct {
	mu     sync.Mutex
	tables map[zeroKey]*zeroTable
}

type zeroKey struct{ broker, group string }

// zeroTable is what a broker stored for a group when it was asked last.
type zeroTable struct {
	turn  chan struct{} // has room for one: who asks, or looks at what was answered
	asked time.Time     // when the request was sent
	table wire.GroupOffsets
}

func (z *storedZeros) of(key zeroKey) *zeroTable {
	z.mu.Lock()
	defer z.mu.Unlock()
	t := z.tables[key]
	if t == nil {
		if z.tables == nil {
			z.tables = map[zeroKey]*zeroTable{}
		}
		t = &zeroTable{turn: make(chan struct{}, 1)}
		z.tables[key] = t
	}
	return t
}

// answersZero tells that a broker answers 0 for an offset that it does not store.
func (c *Client) answersZero(broker string) bool {
	v := wire.Version(c.Version(broker))
	return v != 0 && v < wire.Version5_0_0
}

// storedZero looks up what a broker stores for a queue for which it answered 0. An answer counts only if it was asked for
// afterwards: an offset may have been stored meanwhile. Where the broker refuses the table, its 0 is believed: what is read
// again then is no loss.
func (c *Client) storedZero(ctx context.Context, group string, q sdk.Queue) (offset int64, ok bool, err error) {
	since := time.Now()
	t := c.zeros.of(zeroKey{q.Broker, group})
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, false, context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if t.asked.Before(since) {
		asked := time.Now()
		var table wire.GroupOffsets
		err := c.table(ctx, request{broker: q.Broker, topic: q.Topic, header: &wire.PlainRequest{Op: wire.ReqGetAllConsumerOffset}}, &table)
		if resp, refused := errors.AsType[*ResponseError](err); refused && resp.Code != wire.RespSystemBusy {
			c.log.Warn("a broker that answers 0 for an offset that it does not store refuses to list what it stores: 0 is taken as stored, and a new group begins there",
				"group", group, "queue", q.String(), "error", err.Error())
			return 0, true, nil
		}
		if err != nil {
			return 0, false, err
		}
		t.table, t.asked = table.Only(c.wired(group)), asked
	}
	offset, ok = t.table.Of(c.wired(group), c.wired(q.Topic), q.ID)
	return offset, ok, nil
}
