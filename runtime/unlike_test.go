package runtime_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// beat has clients heartbeat in turn, every 30 s, as real ones do.
func (r *rig) beat(d time.Duration, clients ...string) {
	r.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); wait(30 * time.Second) {
		for _, id := range clients {
			if err := r.cluster.Client(id).Heartbeat(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		}
	}
}

// registered is the filter that the broker has for a topic of the group; "" when it has none.
func (r *rig) registered(topic string) string {
	for _, s := range r.cluster.Table(group) {
		if s.Topic == topic {
			return s.Filter()
		}
	}
	return ""
}

// javaMember joins as a Java client that subscribes to topics by some tags; its 307 tells what Java's does.
func (r *rig) javaMember(id string, subs ...rocketmq.Subscription) {
	r.t.Helper()
	subs = append(subs, rocketmq.Subscription{Topic: wire.RetryTopic(group), Expression: "*", Type: rocketmq.FilterTag, Version: time.Now().UnixMilli()})
	info := &wire.ConsumerRunningInfo{Properties: map[string]string{"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1"}}
	for _, s := range subs {
		data, err := wire.NewSubscriptionData(s.Topic, string(s.Type), s.Expression, s.Version)
		if err != nil {
			r.t.Fatal(err)
		}
		info.Subscriptions = append(info.Subscriptions, data)
	}
	err := r.cluster.Client(id).Join(r.t.Context(), rocketmq.GroupSpec{
		Name: group, Subscriptions: func() []rocketmq.Subscription { return subs }, RunningInfo: func(bool) *wire.ConsumerRunningInfo { return info },
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A rolling change of tags: each member reads by its own filter all the while, the difference is named on both sides and
// gone in the end, and the broker hears of no change that others would have to rebalance for.
func TestRollingChangeOfTags(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		old, next := subscribing(runtime.Subscription{Topic: topicName, Tags: "a"}), subscribing(runtime.Subscription{Topic: topicName, Tags: "a || b"})
		a, b := r.start(r.config("c1", old)), r.start(r.config("c2", old))
		wait(25 * time.Second)
		if n := len(a.Status().Streams[0].Unlike); n != 0 {
			t.Errorf("%d differences among members that are alike", n)
		}
		changes, rounds := r.cluster.Changes(), a.Status().Streams[0].Counters.Group.Rounds
		apply(t, b, r.config("c2", next))
		r.beat(2*time.Minute, "c1", "c2")
		for name, e := range map[string]*runtime.Runtime{"c2": a, "c1": b} {
			if u := e.Status().Streams[0].Unlike; len(u) != 1 || u[0].Member != name || u[0].Topic != topicName || u[0].Here == u[0].There {
				t.Errorf("differences: %+v, want one with %s", u, name)
			}
		}
		for q := range 4 {
			r.kinds(clustertest.Queue(topicName, q), 10)
		}
		wait(3 * time.Second)
		if n := r.handled(); n["Ta"] != 20 || n["Tb"] != 10 { // two of the four queues are read by the new filter
			t.Errorf("handled %v", n)
		}
		apply(t, a, r.config("c1", next))
		r.beat(2*time.Minute, "c1", "c2")
		if u, v := a.Status().Streams[0].Unlike, b.Status().Streams[0].Unlike; len(u)+len(v) != 0 {
			t.Errorf("after both changed: %+v, %+v", u, v)
		}
		if got := r.registered(topicName); got != "tags a || b" {
			t.Errorf("the broker has %q", got)
		}
		if n := r.cluster.Changes() - changes; n != 0 {
			t.Errorf("%d heartbeats made every member rebalance", n)
		}
		if n := a.Status().Streams[0].Counters.Group.Rounds - rounds; n > 4*60/20+12 {
			t.Errorf("%d rounds in 4 minutes", n)
		}
		r.stop(a)
		r.stop(b)
	})
}

// A rolling change of topics: the broker keeps the old set for as long as a member has it, so that members do not take
// turns in changing it.
func TestRollingChangeOfTopics(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		r.cluster.CreateTopic("U", 4)
		r.cluster.CreateTopic("V", 4)
		old := subscribing(runtime.Subscription{Topic: topicName}, runtime.Subscription{Topic: "U"})
		next := subscribing(runtime.Subscription{Topic: topicName}, runtime.Subscription{Topic: "V"})
		a := r.start(r.config("c1", old))
		wait(time.Second)
		b := r.start(r.config("c2", old))
		wait(25 * time.Second)
		apply(t, b, r.config("c2", next))
		r.beat(2*time.Minute, "c1", "c2")
		if r.registered("U") == "" || r.registered("V") == "" {
			t.Errorf("the broker has %+v", r.cluster.Table(group))
		}
		changes := r.cluster.Changes()
		r.beat(10*time.Minute, "c1", "c2")
		if n := r.cluster.Changes() - changes; n != 0 {
			t.Errorf("%d heartbeats of 40 made every member rebalance", n)
		}
		// Each topic is divided among those that subscribe to it: nobody else reads it.
		if u, v := ownedOf(a, "U"), ownedOf(b, "V"); len(u) != 4 || len(v) != 4 {
			t.Errorf("of 4 queues each: U %v, V %v", u, v)
		}
		for q := range 4 {
			r.kinds(clustertest.Queue("U", q), 2)
			r.kinds(clustertest.Queue("V", q), 2)
		}
		wait(3 * time.Second)
		if n := r.handled(); n["Ua"]+n["Ub"] != 8 || n["Va"]+n["Vb"] != 8 {
			t.Errorf("handled %v", n)
		}
		apply(t, a, r.config("c1", next))
		r.beat(2*time.Minute, "c1", "c2")
		if r.registered("U") != "" || r.registered("V") != "all" {
			t.Errorf("after both changed the broker has %+v", r.cluster.Table(group))
		}
		if v, w := ownedOf(a, "V"), ownedOf(b, "V"); len(v) != 2 || len(w) != 2 {
			t.Errorf("V is divided into %v and %v", v, w)
		}
		if n := a.Status().Streams[0].Counters.Group.Overlaps + b.Status().Streams[0].Counters.Group.Overlaps; n != 0 {
			t.Errorf("%d overlaps", n)
		}
		r.stop(a)
		r.stop(b)
	})
}

// A Java member keeps its filter at the broker, which filters its pulls by that: a streamd that joins with another one
// neither replaces it nor takes its topics away.
func TestJavaMembersKeepTheirFilters(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		r.cluster.CreateTopic("U", 4)
		r.javaMember("j1", rocketmq.Subscription{Topic: topicName, Expression: "x || y", Type: rocketmq.FilterTag, Version: 7}, rocketmq.Subscription{Topic: "U", Expression: "*", Type: rocketmq.FilterTag, Version: 7})
		e := r.start(r.config("c1", subscribing(runtime.Subscription{Topic: topicName, Tags: "a"})))
		if got := r.registered(topicName); got != "tags x || y" {
			t.Errorf("the first heartbeat made it %q", got)
		}
		r.beat(5*time.Minute, "c1")
		if got, u := r.registered(topicName), r.registered("U"); got != "tags x || y" || u != "all" {
			t.Errorf("the broker has %q, and for U %q", got, u)
		}
		if n := r.cluster.Changes(); n != 0 {
			t.Errorf("%d changes", n)
		}
		st := e.Status().Streams[0]
		if len(st.Unlike) != 2 || !strings.Contains(st.Unlike[0].String(), "member j1 filters topic T by tags x || y, and this member by tags a") ||
			!strings.Contains(st.Unlike[1].String(), "subscribes to topic U") {
			t.Errorf("differences: %+v", st.Unlike)
		}
		for q := range 4 {
			r.kinds(clustertest.Queue(topicName, q), 10)
		}
		wait(3 * time.Second)
		if n := r.handled(); n["Ta"] != 10 || n["Tb"] != 0 { // two of four queues are the Java member's
			t.Errorf("handled %v", n)
		}
		r.cluster.Kill("j1")
		r.beat(2*time.Minute, "c1")
		if got, u := r.registered(topicName), r.registered("U"); got != "tags a" || u != "" {
			t.Errorf("after the Java member left the broker has %q, and for U %q", got, u)
		}
		r.stop(e)
	})
}

// Queues that fall to a member which does not subscribe to their topic: a Java member that does subscribe leaves them to
// it, so they are named, and not taken. Without such a member they are taken, whatever the other one is.
func TestQueuesOfMembersThatDoNotSubscribe(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		r.cluster.CreateTopic("U", 6)
		all := rocketmq.Subscription{Topic: topicName, Expression: "*", Type: rocketmq.FilterTag, Version: 1}
		r.javaMember("j1", all)
		e := r.start(r.config("c1", subscribing(runtime.Subscription{Topic: topicName}, runtime.Subscription{Topic: "U"})))
		wait(time.Minute)
		a := e.Status().Streams[0].Assignments["U"]
		if got := ownedOf(e, "U"); len(got) != 6 || !slices.Equal(a.Absent, []string{"j1"}) || len(a.Unread) != 0 {
			t.Errorf("owns %v, %+v", got, a)
		}
		if got := ownedOf(e, topicName); len(got) != 2 {
			t.Errorf("of the topic that both subscribe to it owns %v", got)
		}
		r.javaMember("j2", all, rocketmq.Subscription{Topic: "U", Expression: "*", Type: rocketmq.FilterTag, Version: 1})
		wait(time.Minute)
		a = e.Status().Streams[0].Assignments["U"]
		if got := ownedOf(e, "U"); len(got) != 2 || !slices.Equal(a.Absent, []string{"j1"}) || !slices.Equal(a.Unread, []string{"U/broker-a/2", "U/broker-a/3"}) {
			t.Errorf("beside a Java member that subscribes: owns %v, %+v", got, a)
		}
		r.stop(e)
	})
}

// A member that does not answer is not known to be absent: its share stays its own.
func TestSilentMembersKeepTheirShare(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		r.cluster.CreateTopic("U", 4)
		var silent atomic.Bool
		silent.Store(true)
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "PeerInfo" && silent.Load() {
				return rocketmq.ErrMemberOffline
			}
			return nil
		}
		a := r.start(r.config("c1", subscribing(runtime.Subscription{Topic: topicName}, runtime.Subscription{Topic: "U"})))
		b := r.start(r.config("c2"))
		wait(time.Minute)
		if got := ownedOf(a, "U"); len(got) != 2 {
			t.Errorf("owns %v while the other member is silent", got)
		}
		silent.Store(false)
		wait(time.Minute)
		if got := ownedOf(a, "U"); len(got) != 4 {
			t.Errorf("owns %v once it is known", got)
		}
		silent.Store(true)
		wait(time.Minute)
		if got := ownedOf(a, "U"); len(got) != 2 {
			t.Errorf("owns %v when it is silent again", got)
		}
		r.stop(a)
		r.stop(b)
	})
}
