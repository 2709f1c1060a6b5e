package interop

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/ledger"
)

const orderedQueues = 4

// TestOrder_sharedWithJava puts two streamd members and an orderly Java one into a group. Every queue's lock is a member's, what
// fails stays in its place, what is rejected goes to the dead letters without a detour, and over every hand-over the messages
// of a queue come one after the other.
func TestOrder_sharedWithJava(t *testing.T) {
	p := mainCluster(t)
	topic, group := p.topic(t, "Ordered", orderedQueues), "ordered"
	c := newClient(t, p.Addr)
	queues, err := c.Queues(t.Context(), topic)
	if err != nil || len(queues) != orderedQueues {
		t.Fatalf("queues %v, %v", queues, err)
	}
	var produced []string
	produce := func(round int) {
		for i := range 15 {
			for _, q := range queues {
				word := "slow-20"
				switch {
				case i == 4 && q.ID == 1:
					word = "fail-1"
				case round == 0 && i == 6 && q.ID == 2:
					word = "reject"
				}
				body := fmt.Sprintf("%s %d-%d-%d", word, round, q.ID, i)
				if _, err := c.Send(t.Context(), &rocketmq.OutgoingMessage{Topic: topic, Queue: &q, Body: []byte(body)}); err != nil {
					t.Fatal(err)
				}
				produced = append(produced, body)
			}
		}
	}
	produce(0)
	keys := "order: queue"
	first := p.streamd(t, stream{group: group, topic: topic, keys: keys}).ready(t)
	locked(t, c, p, group, queues, 1)
	java := p.javaReady(t, "Member", group, topic, first.ledger, "queue")
	p.settled(t, group, topic, 2, orderedQueues)
	locked(t, c, p, group, queues, 2)
	produce(1)
	second := p.streamd(t, stream{group: group, topic: topic, keys: keys, ledger: first.ledger}).ready(t)
	p.settled(t, group, topic, 3, orderedQueues)
	produce(2)
	first.stop(t)
	if err := java.Write("leave"); err != nil {
		t.Fatal(err)
	}
	<-java.Done()
	produce(3)
	dead := func(body string) bool { return strings.HasPrefix(body, "reject") }
	// A clean hand-over among streamd members repeats nothing; Java's shutdown gives its locks back before its offsets.
	javas := []ledger.Cause{{What: "a hand-over with the Java member", Until: math.MaxInt64, Reach: time.Minute, Foreign: true}}
	var g *ledger.Group
	until(t, 2*time.Minute, "all messages to be handled", func() (bool, string) {
		entries, err := ledger.Read(first.ledger)
		if err != nil {
			return false, err.Error()
		}
		streamds := map[int]bool{first.PID(): true, second.PID(): true}
		g = ledger.CheckGroup(entries, produced, dead, javas, func(host int) bool { return streamds[host] }, true)
		return len(g.Lost) == 0, fmt.Sprintf("%d are not: %v", len(g.Lost), g.Lost)
	})
	second.stop(t)
	for _, fault := range g.Faults {
		t.Error(fault)
	}
	t.Logf("%d messages; handled again: %v; overlaps: %v; the Java member out of order: %d", len(produced), g.Again, g.Overlaps, g.Disorder)
	if m := readAll(t, c, group, wire.DLQTopic(group), 1)[0]; !strings.HasPrefix(m.Text, "reject") {
		t.Errorf("dead letter %q", m.Text)
	}
	freed(t, c, group, queues)
}

// locked waits until the brokers refuse every queue's lock to a stranger.
func locked(t *testing.T, c *rocketmq.Client, p *place, group string, queues []sdk.Queue, members int) {
	t.Helper()
	until(t, 90*time.Second, fmt.Sprintf("locks of %d members", members), func() (bool, string) {
		stranger, err := c.LockQueues(t.Context(), group, queues)
		if err != nil {
			return false, err.Error()
		}
		if err := c.UnlockQueues(t.Context(), group, stranger); err != nil {
			return false, err.Error()
		}
		return len(stranger) == 0, fmt.Sprintf("a stranger got %v", stranger)
	})
	until(t, time.Minute, fmt.Sprintf("%d members", members), func() (bool, string) {
		g, err := p.status(t, group)
		return err == nil && len(g.Members) == members, fmt.Sprint(len(g.Members), err)
	})
}
