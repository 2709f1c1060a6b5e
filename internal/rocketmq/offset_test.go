package rocketmq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestCommittedTellsNothingStoredFromCouldNotAsk(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		tests := []struct {
			name   string
			answer func(*wire.Command) *wire.Command
			offset int64
			ok     bool
			code   wire.ResponseCode // of the error; 0 = none
		}{
			{"stored", answerWith(&wire.OffsetResponse{Offset: 42}), 42, true, 0},
			{"stored at the start", answerWith(&wire.OffsetResponse{Offset: 0}), 0, true, 0},
			{"nothing stored", refuse(wire.RespQueryNotFound, "Not found"), 0, false, 0},
			{"refused", refuse(wire.RespNoPermission, ""), 0, false, wire.RespNoPermission},
			{"exception", refuse(wire.RespSystemError, "NullPointerException"), 0, false, wire.RespSystemError},
		}
		for _, tt := range tests {
			broker.on(wire.ReqQueryConsumerOffset, tt.answer)
			offset, ok, err := c.Committed(t.Context(), "G", queue("a", 1))
			var resp *ResponseError
			if offset != tt.offset || ok != tt.ok || (err != nil) != (tt.code != 0) || errors.As(err, &resp) && resp.Code != tt.code {
				t.Errorf("%s: %d, %v, %v", tt.name, offset, ok, err)
			}
		}
		broker.on(wire.ReqQueryConsumerOffset, nil) // success without an offset
		if _, ok, err := c.Committed(t.Context(), "G", queue("a", 1)); ok || !errors.Is(err, ErrProtocol) {
			t.Errorf("an answer without the offset: %v, %v", ok, err)
		}
		broker.set(silent)
		if _, ok, err := c.Committed(t.Context(), "G", queue("a", 1)); ok || err == nil {
			t.Errorf("a silent broker: %v, %v", ok, err)
		}
		var h wire.QueryOffsetRequest
		if err := wire.DecodeFields(broker.requests(wire.ReqQueryConsumerOffset)[0].Ext, &h); err != nil {
			t.Fatal(err)
		}
		if h.Group != "G" || h.Topic != "T" || h.QueueID != 1 || !h.SetZeroIfNotFound.Present || h.SetZeroIfNotFound.Value {
			t.Errorf("asked %+v", h)
		}
	})
}

func TestCommitIsAwaitedAndSeesAPendingReset(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		for _, tt := range []struct {
			answer    func(*wire.Command) *wire.Command
			reset, ok bool
		}{
			{refuse(wire.RespSuccess, ""), false, true},
			{refuse(wire.RespSuccess, "Offset has been previously reset"), true, true},
			{refuse(wire.RespGroupNotExist, ""), false, false},
		} {
			broker.on(wire.ReqUpdateConsumerOffset, tt.answer)
			reset, err := c.Commit(t.Context(), "G", queue("a", 1), 7)
			if reset != tt.reset || (err == nil) != tt.ok {
				t.Errorf("reset %v, %v", reset, err)
			}
		}
		for _, req := range broker.requests(wire.ReqUpdateConsumerOffset) {
			if req.IsOneway() || req.Ext.Get("commitOffset") != "7" {
				t.Errorf("sent %+v", req)
			}
		}
	})
}

func TestOffsetQueries(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqGetMinOffset, answerWith(&wire.OffsetResponse{Offset: 1}))
		broker.on(wire.ReqGetMaxOffset, answerWith(&wire.OffsetResponse{Offset: 9}))
		broker.on(wire.ReqSearchOffsetByTimestamp, answerWith(&wire.OffsetResponse{Offset: 5}))
		low, errLow := c.MinOffset(t.Context(), queue("a", 0))
		high, errHigh := c.MaxOffset(t.Context(), queue("a", 0))
		at, errAt := c.OffsetAt(t.Context(), queue("a", 0), time.UnixMilli(1234))
		if err := errors.Join(errLow, errHigh, errAt); err != nil || low != 1 || high != 9 || at != 5 {
			t.Errorf("%d, %d, %d, %v", low, high, at, err)
		}
		asked := broker.requests(wire.ReqSearchOffsetByTimestamp)[0].Ext
		if asked.Get("timestamp") != "1234" || asked.Get("boundaryType") != wire.BoundaryLower {
			t.Errorf("asked %v", asked)
		}
		broker.on(wire.ReqGetMinOffset, answerWith(&wire.OffsetResponse{Offset: -1}))
		if _, err := c.MinOffset(t.Context(), queue("a", 0)); !errors.Is(err, ErrProtocol) {
			t.Errorf("a negative offset: %v", err)
		}
	})
}

func sendBackOf(level int) *SendBackRequest {
	return &SendBackRequest{
		Group: "G", Queue: queue("a", 0), LogOffset: 4711, MessageID: "ID", OriginTopic: "T", DelayLevel: level, MaxRetries: 16,
		StoreHost: "10.255.255.1:1",
	}
}

func TestSendBackUsesTheRouteNotTheStoredHost(t *testing.T) { // RT-P03
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		for _, level := range []int{0, 3, -1} {
			if err := c.SendBack(t.Context(), sendBackOf(level)); err != nil {
				t.Fatal(err)
			}
		}
		if n.dialed("10.255.255.1:1") != 0 {
			t.Error("the stored host was dialed")
		}
		for i, level := range []string{"0", "3", "-1"} {
			got := broker.requests(wire.ReqSendBack)[i].Ext
			if got.Get("delayLevel") != level || got.Get("offset") != "4711" || got.Get("group") != "G" || got.Get("originMsgId") != "ID" ||
				got.Get("originTopic") != "T" || got.Get("maxReconsumeTimes") != "16" {
				t.Errorf("sent %v", got)
			}
		}
	})
}

func TestSendBackFallsBackToTheStoredHost(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, _ := one(t)
		host := n.add("10.255.255.1:1")
		c := n.start(t, nil)
		req := sendBackOf(0)
		req.Queue = queue("nobody-knows-me", 0)
		if err := c.SendBack(t.Context(), req); err != nil || len(host.requests(wire.ReqSendBack)) != 1 {
			t.Errorf("got %v", err)
		}
		req.StoreHost = ""
		if err := c.SendBack(t.Context(), req); !errors.Is(err, ErrNoBroker) {
			t.Errorf("without any address: %v", err)
		}
	})
}

func TestSendBackOutcomes(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqSendBack, refuse(wire.RespSystemError, "look message by offset failed, 4711"))
		if err := c.SendBack(t.Context(), sendBackOf(0)); !IsOriginalGone(err) || IsUnknownOutcome(err) {
			t.Errorf("gone: %v", err)
		}
		broker.on(wire.ReqSendBack, refuse(wire.RespNoPermission, "the broker is not writable"))
		err := c.SendBack(t.Context(), sendBackOf(0))
		if IsOriginalGone(err) || IsUnknownOutcome(err) || !IsFatal(err) {
			t.Errorf("refused: %v", err)
		}
		for _, word := range []string{"ID", "4711", "a:1", "T/a/0", "NO_PERMISSION", "not writable"} { // SE-P02
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		broker.on(wire.ReqSendBack, func(*wire.Command) *wire.Command { return nil })
		if err := c.SendBack(t.Context(), sendBackOf(0)); IsOriginalGone(err) || !IsUnknownOutcome(err) {
			t.Errorf("no answer: %v", err)
		}
	})
}
