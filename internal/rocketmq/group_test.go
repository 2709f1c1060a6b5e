package rocketmq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

func spec(name string) GroupSpec {
	return GroupSpec{Name: name, FromWhere: FromLast, Subscriptions: func() []Subscription {
		return []Subscription{{Topic: "T", Expression: "x || y", Version: 5}}
	}}
}

func join(t *testing.T, c *Client, s GroupSpec) {
	t.Helper()
	if err := c.Join(t.Context(), s); err != nil {
		t.Fatalf("joining: %v", err)
	}
}

func heartbeats(t *testing.T, s *server) []wire.HeartbeatData {
	t.Helper()
	var list []wire.HeartbeatData
	for _, cmd := range s.requests(wire.ReqHeartbeat) {
		var data wire.HeartbeatData
		if err := wire.DecodeBody(cmd.Body, &data); err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

func TestJoinHeartbeatsEverywhereAndAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b, replica := n.add("b:1"), n.add("b:2")
		data := routeTo("a", "b")
		data.Brokers[1].Addrs[1] = "b:2"
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": data})
		c := n.start(t, nil)
		join(t, c, spec("G"))
		if err := c.Join(t.Context(), spec("G")); !errors.Is(err, ErrDuplicateGroup) {
			t.Errorf("joining twice: %v", err)
		}
		for _, s := range []*server{a, b, replica} {
			beats := heartbeats(t, s)
			last := beats[len(beats)-1]
			if last.ClientID != "127.0.0.1@me" || len(last.ConsumerDataSet) != 1 {
				t.Fatalf("%s was told %+v", s.addr, last)
			}
			g := last.ConsumerDataSet[0]
			if g.GroupName != "G" || g.MessageModel != wire.Clustering || g.ConsumeType != wire.ConsumePassively || g.ConsumeFromWhere != wire.ConsumeFromLastOffset {
				t.Errorf("%s was told %+v", s.addr, g)
			}
			if len(g.SubscriptionDataSet) != 2 || !slices.Equal(g.SubscriptionDataSet[0].TagsSet, []string{"x", "y"}) || g.SubscriptionDataSet[1].Topic != "%RETRY%G" {
				t.Errorf("%s was told the subscriptions %+v", s.addr, g.SubscriptionDataSet)
			}
		}
		before := len(heartbeats(t, a))
		wait(61 * time.Second)
		if n := len(heartbeats(t, a)) - before; n != 2 {
			t.Errorf("%d heartbeats in 61 s, want 2", n)
		}
		if v := c.Version("a"); v != int32(wire.Version5_3_3) {
			t.Errorf("version %d", v)
		}
		if v := c.Version("nobody"); v != 0 {
			t.Errorf("version of an unknown broker: %d", v)
		}
	})
}

func TestHeartbeatFollowsEachReconnect(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.kill()
		wait(3 * time.Second)
		before := len(heartbeats(t, broker))
		broker.set(up)
		wait(8 * time.Second) // nobody asks for anything: the connection comes back for the group's sake
		beats := heartbeats(t, broker)
		if len(beats) != before+1 || len(beats[len(beats)-1].ConsumerDataSet) != 1 {
			t.Errorf("%d heartbeats after the broker came back, want 1 with the group", len(beats)-before)
		}
		if _, err := c.MaxOffset(t.Context(), queue("a", 0)); err != nil && !errors.Is(err, ErrProtocol) && !strings.Contains(err.Error(), "offset") {
			t.Errorf("a call on the new connection: %v", err)
		}
	})
}

func TestJoinThatReachedNobodyCanBeTriedAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.set(absent)
		c := n.start(t, nil)
		if err := c.Join(t.Context(), spec("G")); !IsRetriable(err) {
			t.Fatalf("joining without a broker: %v", err)
		}
		broker.set(up)
		wait(time.Second)
		join(t, c, spec("G"))
	})
}

func TestJoinRefusesWhatNoBrokerTakes(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, _ := one(t)
		c := n.start(t, nil)
		bad := spec("no spaces please")
		if err := c.Join(t.Context(), bad); !IsFatal(err) {
			t.Errorf("a bad name: %v", err)
		}
		bad = spec("G")
		bad.Subscriptions = func() []Subscription { return []Subscription{{Topic: "T", Expression: "||"}} }
		if err := c.Join(t.Context(), bad); !IsFatal(err) {
			t.Errorf("a bad filter: %v", err)
		}
		if c.groups.any() {
			t.Error("a refused group is joined")
		}
	})
}

func TestBroadcastingHasNoRetryTopic(t *testing.T) {
	s := spec("G")
	s.Broadcasting = true
	data, err := consumerData(s)
	if err != nil || data.MessageModel != wire.Broadcasting || len(data.SubscriptionDataSet) != 1 {
		t.Errorf("%+v, %v", data, err)
	}
}

func TestLeaveAndCloseUnregister(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		join(t, c, spec("H"))
		if err := c.Leave(t.Context(), "G"); err != nil {
			t.Fatal(err)
		}
		if err := c.Leave(t.Context(), "G"); !errors.Is(err, ErrNotJoined) {
			t.Errorf("leaving twice: %v", err)
		}
		wait(31 * time.Second)
		beats := heartbeats(t, broker)
		if last := beats[len(beats)-1]; len(last.ConsumerDataSet) != 1 || last.ConsumerDataSet[0].GroupName != "H" {
			t.Errorf("after leaving G the broker is told %+v", last.ConsumerDataSet)
		}
		shut(t, c)
		shut(t, c)
		var left []string
		for _, cmd := range broker.requests(wire.ReqUnregisterClient) {
			left = append(left, cmd.Ext.Get("consumerGroup")+" "+cmd.Ext.Get("clientID"))
		}
		if want := []string{"G 127.0.0.1@me", "H 127.0.0.1@me"}; !slices.Equal(left, want) {
			t.Errorf("unregistered %q, want %q", left, want)
		}
		if err := c.Start(t.Context()); !errors.Is(err, ErrNotRunning) {
			t.Errorf("starting a closed client: %v", err)
		}
		if _, err := c.Queues(t.Context(), "T"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("using a closed client: %v", err)
		}
	})
}

func TestLeaveReportsBrokersThatDoNotAnswer(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.set(silent)
		if err := c.Leave(t.Context(), "G"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if c.groups.joined("G") {
			t.Error("the group is still joined")
		}
		broker.set(up)
	})
}

func TestCloseDoesNotWaitForASilentBrokerForEver(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.set(silent)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil {
			t.Error("closing says nothing of the broker that was not told")
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("closing took %s", took)
		}
	})
}

func TestMembers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		c := n.start(t, nil)
		nobody := refuse(wire.RespSystemError, "no consumer for this group, G")
		list := answerBody(t, &wire.ConsumerList{ConsumerIDs: []string{"m1", "m2", "m1"}})
		tests := []struct {
			name string
			a, b func(*wire.Command) *wire.Command
			want []string
			err  error
		}{
			{"both know", list, list, []string{"m1", "m2", "m1"}, nil},
			{"one was just started", nobody, list, []string{"m1", "m2", "m1"}, nil},
			{"one fails", refuse(wire.RespSystemError, "NullPointerException"), list, []string{"m1", "m2", "m1"}, nil},
			{"nobody online", nobody, nobody, nil, ErrNoMembers},
			{"nobody online as far as known", refuse(wire.RespSystemBusy, ""), nobody, nil, ErrNoMembers},
			{"empty list", answerBody(t, &wire.ConsumerList{}), nobody, nil, ErrNoMembers},
		}
		for _, tt := range tests {
			a.on(wire.ReqGetConsumerList, tt.a)
			b.on(wire.ReqGetConsumerList, tt.b)
			for range 4 {
				got, err := c.Members(t.Context(), "G", "T")
				if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
					t.Errorf("%s: %v, %v", tt.name, got, err)
				}
			}
		}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": {Brokers: []wire.BrokerData{{Name: "b", Addrs: wire.IDTable[string]{1: "b:1"}}}}})
		b.on(wire.ReqGetConsumerList, list)
		wait(31 * time.Second)
		if got, err := c.Members(t.Context(), "G", "T"); err != nil || len(got) != 3 {
			t.Errorf("only a replica is left: %v, %v", got, err)
		}
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		wait(31 * time.Second)
		busy := refuse(wire.RespSystemBusy, "")
		a.on(wire.ReqGetConsumerList, busy)
		b.on(wire.ReqGetConsumerList, busy)
		if _, err := c.Members(t.Context(), "G", "T"); err == nil || errors.Is(err, ErrNoMembers) {
			t.Errorf("nobody could be asked: %v", err)
		}
	})
}

func TestPeerInfo(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		info := &wire.ConsumerRunningInfo{Properties: map[string]string{"digest": "d"}}
		broker.on(wire.ReqGetConsumerRunningInfo, answerBody(t, info))
		got, err := c.PeerInfo(t.Context(), "G", "m1")
		if err != nil || got.Properties["digest"] != "d" {
			t.Errorf("%+v, %v", got, err)
		}
		broker.on(wire.ReqGetConsumerRunningInfo, refuse(wire.RespSystemError, "The Consumer <G> <m1> not online"))
		if _, err := c.PeerInfo(t.Context(), "G", "m1"); !errors.Is(err, ErrMemberOffline) {
			t.Errorf("an offline member: %v", err)
		}
		broker.on(wire.ReqGetConsumerRunningInfo, refuse(wire.RespConsumeTimeout, "timeout"))
		var resp *ResponseError
		if _, err := c.PeerInfo(t.Context(), "G", "m1"); !errors.As(err, &resp) || resp.Code != wire.RespConsumeTimeout {
			t.Errorf("a member that does not answer: %v", err)
		}
	})
}

func TestBrokersRequestsReachTheGroup(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		s := spec("G")
		notified, reset := make(chan struct{}, 1), make(chan map[sdk.Queue]int64, 1)
		s.OnMembersChanged = func() { notified <- struct{}{} }
		s.OnReset = func(topic string, offsets map[sdk.Queue]int64) {
			if topic == "T" {
				reset <- offsets
			}
		}
		s.RunningInfo = func(bool) *wire.ConsumerRunningInfo {
			return &wire.ConsumerRunningInfo{Properties: map[string]string{"who": "me"}}
		}
		s.ConsumerStatus = func(string) map[sdk.Queue]int64 { return map[sdk.Queue]int64{queue("a", 1): 42} }
		join(t, c, s)
		join(t, c, spec("Bare")) // without callbacks

		ask := func(h wire.Request, body []byte, oneway bool) *wire.Command {
			before := len(broker.answers())
			req := wire.NewRequest(h, body)
			if req.Opaque = 77; oneway {
				req.Flag |= wire.FlagOneway
			}
			broker.push(req)
			synctest.Wait()
			if answers := broker.answers(); len(answers) > before {
				return answers[len(answers)-1]
			}
			return nil
		}
		if got := ask(&wire.NotifyConsumersRequest{Group: "G"}, nil, true); got != nil {
			t.Errorf("a oneway was answered: %+v", got)
		}
		<-notified
		text, err := wire.EncodeBody(&wire.ResetOffsetBody{Offsets: wire.QueueTable[int64]{messageQueue(queue("a", 2)): 9}}, wire.Fastjson)
		if err != nil {
			t.Fatal(err)
		}
		ask(&wire.ResetClientRequest{Topic: "T", Group: "G"}, text, true)
		if got := <-reset; got[queue("a", 2)] != 9 {
			t.Errorf("reset to %v", got)
		}
		got := ask(&wire.RunningInfoRequest{Group: "G", ClientID: "127.0.0.1@me"}, nil, false)
		var info wire.ConsumerRunningInfo
		if err := wire.DecodeBody(got.Body, &info); err != nil || info.Properties["who"] != "me" || got.ResponseCode() != wire.RespSuccess {
			t.Errorf("307: %+v, %v", got, err)
		}
		got = ask(&wire.ClientStatusRequest{Topic: "T", Group: "G"}, nil, false)
		var status wire.ConsumerStatusBody
		if err := wire.DecodeBody(got.Body, &status); err != nil || status.Queues[messageQueue(queue("a", 1))] != 42 {
			t.Errorf("221: %+v, %v", got, err)
		}
		refusals := []struct {
			h    wire.Request
			body []byte
			want wire.ResponseCode
		}{
			{&wire.RunningInfoRequest{Group: "Other"}, nil, wire.RespSystemError},
			{&wire.ClientStatusRequest{Group: "Other"}, nil, wire.RespSystemError},
			{&wire.ConsumeDirectlyRequest{Group: "Other"}, nil, wire.RespSystemError},
			{&wire.RunningInfoRequest{Group: "Bare"}, nil, wire.RespNotSupported},
			{&wire.ClientStatusRequest{Group: "Bare"}, nil, wire.RespNotSupported},
			{&wire.ConsumeDirectlyRequest{Group: "Bare"}, nil, wire.RespNotSupported},
			{&wire.ResetClientRequest{Topic: "T", Group: "G"}, []byte("no json"), wire.RespSystemError},
			{&wire.PlainRequest{Op: wire.ReqPushReplyMessage}, nil, wire.RespSystemError},
			{&wire.PlainRequest{Op: 4711}, nil, wire.RespNotSupported},
		}
		for _, tt := range refusals {
			got := ask(tt.h, tt.body, false)
			if got == nil || got.ResponseCode() != tt.want || got.Opaque != 77 {
				t.Errorf("%s %+v was answered %+v", tt.h.RequestCode(), tt.h, got)
			}
		}
	})
}

func TestConsumeDirectly(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		s := spec("G")
		s.ConsumeDirectly = func(m *wire.Message, from string) *wire.ConsumeDirectlyResult {
			return &wire.ConsumeDirectlyResult{Result: wire.ConsumeSuccess, Remark: string(m.Body) + " from " + from}
		}
		join(t, c, s)
		m := &wire.Message{Topic: []byte("T"), Body: []byte("hello"), StoreHost: addrPort("127.0.0.1:1"), BornHost: addrPort("127.0.0.1:2")}
		stored, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		broker.push(wire.NewRequest(&wire.ConsumeDirectlyRequest{Group: "G", Broker: wire.Some("a")}, stored))
		broker.push(wire.NewRequest(&wire.ConsumeDirectlyRequest{Group: "G"}, stored[:20]))
		synctest.Wait()
		codes := map[wire.ResponseCode]string{}
		for _, a := range broker.answers() {
			var result wire.ConsumeDirectlyResult
			if len(a.Body) > 0 {
				if err := wire.DecodeBody(a.Body, &result); err != nil {
					t.Error(err)
				}
			}
			codes[a.ResponseCode()] = result.Remark
		}
		if _, refused := codes[wire.RespSystemError]; codes[wire.RespSuccess] != "hello from a" || !refused {
			t.Errorf("answers %v", codes)
		}
	})
}

func TestCloseWaitsForCallbacks(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		s := spec("G")
		release := make(chan struct{})
		s.OnMembersChanged = func() { <-release }
		join(t, c, s)
		broker.push(wire.NewRequest(&wire.NotifyConsumersRequest{Group: "G"}, nil))
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- c.Close(t.Context()) }()
		wait(5 * time.Second)
		if len(closed) != 0 {
			t.Error("closed while a callback runs")
		}
		close(release)
		if err := <-closed; err != nil {
			t.Errorf("closing: %v", err)
		}
	})
}

func TestLocks(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		a.on(wire.ReqLockQueues, answerBody(t, &wire.LockResult{Queues: []wire.MessageQueue{messageQueue(queue("a", 0))}}))
		b.on(wire.ReqLockQueues, refuse(wire.RespSystemBusy, ""))
		held, err := c.LockQueues(t.Context(), "G", []sdk.Queue{queue("a", 0), queue("b", 0), queue("a", 1)})
		if !slices.Equal(held, []sdk.Queue{queue("a", 0)}) || !IsRetriable(err) {
			t.Errorf("held %v, %v", held, err)
		}
		var body wire.LockBody
		if err := wire.DecodeBody(a.requests(wire.ReqLockQueues)[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.ClientID != c.ClientID() || body.Group != "G" || len(body.Queues) != 2 {
			t.Errorf("asked for %+v", body)
		}
		if err := c.UnlockQueues(t.Context(), "G", held); err != nil || len(a.requests(wire.ReqUnlockQueues)) != 1 {
			t.Errorf("unlocking: %v", err)
		}
	})
}
