package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/ledger"
)

// TestTools runs RocketMQ's own tools on a streamd member.
func TestTools(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "Tools", 2), "tools"
	c := newClient(t, p.Addr)
	var last rocketmq.SendResult
	for i := range 6 {
		last = send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "ok %d", i), Keys: []string{fmt.Sprint("key", i)}})
	}
	m := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	m.handled(t, 6, time.Minute)
	id := memberID(t, p, group)

	t.Run("consumerConnection", func(t *testing.T) {
		out := p.run(t, "consumerConnection", "-g", group)
		for _, want := range []string{id, topic, "%RETRY%" + group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %s in\n%s", want, out)
			}
		}
	})
	t.Run("consumerProgress", func(t *testing.T) {
		until(t, 20*time.Second, "all committed", func() (bool, string) {
			out := p.run(t, "consumerProgress", "-g", group, "-t", topic)
			return hasRow(out, topic, "broker-a", "0", "3", "3") && hasRow(out, topic, "broker-a", "1", "3", "3"), out
		})
		host, _, _ := strings.Cut(id, "@")
		if out := p.run(t, "consumerProgress", "-g", group, "-s", "true"); !hasRow(out, topic, "broker-a", "0", "3", "3", host) || !hasRow(out, topic, "broker-a", "1", "3", "3", host) {
			t.Errorf("consumerProgress does not say that %s has the queues:\n%s", host, out)
		}
	})
	t.Run("consumerStatus", func(t *testing.T) {
		out := p.run(t, "consumerStatus", "-g", group, "-i", id, "-s")
		for _, want := range []string{"#Consumer Subscription#", topic, "#Consumer MQ Detail#", "broker-a", "CONSUME_PASSIVELY", "#Consumer jstack#", "goroutine profile: total"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		// Of several members it says whether they agree on their subscriptions.
		if out := p.run(t, "consumerStatus", "-g", group, "-s"); strings.Contains(out, "exception") || !strings.Contains(out, id) {
			t.Errorf("consumerStatus of the group:\n%s", out)
		}
	})
	t.Run("queryMsgById", func(t *testing.T) {
		out := p.run(t, "queryMsgById", "-t", topic, "-i", last.OffsetMessageID)
		if !strings.Contains(out, last.OffsetMessageID) || !strings.Contains(out, "key5") || !strings.Contains(out, "CONSUMED") {
			t.Errorf("the tool does not say that %s consumed it:\n%s", group, out)
		}
	})
	t.Run("309", func(t *testing.T) {
		before := len(p.entries(t, m))
		out := p.run(t, "queryMsgById", "-t", topic, "-i", last.OffsetMessageID, "-g", group, "-d", id)
		if !strings.Contains(out, "CR_SUCCESS") {
			t.Errorf("the member was not asked, or refused:\n%s", out)
		}
		if after := p.entries(t, m); len(after) != before+2 {
			t.Errorf("the handler was called %d times", (len(after)-before)/2)
		}
	})
	t.Run("resetOffsetByTime", func(t *testing.T) {
		p.run(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()))
		_, err := ledger.Wait(within(t, patience), m.ledger, func(e []ledger.Entry) bool {
			n := ledger.Handled(e)
			return n["ok 0"] == 2 && n["ok 4"] == 2 && n["ok 5"] == 3
		})
		if err != nil {
			t.Errorf("not everything was handled again: %v", err)
		}
		until(t, 20*time.Second, "all committed again", func() (bool, string) {
			lag, err := p.lag(t, group)
			return lag == 0 && err == nil, fmt.Sprint(lag, err)
		})
	})
	t.Run("309 of what fails", func(t *testing.T) {
		r := send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("fail 6")})
		if out := p.run(t, "queryMsgById", "-t", topic, "-i", r.OffsetMessageID, "-g", group, "-d", id); !strings.Contains(out, "CR_LATER") || !strings.Contains(out, "told to fail") {
			t.Errorf("the tool does not say that the handler failed, and why:\n%s", out)
		}
	})
}

func (p *place) entries(t *testing.T, m *member) []ledger.Entry {
	t.Helper()
	e, err := ledger.Read(m.ledger)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// memberID is the client id of the only member.
func memberID(t *testing.T, p *place, group string) string {
	t.Helper()
	g, err := p.status(t, group)
	if err != nil || len(g.Members) != 1 {
		t.Fatalf("members %v, %v", g.Members, err)
	}
	if g.Members[0].Streamd == "" || g.Members[0].Language != "GO" || len(g.Subscriptions) != 2 {
		t.Errorf("group status: %s", asJSON(g))
	}
	return g.Members[0].ClientID
}
