package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// outcomes is what a producer group says of its transactions, by body, and how often it was asked.
type outcomes struct {
	mu    sync.Mutex
	say   map[string]rocketmq.Outcome
	asked map[string]int
}

func (o *outcomes) check(_ context.Context, h *rocketmq.HalfMessage) rocketmq.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	body := string(h.Message.Body)
	o.asked[body]++
	return o.say[body]
}

func (o *outcomes) times(body string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[body]
}

// transactions prepares messages and ends them in every way: at once, and by the answer to the broker's question.
func transactions(t *testing.T, p *place) {
	t.Helper()
	topic, group := p.topic(t, "Transactions", 2), "transactions"
	c := newClient(t, p.Addr)
	o := &outcomes{asked: map[string]int{}, say: map[string]rocketmq.Outcome{"asked, committed": rocketmq.OutcomeCommit, "asked, rolled back": rocketmq.OutcomeRollback}}
	if err := c.JoinProducers(t.Context(), rocketmq.ProducerSpec{Group: group, Check: o.check}); err != nil {
		t.Fatal(err)
	}
	for body, outcome := range map[string]rocketmq.Outcome{
		"committed": rocketmq.OutcomeCommit, "rolled back": rocketmq.OutcomeRollback,
		"asked, committed": rocketmq.OutcomeUnknown, "asked, rolled back": rocketmq.OutcomeUnknown,
	} {
		half, err := c.Prepare(t.Context(), group, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body), Keys: []string{"k"}, Tag: "tag"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(t.Context(), half, outcome); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	until(t, 90*time.Second, "the broker's questions", func() (bool, string) {
		return o.times("asked, committed") > 0 && o.times("asked, rolled back") > 0, fmt.Sprint(o.times("asked, committed"), o.times("asked, rolled back"))
	})
	all := byText(t, readAll(t, c, "transactions-reader", topic, 2))
	for _, body := range []string{"committed", "asked, committed"} {
		if m, ok := all[body]; !ok || m.Props["KEYS"] != "k" || m.Props["TAGS"] != "tag" {
			t.Errorf("%q is not to be read as it was sent: %v", body, m.Props)
		}
	}
	for _, body := range []string{"committed", "rolled back"} {
		if n := o.times(body); n != 0 {
			t.Errorf("%q had ended and was asked about %d times", body, n)
		}
	}
	if err := c.LeaveProducers(t.Context(), group); err != nil {
		t.Error(err)
	}
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	transactions(t, mainCluster(t))
}

// shortHeartbeats stays a member by heartbeats without subscriptions where the broker knows them, and by full ones elsewhere: its
// messages, its filter and a second member's change of the group's subscriptions are as ever.
func shortHeartbeats(t *testing.T, p *place) {
	t.Helper()
	topic, group := p.topic(t, "ShortHeartbeats", 1), "short-heartbeats"
	short := func(c *rocketmq.Config) { c.ShortHeartbeats, c.HeartbeatInterval = true, 200*time.Millisecond }
	a, b := newClient(t, p.Addr, short), newClient(t, p.Addr, short)
	version, tags := time.Now().UnixMilli(), "one"
	var mu sync.Mutex
	spec := groupOf(group, topic)
	spec.Subscriptions = func() []rocketmq.Subscription {
		mu.Lock()
		defer mu.Unlock()
		return []rocketmq.Subscription{{Topic: topic, Expression: tags, Type: rocketmq.FilterTag, Version: version}}
	}
	join(t, a, spec)
	join(t, b, spec)
	members := func(n int) {
		t.Helper()
		until(t, 20*time.Second, fmt.Sprintf("%d members", n), func() (bool, string) {
			ids, err := a.Members(t.Context(), group, topic)
			return err == nil && len(ids) == n, fmt.Sprint(ids, err)
		})
	}
	beats := func() {
		t.Helper()
		for range 5 {
			if err := a.Heartbeat(t.Context()); err != nil {
				t.Error(err)
			}
			if err := b.Heartbeat(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	known := func(want string) {
		t.Helper()
		until(t, 20*time.Second, "the broker's subscription "+want, func() (bool, string) {
			table, err := a.ConsumerConnections(t.Context(), "broker-a", group)
			if err != nil {
				return false, err.Error()
			}
			return table.Subscriptions[topic].SubString == want, asJSON(table.Subscriptions)
		})
	}
	beats()
	members(2)
	known("one")
	mu.Lock()
	version, tags = version+1, "one || two"
	mu.Unlock()
	beats()
	known("one || two")
	beats()
	members(2)
	if err := b.Leave(t.Context(), group); err != nil {
		t.Error(err)
	}
	beats()
	members(1)
}

func TestShortHeartbeats(t *testing.T) {
	t.Parallel()
	shortHeartbeats(t, mainCluster(t))
}
