package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// smallFiles are settings of a broker of one test, under which old messages can be made to expire within seconds.
func smallFiles() map[string]string {
	all := quickRetries()
	all["mappedFileSizeCommitLog"], all["cleanResourceInterval"] = "1048576", "1000"
	return all
}

// movedAbout is what depends on the version of what mqadmin does to a running group, and of where a group starts.
func movedAbout(t *testing.T, p *place) {
	t.Helper()
	scenes := map[string]scene{"new group": newGroups, "young queue": youngQueue, "unsupported filter": filterUnsupported}
	if p.Version == cluster.Old { // later versions do as the main one
		scenes["back"], scenes["skipped"], scenes["back, nobody there"] = steerBack, steerSkipped, steerStopped
	}
	side(t, p, scenes)
	absentGroup(t, p)
	retained(t, p)
}

// absentGroup: brokers that make no groups ignore the heartbeat of one that is not there. It changes the broker's settings.
func absentGroup(t *testing.T, p *place) {
	t.Helper()
	topic, group, c := p.steered(t, "Absent", 4)
	broker := p.Brokers[0].Addr
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "autoCreateSubscriptionGroup", "-v", "false")
	m := p.streamd(t, stream{group: group, topic: topic})
	m.tells(t, "group_missing", "mqadmin updateSubGroup")
	p.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", group)
	m.handled(t, 4, time.Minute)
	p.idle(t, c, group, topic)
	m.stop(t)
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "autoCreateSubscriptionGroup", "-v", "true")
}

// youngQueue: for a queue without an offset 4.9 answers 0 as if that were stored; the client tells the two apart.
func youngQueue(t *testing.T, p *place) {
	t.Helper()
	topic, group, c := p.steered(t, "Young", 8)
	join(t, c, groupOf(group, topic))
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	if offset, ok, err := c.Committed(t.Context(), group, q); ok || err != nil {
		t.Errorf("before the first commit: %d %t %v", offset, ok, err)
	}
	if _, err := c.Commit(t.Context(), group, q, 0); err != nil {
		t.Fatal(err)
	}
	if offset, ok, err := c.Committed(t.Context(), group, q); offset != 0 || !ok || err != nil {
		t.Errorf("after 0 was committed: %d %t %v", offset, ok, err)
	}
	if offset, ok, err := c.Committed(t.Context(), group, sdk.Queue{Topic: topic, Broker: "broker-a", ID: 1}); ok || err != nil {
		t.Errorf("the other queue: %d %t %v", offset, ok, err)
	}
}

// retained: groups that begin, or come back, after the broker dropped a topic's first messages. It drops those of every
// other topic of the cluster too.
func retained(t *testing.T, p *place) {
	t.Helper()
	topic := p.topic(t, "Retained", 2)
	c := newClient(t, p.Addr, func(cfg *rocketmq.Config) { cfg.CompressAbove = -1 })
	queues, err := c.Queues(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"retained-late", "retained-lost"} {
		join(t, c, groupOf(group, topic)) // brokers make a group at its first heartbeat, and store offsets of none that is not there
	}
	commit := func(group string, q sdk.Queue) {
		if _, err := c.Commit(t.Context(), group, q, 2); err != nil {
			t.Fatal(err)
		}
	}
	commit("retained-late", queues[0])
	commit("retained-late", queues[1])
	commit("retained-lost", queues[0])
	for _, group := range []string{"retained-late", "retained-lost"} {
		if err := c.Leave(t.Context(), group); err != nil {
			t.Fatal(err)
		}
	}
	first, sent := fillFiles(t, c, topic)
	broker := p.Brokers[0].Addr
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "fileReservedTime", "-v", "0")
	until(t, time.Minute, "messages to expire", func() (bool, string) {
		out := p.run(t, "deleteExpiredCommitLog", "-b", broker)
		for _, q := range queues {
			if low, err := c.MinOffset(t.Context(), q); err != nil || low != first[q.ID] {
				return false, fmt.Sprint(q, low, first, err, out)
			}
		}
		return true, ""
	})
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "fileReservedTime", "-v", "72")
	side(t, p, map[string]scene{
		"offset expired": func(t *testing.T, p *place) {
			m := p.streamd(t, stream{group: "retained-late", topic: topic}).ready(t)
			p.idle(t, c, "retained-late", topic)
			checkRead(t, p, m, queues, first, sent)
			if n, want := m.counted(t, "expired"), first[0]+first[1]-4; n != uint64(want) { //nolint:gosec // both are small
				t.Errorf("%d messages are counted as expired, want %d", n, want)
			}
			m.stop(t)
		},
		"from the first": func(t *testing.T, p *place) {
			m := p.streamd(t, stream{group: "retained-first", topic: topic}).ready(t)
			p.idle(t, c, "retained-first", topic)
			checkRead(t, p, m, queues, first, sent)
			m.stop(t)
		},
		"from before the first": func(t *testing.T, p *place) {
			m := p.streamd(t, stream{group: "retained-time", topic: topic, from: "{timestamp: 2020-01-01T00:00:00Z}"}).ready(t)
			p.idle(t, c, "retained-time", topic)
			checkRead(t, p, m, queues, first, sent)
			m.stop(t)
		},
		"from the last": func(t *testing.T, p *place) {
			m := p.streamd(t, stream{group: "retained-last", topic: topic, from: "last"}).ready(t)
			p.idle(t, c, "retained-last", topic)
			if n := len(p.entries(t, m)); n != 0 {
				t.Errorf("%d deliveries to a group that starts at the end", n)
			}
			m.stop(t)
		},
		"offset lost": func(t *testing.T, p *place) {
			m := p.streamd(t, stream{group: "retained-lost", topic: topic}).ready(t)
			m.tells(t, "offsets_lost", "streamd group release retained-lost --at", "mqadmin resetOffsetByTime")
			if p.Version == cluster.Old { // its reset wants an offset of every queue
				out, err := p.try(t, "group", "release", "retained-lost", "--at", "min", "-n", p.Addr)
				if err != nil || !strings.Contains(out, "taken") {
					t.Errorf("group release: %v\n%s", err, out)
				}
			} else {
				p.reset(t, "retained-lost", topic, true)
			}
			lost := queues[1:] // the other one is read again where it was moved too
			until(t, time.Minute, "the held queue's messages", func() (bool, string) {
				n := 0
				for _, e := range p.entries(t, m) {
					if e.Event == ledger.Start && e.Queue == lost[0].String() {
						n++
					}
				}
				return n >= sent-int(first[lost[0].ID]), fmt.Sprint(n)
			})
			checkRead(t, p, m, lost, first, sent)
			m.stop(t)
		},
	})
}

// fillFiles sends a topic of two queues what fills several files of the broker's log, equally much to each queue, and tells
// where each of them begins in the last file. The broker drops the others one by one, that one never.
func fillFiles(t *testing.T, c *rocketmq.Client, topic string) (first map[int32]int64, sent int) {
	t.Helper()
	const fileSize, files = 1 << 20, 3
	padding := strings.Repeat(" ", 9000)
	first = map[int32]int64{}
	began := int64(-1)
	for file := int64(-1); ; sent++ {
		var at int64
		for _, q := range []int32{0, 1} {
			r := send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "ok %d/%d%s", q, sent, padding), Queue: &sdk.Queue{Topic: topic, Broker: "broker-a", ID: q}})
			var err error
			if _, at, err = wire.ParseOffsetID(r.OffsetMessageID); err != nil {
				t.Fatal(err)
			}
			if at/fileSize != file {
				file = at / fileSize
				clear(first)
			}
			if _, ok := first[q]; !ok {
				first[q] = r.Offset
			}
		}
		if began < 0 {
			began = at / fileSize
		}
		if at/fileSize >= began+files && at%fileSize > fileSize/2 {
			return first, sent + 1
		}
	}
}

// checkRead checks that a member handled what is left of each queue, all of it, from the first message on.
func checkRead(t *testing.T, p *place, m *member, queues []sdk.Queue, first map[int32]int64, sent int) {
	t.Helper()
	low, n := map[string]int64{}, map[string]int{}
	for _, e := range p.entries(t, m) {
		if e.Event != ledger.Start {
			continue
		}
		if at, ok := low[e.Queue]; !ok || e.Offset < at {
			low[e.Queue] = e.Offset
		}
		n[e.Queue]++
	}
	for _, q := range queues {
		if got, want := low[q.String()], first[q.ID]; got != want || n[q.String()] != sent-int(want) {
			t.Errorf("%s was read from %d on, %d deliveries; its first message is at %d of %d", q, got, n[q.String()], want, sent)
		}
	}
}
