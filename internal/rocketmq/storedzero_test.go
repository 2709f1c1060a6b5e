package rocketmq

import (
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// OF-P04: brokers before 5.0 answer 0 for an offset that they do not store; what they store is looked up.
func TestZeroOf49IsLookedUp(t *testing.T) {
	const table = `{"dataVersion":{"counter":7,"timestamp":1700000000000},"offsetTable":{"T@G":{0:0,1:5},"%RETRY%G@G":{0:1},"T@Other":{2:9,3:9},"T@X@G":{2:8}}}`
	for name, tt := range map[string]struct {
		version wire.Version
		stored  func(*wire.Command) *wire.Command
		queue   int32
		offset  int64
		ok      bool
		failed  bool
		asked   int
	}{
		"stored":                  {wire.Version4_9_7, tableOf(table), 0, 0, true, false, 1},
		"stored meanwhile":        {wire.Version4_9_7, tableOf(table), 1, 5, true, false, 1},
		"not stored":              {wire.Version4_9_7, tableOf(table), 2, 0, false, false, 1},
		"no offset at all":        {wire.Version4_9_7, tableOf(`{"offsetTable":{}}`), 0, 0, false, false, 1},
		"the table is refused":    {wire.Version4_9_7, refuse(wire.RespSystemError, "AclException"), 2, 0, true, false, 1},
		"the table does not come": {wire.Version4_9_7, func(*wire.Command) *wire.Command { return nil }, 2, 0, false, true, 1},
		"the broker is busy":      {wire.Version4_9_7, refuse(wire.RespSystemBusy, "busy"), 2, 0, false, true, 1},
		"5.x tells the truth":     {wire.Version5_0_0, tableOf(table), 2, 0, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				n, _, broker := one(t)
				broker.version = tt.version
				broker.on(wire.ReqQueryConsumerOffset, answerWith(&wire.OffsetResponse{Offset: 0}))
				broker.on(wire.ReqGetAllConsumerOffset, tt.stored)
				c := n.start(t, nil)
				join(t, c, spec("G"))
				offset, ok, err := c.Committed(t.Context(), "G", queue("a", tt.queue))
				if offset != tt.offset || ok != tt.ok || (err != nil) != tt.failed {
					t.Errorf("%d %t %v, want %d %t, failed %t", offset, ok, err, tt.offset, tt.ok, tt.failed)
				}
				if got := len(broker.requests(wire.ReqGetAllConsumerOffset)); got != tt.asked {
					t.Errorf("the table was asked for %d times, want %d", got, tt.asked)
				}
			})
		})
	}
}

func tableOf(text string) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, wire.RespSuccess, "")
		resp.Body = []byte(text)
		return resp
	}
}

// Many queues share an answer, but only one that was asked for after they asked.
func TestOneTableServesAllWhoWait(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.version = wire.Version4_9_7
		broker.on(wire.ReqQueryConsumerOffset, answerWith(&wire.OffsetResponse{Offset: 0}))
		broker.on(wire.ReqGetAllConsumerOffset, func(req *wire.Command) *wire.Command {
			wait(time.Second)
			return tableOf(`{"offsetTable":{"T@G":{0:0}}}`)(req)
		})
		c := n.start(t, nil)
		join(t, c, spec("G"))
		var all sync.WaitGroup
		for id := range int32(64) {
			all.Go(func() {
				if _, ok, err := c.Committed(t.Context(), "G", queue("a", id)); ok != (id == 0) || err != nil {
					t.Errorf("queue %d: %t %v", id, ok, err)
				}
			})
		}
		all.Wait()
		if got := len(broker.requests(wire.ReqGetAllConsumerOffset)); got > 2 {
			t.Errorf("the table was asked for %d times by 64 queues", got)
		}
		before := len(broker.requests(wire.ReqGetAllConsumerOffset))
		broker.on(wire.ReqGetAllConsumerOffset, tableOf(`{"offsetTable":{"T@G":{7:0}}}`))
		if _, ok, err := c.Committed(t.Context(), "G", queue("a", 7)); !ok || err != nil || len(broker.requests(wire.ReqGetAllConsumerOffset)) != before+1 {
			t.Errorf("a later question was answered from an earlier table: %t %v", ok, err)
		}
	})
}
