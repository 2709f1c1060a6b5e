package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/ledger"
)

// shortLocks lets a broker's queue locks run out after 35 s in place of 60: whoever holds one for longer has renewed it.
const shortLocks = "-Drocketmq.broker.rebalance.lockMaxLiveTime=35000"

// orderly has a streamd member with `order: queue` lock two queues. Called again, some time later, the result checks that the locks
// were renewed, that an orderly Java member of the group gets queues that were unlocked for it, that what fails keeps its place,
// and that nobody holds a lock in the end.
func orderly(t *testing.T, p *place) (check func()) {
	t.Helper()
	const queues = 2
	topic, group := p.topic(t, "Orderly", queues), "orderly"
	c := newClient(t, p.Addr)
	all, err := c.Queues(t.Context(), topic)
	if err != nil || len(all) != queues {
		t.Fatalf("queues %v, %v", all, err)
	}
	var produced []string
	produce := func(round int) {
		for i := range 10 {
			for _, q := range all {
				word := "ok"
				if i == 3 {
					word = "fail-1"
				}
				body := fmt.Sprintf("%s %d-%d-%d", word, round, q.ID, i)
				send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Queue: &q, Body: []byte(body)})
				produced = append(produced, body)
			}
		}
	}
	produce(0)
	m := p.streamd(t, stream{group: group, topic: topic, keys: "order: queue\nretry: {backoff: {first: 200ms, max: 1s}}"}).ready(t)
	m.handled(t, len(produced), time.Minute)
	locked(t, c, p, group, all, 1)
	since := time.Now()
	return func() {
		t.Helper()
		timer := time.NewTimer(time.Until(since.Add(40 * time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		if stranger := lockAndUnlock(t, c, group, all); stranger > 0 {
			t.Errorf("%s after they were taken a stranger got %d of %d locks: they were not renewed", time.Since(since).Round(time.Second), stranger, queues)
		}
		java := p.javaReady(t, "Member", group, topic, m.ledger, "queue")
		p.settled(t, group, topic, 2, queues)
		produce(1)
		m.handled(t, len(produced), time.Minute)
		hosts := map[int]int{}
		for _, e := range p.entries(t, m) {
			if strings.Contains(e.Body, " 1-") && e.Event == ledger.End {
				hosts[e.Host]++
			}
		}
		if len(hosts) != 2 {
			t.Errorf("after the Java member had come messages were handled by %v", hosts)
		}
		m.stop(t)
		produce(2)
		m.handled(t, len(produced), time.Minute)
		if err := java.Write("leave"); err != nil {
			t.Fatal(err)
		}
		<-java.Done()
		freed(t, c, group, all)
		g := ledger.CheckGroup(p.entries(t, m), produced, rejected, nil, func(host int) bool { return host == m.PID() }, true)
		for _, fault := range append(g.Faults, g.Lost...) {
			t.Error(fault)
		}
	}
}

// freed wants all locks free after all have left. A broker may take what a member said last a moment later, but not as late as a lock
// runs out by itself.
func freed(t *testing.T, c *rocketmq.Client, group string, queues []sdk.Queue) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(10 * time.Second); ; <-tick.C {
		free := lockAndUnlock(t, c, group, queues)
		if free == len(queues) {
			return
		}
		if time.Now().After(limit) {
			t.Errorf("after all have left %d of %d locks are free", free, len(queues))
			return
		}
	}
}

// lockAndUnlock is a stranger that asks for queues' locks and gives back what it gets.
func lockAndUnlock(t *testing.T, c *rocketmq.Client, group string, queues []sdk.Queue) int {
	t.Helper()
	got, err := c.LockQueues(t.Context(), group, queues)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UnlockQueues(t.Context(), group, got); err != nil {
		t.Fatal(err)
	}
	return len(got)
}
