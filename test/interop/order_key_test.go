package interop

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/ledger"
)

// keyed puts messages of several keys into every queue of a topic; a body names its key in the second word.
type keyed struct {
	t      *testing.T
	c      *rocketmq.Client
	queues []sdk.Queue
	bodies []string
}

// put sends n messages of each of three keys to each queue. word says what becomes of message i of a key.
func (k *keyed) put(round string, n int, word func(q sdk.Queue, key string, i int) string) {
	k.t.Helper()
	for i := range n {
		for _, q := range k.queues {
			for _, key := range []string{"red", "green", "blue"} {
				body := fmt.Sprintf("%s %d-%s %s/%d", word(q, key, i), q.ID, key, round, i)
				if _, err := k.c.Send(k.t.Context(), &rocketmq.OutgoingMessage{Topic: q.Topic, Queue: &q, ShardingKey: key, Body: []byte(body)}); err != nil {
					k.t.Fatal(err)
				}
				k.bodies = append(k.bodies, body)
			}
		}
	}
}

// byKey makes each key of a queue a queue of its own: what CheckGroup then says of order, it says of keys.
func byKey(entries []ledger.Entry) []ledger.Entry {
	all := slices.Clone(entries)
	for i := range all {
		all[i].Queue += " " + strings.Fields(all[i].Body)[1]
	}
	return all
}

// TestOrder_ofKeys holds `order: key` to its promise on a real broker: within each key messages come one after the other over
// retries in place, a crash of the plugin and hand-overs between two members. A head that is blocked holds up its own key only,
// and `group status` shows it.
func TestOrder_ofKeys(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "OrderKeys", orderedQueues), "order-keys"
	c := newClient(t, p.Addr)
	queues, err := c.Queues(t.Context(), topic)
	if err != nil || len(queues) != orderedQueues {
		t.Fatalf("queues %v, %v", queues, err)
	}
	k := &keyed{t: t, c: c, queues: queues}
	k.put("first", 12, func(q sdk.Queue, key string, i int) string {
		switch {
		case i == 3 && q.ID == 0 && key == "red":
			return "gate"
		case i == 5 && key == "green":
			return "fail-2"
		case i == 7 && q.ID == 2 && key == "blue":
			return "reject"
		}
		return "slow-5"
	})
	gated := slices.IndexFunc(k.bodies, func(b string) bool { return strings.HasPrefix(b, "gate") })
	keys := "order: key\nbatch: {max: 4}\nretry: {max_retries: 2, backoff: {first: 100ms, max: 1s}}\non_exhausted: block"
	first := p.streamd(t, stream{group: group, topic: topic, keys: keys}).ready(t)
	locked(t, c, p, group, queues, 1)

	// All but what stands behind the gate is handled, and the status shows whom the others wait for.
	first.handled(t, len(k.bodies)-1-9, time.Minute) // without the rejected one, and the 9 from the gate on
	var head string
	until(t, 30*time.Second, "the blocked head in the status", func() (bool, string) {
		g, err := p.status(t, group)
		if err != nil || len(g.Members) != 1 || len(g.Members[0].Heads) != 1 {
			return false, fmt.Sprint(err, asJSON(g))
		}
		h := g.Members[0].Heads[0]
		head = fmt.Sprintf("%s@%d key %s attempt %d blocked %t: %s", h.Queue, h.Offset, h.Key, h.Attempt, h.Blocked, h.Text)
		return h.Blocked && h.Queue.ID == 0 && h.Key == "red" && h.Attempt >= 3 && strings.Contains(h.Text, "the gate is shut"), head
	})
	t.Log("blocked: ", head)
	if n := ledger.Handled(p.entries(t, first)); n[k.bodies[gated]] != 0 || len(n) != len(k.bodies)-1-9 {
		t.Errorf("%d bodies are handled, the gated one %d times", len(n), n[k.bodies[gated]])
	}

	happens := func(what string, reach time.Duration) ledger.Cause {
		now := time.Now()
		return ledger.Cause{What: what, Host: first.PID(), From: now.UnixNano(), Until: now.Add(time.Minute).UnixNano(), Reach: reach}
	}
	slow := func(sdk.Queue, string, int) string { return "slow-40" }

	// The plugin dies with work in hand.
	k.put("second", 6, slow)
	var pid int
	until(t, 30*time.Second, "work in the plugin's hand", func() (bool, string) {
		e := ledger.InFlight(p.entries(t, first))
		for i := range e {
			pid = e[i].PID
		}
		return len(e) > 0, fmt.Sprint(len(e))
	})
	crash := happens("the plugin's crash", time.Second)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	// A second member takes half of the queues, and later all of them.
	// What was handled behind the gate, and nothing of another queue, comes again: an offset cannot say "all but this one".
	behind := happens("a hand-over behind the blocked head", time.Hour)
	behind.Until = math.MaxInt64 // a hand-over is as late as the first member's stop
	second := p.streamd(t, stream{group: group, topic: topic, keys: keys, ledger: first.ledger}).ready(t)
	k.put("third", 6, slow)
	until(t, time.Minute, "two owners", func() (bool, string) {
		g, err := p.status(t, group)
		owners := map[string]bool{}
		for _, q := range g.Queues {
			if q.Topic == topic && len(q.Owners) == 1 {
				owners[q.Owners[0]] = true
			}
		}
		return err == nil && len(owners) == 2, fmt.Sprint(err, asJSON(g))
	})
	if err := os.WriteFile(first.ledger+".open", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.put("fourth", 6, slow)
	first.stop(t)
	k.put("fifth", 3, slow)

	ours := func(int) bool { return true }
	dead := func(body string) bool { return strings.HasPrefix(body, "reject") }
	until(t, 90*time.Second, "all messages to be handled", func() (bool, string) {
		left := ledger.CheckGroup(p.entries(t, first), k.bodies, dead, nil, ours, false).Lost
		return len(left) == 0, fmt.Sprintf("%d are not: %.300v", len(left), left)
	})
	second.stop(t)
	gate, others := apart(p.entries(t, first), k.bodies[gated])
	for _, part := range []struct {
		name    string
		entries []ledger.Entry
		causes  []ledger.Cause
	}{{"the queue of the gate", gate, []ledger.Cause{crash, behind}}, {"the other queues", others, []ledger.Cause{crash}}} {
		all := ledger.CheckGroup(part.entries, k.bodies, dead, part.causes, ours, false)
		keys := ledger.CheckGroup(byKey(part.entries), k.bodies, dead, part.causes, ours, true)
		for _, fault := range append(all.Faults, keys.Faults...) {
			t.Error(fault)
		}
		t.Logf("%s: handled again: %v; overlaps: %v", part.name, all.Again, all.Overlaps)
	}
	if m := readAll(t, c, group, wire.DLQTopic(group), 1)[0]; !strings.HasPrefix(m.Text, "reject") {
		t.Errorf("dead letter %q", m.Text)
	}
	freed(t, c, group, queues)
}

// apart parts the entries of the queue in which body stands from the others.
func apart(entries []ledger.Entry, body string) (of, others []ledger.Entry) {
	queue := ""
	for _, e := range entries {
		if e.Body == body {
			queue = e.Queue
		}
	}
	for _, e := range entries {
		if e.Queue == queue {
			of = append(of, e)
		} else {
			others = append(others, e)
		}
	}
	return of, others
}
