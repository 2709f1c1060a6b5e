package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

func join(t *testing.T, c *rocketmq.Client, spec rocketmq.GroupSpec) {
	t.Helper()
	if err := c.Join(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func TestClient_offsetsAsTheToolsSeeThem(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "ClientOffsets", 1), "client-offsets"
	c := newClient(t, p.Addr)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	join(t, c, groupOf(group, topic)) // 15 does not make a group, a heartbeat does
	if _, ok, err := c.Committed(t.Context(), group, q); ok || err != nil {
		t.Errorf("before the first commit: stored %t, %v", ok, err)
	}
	sendN(t, c, topic, "early", 4)
	middle := send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("middle")})
	at := time.UnixMilli(byText(t, readAll(t, c, group, topic, 5))["middle"].StoreMillis)
	after := time.NewTimer(50 * time.Millisecond) // store times differ
	<-after.C
	sendN(t, c, topic, "late", 5)
	visible(t, c, q, 10)
	minimum, err1 := c.MinOffset(t.Context(), q)
	maximum, err2 := c.MaxOffset(t.Context(), q)
	found, err3 := c.OffsetAt(t.Context(), q, at.Add(time.Millisecond))
	if err := errors.Join(err1, err2, err3); err != nil || minimum != 0 || maximum != 10 || found != middle.Offset+1 {
		t.Errorf("min %d, max %d, %d at the time after offset %d: %v", minimum, maximum, found, middle.Offset, err)
	}
	if reset, err := c.Commit(t.Context(), group, q, 7); reset || err != nil {
		t.Fatalf("commit: reset %t, %v", reset, err)
	}
	if offset, ok, err := c.Committed(t.Context(), group, q); offset != 7 || !ok || err != nil {
		t.Errorf("after the commit: %d %t %v", offset, ok, err)
	}
	if out := p.run(t, "consumerProgress", "-g", group, "-t", topic); !hasRow(out, topic, "broker-a", "0", "10", "7") {
		t.Errorf("consumerProgress shows no offset 7 of 10:\n%s", out)
	}
}

// hasRow tells whether a table has a row that starts with these columns, whatever is between them.
func hasRow(table string, columns ...string) bool {
	return slices.ContainsFunc(strings.Split(table, "\n"), func(l string) bool {
		f := strings.Fields(l)
		return len(f) >= len(columns) && slices.Equal(f[:len(columns)], columns)
	})
}

func TestClient_sendBack(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "ClientSendBack", 1), "client-sendback"
	c := newClient(t, p.Addr)
	join(t, c, groupOf(group, topic))
	sends := map[string]rocketmq.SendResult{}
	for _, body := range []string{"level-0", "level-8", "level--1"} {
		sends[body] = send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body), Tag: "tag", Keys: []string{body}, Properties: map[string]string{"own": "x"}})
	}
	var before time.Time // of the one with level 8
	for body, m := range byText(t, readAll(t, c, group, topic, 3)) {
		var level int
		if _, err := fmt.Sscanf(body, "level-%d", &level); err != nil {
			t.Fatal(err)
		}
		if level == 8 {
			before = time.Now()
		}
		if err := c.SendBack(t.Context(), sendBack(group, m, level)); err != nil {
			t.Fatal(err)
		}
	}
	retried := byText(t, readAll(t, c, group, wire.RetryTopic(group), 2))
	dead := byText(t, readAll(t, c, group, wire.DLQTopic(group), 1))
	want := map[string]string{"own": "x", "TAGS": "tag", "RETRY_TOPIC": topic, "WAIT": "false", "REAL_TOPIC": wire.RetryTopic(group), "REAL_QID": "0"}
	for body, m := range retried {
		want["DELAY"], want["KEYS"] = map[string]string{"level-0": "3", "level-8": "8"}[body], body
		checkProps(t, m, want, sends[body])
		if m.ReconsumeTimes != 1 || m.Attempt() != 2 || m.OriginTopic() != topic {
			t.Errorf("%s: reconsumeTimes %d, origin topic %s", body, m.ReconsumeTimes, m.OriginTopic())
		}
	}
	if late := time.UnixMilli(retried["level-8"].StoreMillis).Sub(before); late < 1900*time.Millisecond {
		t.Errorf("level 8 (2 s) came %s after the send-back", late)
	}
	m := dead["level--1"]
	delete(want, "REAL_TOPIC")
	delete(want, "REAL_QID")
	want["DELAY"], want["KEYS"] = "0", "level--1"
	checkProps(t, m, want, sends["level--1"])
	// A dead letter that comes back is a retry of its own: the identity stays.
	again := retried["level-0"]
	if err := c.SendBack(t.Context(), sendBack(group, again, 0)); err != nil {
		t.Fatal(err)
	}
	for _, m := range readAll(t, c, group, wire.RetryTopic(group), 3) {
		if m.ReconsumeTimes == 2 && (m.Text != "level-0" || wire.Identity(&m.Message) != sends["level-0"].OffsetMessageID || m.Props["DELAY"] != "4") {
			t.Errorf("second round: %s, identity %s, properties %v", m.Text, wire.Identity(&m.Message), m.Props)
		}
	}
	// What the broker never had is told apart from a refusal.
	lost := sendBack(group, again, 0)
	lost.LogOffset += 1 << 40
	if err := c.SendBack(t.Context(), lost); !rocketmq.IsOriginalGone(err) {
		t.Errorf("a message that is not there: %v", err)
	}
}

func sendBack(group string, m stored, level int) *rocketmq.SendBackRequest {
	return &rocketmq.SendBackRequest{
		Group: group, Queue: m.Queue, LogOffset: m.LogOffset, MessageID: m.ID(), OriginTopic: m.OriginTopic(), DelayLevel: level,
		MaxRetries: 16, StoreHost: m.StoreHost.String(),
	}
}

// checkProps checks that a retried or dead message has these properties, the ones of its origin, and no others.
func checkProps(t *testing.T, m stored, want map[string]string, origin rocketmq.SendResult) {
	t.Helper()
	all := maps.Clone(want)
	all["UNIQ_KEY"], all["ORIGIN_MESSAGE_ID"] = origin.MessageID, origin.OffsetMessageID
	all["MSG_REGION"], all["TRACE_ON"], all["CLUSTER"] = "DefaultRegion", "true", "DefaultCluster"
	if !maps.Equal(all, m.Props) {
		t.Errorf("%s has properties\n%s\nwant\n%s", m.Text, asJSON(m.Props), asJSON(all))
	}
	if wire.Identity(&m.Message) != origin.OffsetMessageID {
		t.Errorf("%s: identity %s, want the first copy's id %s", m.Text, wire.Identity(&m.Message), origin.OffsetMessageID)
	}
}

func TestClient_membersAndRunningInfo(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "ClientMembers", 2), "client-members"
	a, b := newClient(t, p.Addr), newClient(t, p.Addr)
	changed := make(chan struct{}, 100)
	spec := groupOf(group, topic)
	spec.OnMembersChanged = func() { changed <- struct{}{} }
	spec.RunningInfo = func(bool) *wire.ConsumerRunningInfo { return runningInfo(topic, group) }
	join(t, a, spec)
	<-changed // the joining member is told too
	join(t, b, groupOf(group, topic))
	select {
	case <-changed:
	case <-within(t, patience).Done():
		t.Fatal("not told of the second member")
	}
	java := p.javaReady(t, "Consume", group, topic, "*")
	want := []string{a.ClientID(), b.ClientID(), strings.Fields(java.Lines()[slices.IndexFunc(java.Lines(), line("#ready"))])[1]}
	slices.Sort(want)
	until(t, 30*time.Second, "three members", func() (bool, string) {
		ids, err := a.Members(t.Context(), group, topic)
		slices.Sort(ids)
		return slices.Equal(ids, want), fmt.Sprint(ids, err)
	})
	info, err := b.PeerInfo(t.Context(), group, a.ClientID())
	if err != nil || info.Properties["streamd.test"] != "1" || info.Status[topic].OKTPS != 12.5 {
		t.Errorf("307 between two of ours: %+v, %v", info, err)
	}
	if info, err := b.PeerInfo(t.Context(), group, want[slices.IndexFunc(want, func(s string) bool { return s != a.ClientID() && s != b.ClientID() })]); err != nil || info.Properties["PROP_CONSUME_TYPE"] != "CONSUME_PASSIVELY" {
		t.Errorf("307 to a Java member: %+v, %v", info, err)
	}
	if _, err := b.PeerInfo(t.Context(), group, "nobody"); !errors.Is(err, rocketmq.ErrMemberOffline) {
		t.Errorf("307 to a stranger: %v", err)
	}
	if out := p.run(t, "consumerStatus", "-g", group, "-i", a.ClientID(), "-s"); !strings.Contains(out, "streamd.test") || !strings.Contains(out, topic) {
		t.Errorf("consumerStatus shows:\n%s", out)
	}
	out := p.run(t, "consumerConnection", "-g", group)
	for _, id := range want {
		if !strings.Contains(out, id) {
			t.Errorf("consumerConnection has no %s:\n%s", id, out)
		}
	}
	if err := b.Leave(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, "two members", func() (bool, string) {
		ids, err := a.Members(t.Context(), group, topic)
		return len(ids) == 2 && !slices.Contains(ids, b.ClientID()), fmt.Sprint(ids, err)
	})
}

func runningInfo(topic, group string) *wire.ConsumerRunningInfo {
	return &wire.ConsumerRunningInfo{
		Properties: map[string]string{"streamd.test": "1", "PROP_CLIENT_VERSION": "V4_9_8", "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CONSUMER_START_TIMESTAMP": fmt.Sprint(time.Now().UnixMilli())},
		Subscriptions: []wire.SubscriptionData{
			{Topic: topic, SubString: "*", ExpressionType: "TAG"}, {Topic: wire.RetryTopic(group), SubString: "*", ExpressionType: "TAG"},
		},
		Queues: wire.QueueTable[wire.ProcessQueueInfo]{{Topic: topic, BrokerName: "broker-a", QueueID: 1}: {CommitOffset: 3, Locked: true}},
		Status: map[string]wire.ConsumeStatus{topic: {OKTPS: 12.5}},
	}
}

func TestClient_locks(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "ClientLocks", 4), "client-locks"
	a, b := newClient(t, p.Addr), newClient(t, p.Addr)
	join(t, a, groupOf(group, topic))
	join(t, b, groupOf(group, topic))
	qs, err := a.Queues(t.Context(), topic)
	if err != nil || len(qs) != 4 {
		t.Fatal(qs, err)
	}
	lock := func(c *rocketmq.Client, ask, want []sdk.Queue) {
		t.Helper()
		got, err := c.LockQueues(t.Context(), group, ask)
		slices.SortFunc(got, sdk.Queue.Compare)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("locked %v (%v), want %v", got, err, want)
		}
	}
	lock(a, qs[:2], qs[:2])
	lock(b, qs, qs[2:])
	lock(a, qs, qs[:2])
	if err := a.UnlockQueues(t.Context(), group, qs[:1]); err != nil {
		t.Fatal(err)
	}
	lock(b, qs[:2], qs[:1])
}

func TestClient_serverSideReset(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "ClientReset", 1), "client-reset"
	c := newClient(t, p.Addr)
	join(t, c, groupOf(group, topic))
	sendN(t, c, topic, "m", 10)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	if _, err := c.Commit(t.Context(), group, q, 10); err != nil {
		t.Fatal(err)
	}
	p.run(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()))
	if reset, err := c.Commit(t.Context(), group, q, 10); !reset || err != nil {
		t.Errorf("a commit during a reset: reset %t, %v", reset, err)
	}
	r, err := c.Pull(t.Context(), &rocketmq.PullRequest{Group: group, Queue: q, Offset: 10, MaxMessages: 32, MaxBytes: 1 << 20, Subscription: everything(topic)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if r.Status != rocketmq.PullOffsetIllegal || !r.Reset || r.Next != 0 {
		t.Errorf("the pull after a reset: status %d, reset %t, next %d", r.Status, r.Reset, r.Next)
	}
	if reset, err := c.Commit(t.Context(), group, q, r.Next); reset || err != nil {
		t.Errorf("the commit after it: reset %t, %v", reset, err)
	}
	if offset, ok, err := c.Committed(t.Context(), group, q); offset != 0 || !ok || err != nil {
		t.Errorf("stored: %d %t %v", offset, ok, err)
	}
}

func TestClient_routeChangesWithTheTopic(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "ClientRoute", 2)
	c := newClient(t, p.Addr, func(cfg *rocketmq.Config) { cfg.RouteInterval = time.Second })
	if qs, err := c.Queues(t.Context(), topic); len(qs) != 2 || err != nil {
		t.Fatal(qs, err)
	}
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	stop := c.RouteChanged(topic, func() {
		if qs, err := c.Queues(ctx, topic); err == nil && len(qs) == 6 {
			cancel()
		}
	})
	defer stop()
	p.topic(t, topic, 6)
	<-ctx.Done()
	if qs, err := c.Queues(t.Context(), topic); len(qs) != 6 || err != nil {
		t.Errorf("after the topic grew: %v %v", qs, err)
	}
	if _, err := c.Queues(t.Context(), "NoSuchTopic"); !errors.Is(err, rocketmq.ErrTopicNotFound) {
		t.Errorf("an unknown topic: %v", err)
	}
}
