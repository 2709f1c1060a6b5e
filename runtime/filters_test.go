package runtime_test

import (
	"errors"
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

func subscribing(subs ...runtime.Subscription) func(*runtime.StreamConfig) {
	return func(s *runtime.StreamConfig) { s.Subscriptions = subs }
}

// kinds puts n messages into a queue, whose property and tag tell one of two kinds.
func (r *rig) kinds(q sdk.Queue, n int) {
	for i := range n {
		kind := []string{"a", "b"}[i%2]
		r.cluster.Put(q, rocketmq.OutgoingMessage{Tag: kind, Body: []byte(q.Topic + kind), Properties: map[string]string{"kind": kind}})
	}
}

// handled counts deliveries by body.
func (r *rig) handled() map[string]int {
	n := map[string]int{}
	for _, d := range r.handler.Handled() {
		n[d.Body]++
	}
	return n
}

// A filter by SQL92 travels with each pull, in heartbeats and in 307; the broker alone judges it, and what it leaves out is
// passed and committed.
func TestSQL92(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		r.kinds(clustertest.Queue(topicName, 0), 100)
		e := r.start(r.config("c1", subscribing(runtime.Subscription{Topic: topicName, SQL: "kind = 'a'"})))
		wait(5 * time.Second)
		if n := r.handled(); n["Ta"] != 50 || n["Tb"] != 0 {
			t.Errorf("handled %v", n)
		}
		r.committedAll(1)
		want := rocketmq.Subscription{Topic: topicName, Expression: "kind = 'a'", Type: rocketmq.FilterSQL92}
		table := r.cluster.Table(group)
		i := slices.IndexFunc(table, func(s rocketmq.Subscription) bool { return s.Topic == topicName })
		if i < 0 || !table[i].SameFilter(&want) {
			t.Errorf("registered: %+v", table)
		}
		info := r.cluster.Spec(group, "c1").RunningInfo(false)
		if !slices.ContainsFunc(info.Subscriptions, func(d wire.SubscriptionData) bool {
			return d.Topic == topicName && d.ExpressionType == wire.ExpressionSQL92 && d.SubString == want.Expression
		}) {
			t.Errorf("307 tells %+v", info.Subscriptions)
		}
		r.stop(e)
	})
}

// An expression that the broker cannot read fails the start and names itself; a reload with it changes nothing. A real
// broker would ignore it in pulls and let everything pass.
func TestSQL92ThatCannotBeRead(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		r.kinds(clustertest.Queue(topicName, 0), 10)
		bad := r.config("c1", subscribing(runtime.Subscription{Topic: topicName, SQL: "bad >"}))
		e, err := runtime.New(bad)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Start(t.Context())
		var refused *rocketmq.FilterError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), `"bad >"`) || !strings.Contains(err.Error(), "topic T") {
			t.Fatalf("Start: %v", err)
		}
		if e.State() != runtime.StateCreated || len(r.cluster.Members(group)) != 0 {
			t.Errorf("after a refused start: %s, members %v", e.State(), r.cluster.Members(group))
		}
		good := r.config("c1", subscribing(runtime.Subscription{Topic: topicName, Tags: "a"}))
		if err := e.Apply(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(time.Second)
		if err := e.Apply(t.Context(), bad); !errors.As(err, &refused) {
			t.Errorf("Apply: %v", err)
		}
		r.kinds(clustertest.Queue(topicName, 0), 10)
		wait(5 * time.Second)
		if n := r.handled(); n["Ta"] != 10 || n["Tb"] != 0 {
			t.Errorf("handled %v", n)
		}
		r.stop(e)
	})
}

// A broker without property filters is waited for: the status says which setting to change. A reload is refused.
func TestSQL92ThatIsSwitchedOff(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		r.kinds(clustertest.Queue(topicName, 0), 10)
		var on atomic.Bool
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op != "CheckFilter" || on.Load() {
				return nil
			}
			return &rocketmq.FilterError{
				Subscription: rocketmq.Subscription{Topic: q.Topic, Type: rocketmq.FilterSQL92}, Unsupported: true,
				Err: &rocketmq.ResponseError{Request: wire.ReqCheckClientConfig, Code: wire.RespSystemError, Remark: "The broker does not support consumer to filter message by SQL92", Broker: "broker-a"},
			}
		}
		cfg := r.config("c1", subscribing(runtime.Subscription{Topic: topicName, SQL: "kind = 'a'"}))
		e := r.start(cfg)
		wait(20 * time.Second)
		st := e.Status()
		if st.Streams[0].Joined || !holds(st, runtime.HoldFilter) || !strings.Contains(st.Streams[0].Holds[0].Text, "enablePropertyFilter=true") {
			t.Errorf("while it is off: %+v", st.Streams[0])
		}
		on.Store(true)
		wait(20 * time.Second)
		if n := r.handled(); n["Ta"] != 5 || n["Tb"] != 0 {
			t.Errorf("handled %v", n)
		}
		on.Store(false)
		cfg.Streams[0].Subscriptions = []runtime.Subscription{{Topic: topicName, SQL: "kind = 'b'"}}
		if err := e.Apply(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "enablePropertyFilter") {
			t.Errorf("Apply: %v", err)
		}
		r.stop(e)
	})
}

// The filter of a topic that comes later is looked at before its queues are read.
func TestSQL92OfATopicThatComesLater(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		e := r.start(r.config("c1", subscribing(runtime.Subscription{Topic: topicName}, runtime.Subscription{Topic: "U", SQL: "bad >"})))
		wait(time.Second)
		r.cluster.CreateTopic("U", 1)
		r.kinds(clustertest.Queue("U", 0), 10)
		r.kinds(clustertest.Queue(topicName, 0), 10)
		wait(time.Minute)
		if n := r.handled(); n["Ua"]+n["Ub"] != 0 || n["Ta"] != 5 || n["Tb"] != 5 {
			t.Errorf("handled %v", n)
		}
		if st := e.Status(); !holds(st, runtime.HoldFilter) {
			t.Errorf("holds: %+v", st.Streams[0].Holds)
		}
		r.stop(e)
	})
}

// Several topics in one group, each with its own filter, retries included.
func TestSeveralTopicsWithTheirFilters(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		for _, topic := range []string{"U", "V", "W"} {
			r.cluster.CreateTopic(topic, 2)
		}
		e := r.start(r.config("c1", subscribing(
			runtime.Subscription{Topic: topicName, Tags: "a"}, runtime.Subscription{Topic: "U", Tags: "b || c"},
			runtime.Subscription{Topic: "V"}, runtime.Subscription{Topic: "W", SQL: "kind = 'b'"},
		)))
		wait(time.Second)
		for _, topic := range []string{topicName, "U", "V", "W"} {
			for q := range 2 {
				r.kinds(clustertest.Queue(topic, q), 20)
			}
		}
		wait(5 * time.Second)
		n := r.handled()
		for body, want := range map[string]int{"Ta": 20, "Tb": 0, "Ua": 0, "Ub": 20, "Va": 20, "Vb": 20, "Wa": 0, "Wb": 20} {
			if n[body] != want {
				t.Errorf("%s handled %d times, want %d", body, n[body], want)
			}
		}
		r.committedAll(2)
		r.stop(e)
	})
}

func TestFiltersAreChecked(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, cluster: clustertest.New(), handler: &clustertest.Handler{Do: ack}}
	for _, tt := range []struct {
		sub  runtime.Subscription
		want string
	}{
		{runtime.Subscription{Topic: "T", Tags: "a", SQL: "b = 1"}, "exclude each other"},
		{runtime.Subscription{Topic: "T", SQL: " "}, "blank"},
		{runtime.Subscription{Topic: "T", Tags: "a = 1"}, "SQL"},
		{runtime.Subscription{Topic: "T", Tags: "||"}, "no tag"},
	} {
		if _, err := runtime.New(r.config("c1", subscribing(tt.sub))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.sub, err)
		}
	}
}
