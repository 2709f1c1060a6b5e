package rocketmq

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func pullOf(id int32, hold time.Duration) *PullRequest {
	return &PullRequest{
		Group: "G", Queue: queue("a", id), Offset: 10, MaxMessages: 32, MaxBytes: 1 << 18, Hold: hold,
		Subscription: Subscription{Topic: "T", Expression: "x || y", Version: 7},
	}
}

func pullAnswer(code wire.ResponseCode, remark string, next, low, high, suggest int64, body string) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, code, remark)
		resp.Ext = wire.EncodeFields(&wire.PullResponse{NextOffset: next, MinOffset: low, MaxOffset: high, SuggestBrokerID: suggest})
		resp.Body = []byte(body)
		return resp
	}
}

func TestPullStatuses(t *testing.T) {
	tests := []struct {
		name            string
		code            wire.ResponseCode
		remark          string
		next, low, high int64
		want            PullStatus
		reset           bool
	}{
		{"found", wire.RespSuccess, "FOUND", 11, 0, 20, PullFound, false},
		{"nothing new", wire.RespPullNotFound, "OFFSET_OVERFLOW_ONE", 10, 0, 10, PullNoNew, false},
		{"filtered out", wire.RespPullRetryImmediately, "NO_MATCHED_MESSAGE", 15, 0, 20, PullNoMatch, false},
		{"replica that lags", wire.RespPullRetryImmediately, "OFFSET_OVERFLOW_BADLY", 4, 0, 4, PullNoMatch, false},
		{"below the minimum", wire.RespPullOffsetMoved, "OFFSET_TOO_SMALL", 12, 12, 20, PullOffsetIllegal, false},
		{"above the maximum", wire.RespPullOffsetMoved, "OFFSET_OVERFLOW_BADLY", 5, 0, 5, PullOffsetIllegal, false},
		{"reset by remark", wire.RespPullOffsetMoved, "OFFSET_RESET", 3, 12, 20, PullOffsetIllegal, true},
		{"reset by range", wire.RespPullOffsetMoved, "", 3, 0, 20, PullOffsetIllegal, true},
		{"reset at the end", wire.RespPullOffsetMoved, "", 3, 0, 10, PullOffsetIllegal, true},
	}
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			broker.on(wire.ReqPullMessage, pullAnswer(tt.code, tt.remark, tt.next, tt.low, tt.high, 0, "messages"))
			r, err := c.Pull(t.Context(), pullOf(0, time.Second))
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			next := tt.next
			if tt.want != PullOffsetIllegal {
				next = max(next, 10) // the offset asked for: never back without being told
			}
			if r.Status != tt.want || r.Reset != tt.reset || r.Next != next || r.Min != tt.low || r.Max != tt.high {
				t.Errorf("%s: %+v", tt.name, r)
			}
			if (string(r.Body) == "messages") != (tt.want == PullFound) {
				t.Errorf("%s: body %q", tt.name, r.Body)
			}
			r.Release()
		}
		for _, broken := range []func(*wire.Command) *wire.Command{
			refuse(wire.RespSuccess, "FOUND"),                               // without its numbers
			pullAnswer(wire.RespSuccess, "FOUND", 10, 0, 20, 0, "m"),        // would pull the same for ever
			pullAnswer(wire.RespPullNotFound, "", -1, 0, 20, 0, ""),         // no offset
			pullAnswer(wire.RespPullRetryImmediately, "", -5, 0, 20, 0, ""), // no offset
		} {
			broker.on(wire.ReqPullMessage, broken)
			if r, err := c.Pull(t.Context(), pullOf(0, 0)); !errors.Is(err, ErrProtocol) {
				t.Errorf("a broken answer gave %+v, %v", r, err)
			}
		}
	})
}

func TestPullCarriesTheOwnSubscription(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		for _, hold := range []time.Duration{0, 15 * time.Second} {
			r, err := c.Pull(t.Context(), pullOf(2, hold))
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
		var h wire.PullRequest
		seen := broker.requests(wire.ReqPullMessage)
		for i, flags := range []int32{wire.PullSubscription, wire.PullSubscription | wire.PullSuspend} {
			if err := wire.DecodeFields(seen[i].Ext, &h); err != nil {
				t.Fatal(err)
			}
			if h.SysFlag != flags || h.Subscription.Value != "x || y" || h.ExpressionType.Value != "TAG" || h.SubscriptionMillis != 7 ||
				h.QueueID != 2 || h.Offset != 10 || h.SuspendMillis != int64(15000*i) || h.BrokerName.Value != "a" {
				t.Errorf("sent %+v", h)
			}
		}
	})
}

func TestHeldPullOutlivesItsHoldTime(t *testing.T) { // PO-P04
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqPullMessage, func(req *wire.Command) *wire.Command {
			hold, err := strconv.Atoi(req.Ext.Get("suspendTimeoutMillis"))
			if err != nil {
				t.Error(err)
			}
			wait(time.Duration(hold)*time.Millisecond + holdTick) // as late as a broker may be
			return pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, "")(req)
		})
		r, err := c.Pull(t.Context(), pullOf(0, 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	})
}

func TestMarginShorterThanTheTickIsRefused(t *testing.T) {
	_, err := New(Config{NameServers: []string{"a:1"}, Logger: slog.New(slog.DiscardHandler), PullMargin: holdTick})
	if err == nil {
		t.Error("a margin that brokers exceed in normal operation was accepted")
	}
}

func TestAbandonedPullLeavesNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqPullMessage, func(req *wire.Command) *wire.Command {
			wait(5 * time.Second)
			return pullAnswer(wire.RespSuccess, "FOUND", 11, 0, 20, 0, "late")(req)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Pull(ctx, pullOf(0, 15*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		conn, err := c.conn(t.Context(), "a:1", false)
		if err != nil {
			t.Fatal(err)
		}
		if s := conn.Stats(); s.Outstanding != 0 {
			t.Errorf("after the caller left: %+v", s)
		}
		wait(10 * time.Second)
		if s := conn.Stats(); s.Late != 1 || conn.Err() != nil {
			t.Errorf("after the late answer: %+v, %v", s, conn.Err())
		}
	})
}

func TestPullsThatAreNeverAnsweredRecover(t *testing.T) { // PO-P08
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		r, err := c.Pull(t.Context(), pullOf(0, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		broker.set(silent)
		start := time.Now()
		errs := make(chan error, 4)
		for id := range int32(4) {
			go func() {
				_, err := c.Pull(t.Context(), pullOf(id, 15*time.Second))
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; !errors.Is(err, remoting.ErrSilent) || !IsRetriable(err) || !IsUnknownOutcome(err) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("silence was noticed after %s", took)
		}
		broker.set(up)
		if r, err = c.Pull(t.Context(), pullOf(0, time.Second)); err != nil {
			t.Fatalf("after the broker spoke again: %v", err)
		}
		r.Release()
	})
}

func TestReplicasAreReadWhenSuggestedOrTheMasterIsGone(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, master := one(t)
		replica := n.add("a:2")
		data := routeTo("a")
		data.Brokers[0].Addrs[1] = "a:2"
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		c := n.start(t, nil)
		master.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 1, ""))
		replica.on(wire.ReqPullMessage, pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, ""))
		var from []int64
		pull := func() {
			r, err := c.Pull(t.Context(), pullOf(0, 0))
			if err != nil {
				t.Errorf("pulling: %v", err)
				return
			}
			from = append(from, r.Broker.ID)
			r.Release()
		}
		pull() // the master suggests the replica
		pull() // which suggests the master
		pull() // which suggests the replica
		pull() // which suggests the master
		master.kill()
		wait(time.Millisecond)
		if _, err := c.Pull(t.Context(), pullOf(1, 0)); err != nil && !IsRetriable(err) {
			t.Errorf("the pull that finds the master gone: %v", err)
		}
		pull() // from the replica now
		want := []int64{0, 1, 0, 1, 1}
		for i := range want {
			if i >= len(from) || from[i] != want[i] {
				t.Fatalf("pulled from replicas %v, want %v", from, want)
			}
		}
		if _, err := c.Commit(t.Context(), "G", queue("a", 0), 1); err == nil || len(replica.requests(wire.ReqUpdateConsumerOffset)) != 0 {
			t.Errorf("a commit went to a replica (%v)", err)
		}
		orphan := routeTo("a")
		orphan.Brokers[0].Addrs = wire.IDTable[string]{1: "a:2"}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": orphan}) // the name server knows by now
		wait(31 * time.Second)
		pull()
		if _, err := c.Commit(t.Context(), "G", queue("a", 0), 1); !errors.Is(err, ErrNoBroker) {
			t.Errorf("a commit without a master: %v", err)
		}
	})
}

func TestHeartbeatGoesBeforeAPullWithANewerSubscription(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		version := int64(7)
		join(t, c, GroupSpec{Name: "G", Subscriptions: func() []Subscription {
			return []Subscription{{Topic: "T", Expression: "*", Version: version}}
		}})
		told := int64(0)
		broker.on(wire.ReqHeartbeat, func(req *wire.Command) *wire.Command {
			var data wire.HeartbeatData
			if err := wire.DecodeBody(req.Body, &data); err != nil {
				t.Error(err)
			}
			told = data.ConsumerDataSet[0].SubscriptionDataSet[0].SubVersion
			return wire.NewResponse(req, wire.RespSuccess, "")
		})
		broker.on(wire.ReqPullMessage, func(req *wire.Command) *wire.Command {
			if asked, err := strconv.ParseInt(req.Ext.Get("subVersion"), 10, 64); err != nil || asked > told {
				return wire.NewResponse(req, wire.RespSubscriptionNotLatest, "")
			}
			return pullAnswer(wire.RespPullNotFound, "", 10, 0, 10, 0, "")(req)
		})
		req := pullOf(0, 0)
		for _, version = range []int64{8, 8, 9} {
			req.Subscription.Version = version
			r, err := c.Pull(t.Context(), req)
			if err != nil {
				t.Fatalf("version %d: %v", version, err)
			}
			r.Release()
		}
		if n := len(broker.requests(wire.ReqHeartbeat)); n != 4 { // connect, join, 8, 9
			t.Errorf("%d heartbeats", n)
		}
	})
}
