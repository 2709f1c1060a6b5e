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
)

// TestVersions_oldAndNew: what the main version is tested with in full works with the oldest and the newest one. streamd writes
// JSON headers, which every version reads, and reads both forms.
func TestVersions_oldAndNew(t *testing.T) {
	for version, flags := range map[string][]string{
		cluster.Old:    {shortLocks},
		cluster.Newest: {shortLocks, "-Drocketmq.serialize.type=ROCKETMQ"}, // its broker answers, and asks, in the binary form
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, cluster.Options{Version: version, Broker: smallFiles(), Flags: flags})
			ordered := orderly(t, p)
			smokeClient(t, p)
			smokeStreamd(t, p)
			transactions(t, p)
			shortHeartbeats(t, p)
			ordered()
			movedAbout(t, p)
		})
	}
}

func smokeClient(t *testing.T, p *place) {
	t.Helper()
	topic, group := p.topic(t, "Smoke", 2), "smoke"
	c := newClient(t, p.Addr)
	reset := make(chan map[sdk.Queue]int64, 10)
	spec := groupOf(group, topic)
	spec.OnReset = func(_ string, offsets map[sdk.Queue]int64) { reset <- offsets }
	spec.RunningInfo = func(bool) *wire.ConsumerRunningInfo { return runningInfo(topic, group) }
	join(t, c, spec)
	sendN(t, c, topic, "m", 4)
	results, err := c.SendBatch(t.Context(), topic, []*rocketmq.OutgoingMessage{{Topic: topic, Body: []byte("b0")}, {Topic: topic, Body: []byte("b1")}})
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	large := strings.Repeat("x", 9000)
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(large)})
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("late"), DelayLevel: 1})
	all := byText(t, readAll(t, c, group, topic, 8))
	if v := c.Version("broker-a"); v == 0 || !strings.HasPrefix(strings.TrimPrefix(wire.Version(v).String(), "V"), strings.ReplaceAll(p.Version, ".", "_")) {
		t.Errorf("the broker's version is %s, want %s", wire.Version(v), p.Version)
	}
	if m := all[large]; !m.IsCompressed() || m.Size != 9000 {
		t.Errorf("the large one: %d bytes, flags %#x", m.Size, m.SysFlag)
	}
	q := all["m0"].Queue
	for id := range int32(2) { // a reset is refused for a group without an offset in every queue
		if _, err := c.Commit(t.Context(), group, sdk.Queue{Topic: topic, Broker: q.Broker, ID: id}, 3); err != nil {
			t.Fatal(err)
		}
	}
	if offset, ok, err := c.Committed(t.Context(), group, q); offset != 3 || !ok || err != nil {
		t.Errorf("committed %d %t %v", offset, ok, err)
	}
	for body, level := range map[string]int{"m0": 0, "m1": -1} {
		if err := c.SendBack(t.Context(), sendBack(group, all[body], level)); err != nil {
			t.Fatal(err)
		}
	}
	if m := readAll(t, c, group, wire.RetryTopic(group), 1)[0]; m.Text != "m0" || m.ReconsumeTimes != 1 || m.OriginTopic() != topic {
		t.Errorf("retried: %s, reconsumeTimes %d", m.Text, m.ReconsumeTimes)
	}
	if m := readAll(t, c, group, wire.DLQTopic(group), 1)[0]; m.Text != "m1" {
		t.Errorf("dead-lettered: %s", m.Text)
	}
	if ids, err := c.Members(t.Context(), group, topic); err != nil || len(ids) != 1 || ids[0] != c.ClientID() {
		t.Errorf("members %v %v", ids, err)
	}
	if info, err := c.PeerInfo(t.Context(), group, c.ClientID()); err != nil || info.Properties["streamd.test"] != "1" {
		t.Errorf("307 to oneself: %+v %v", info, err)
	}
	if locked, err := c.LockQueues(t.Context(), group, []sdk.Queue{q}); err != nil || len(locked) != 1 {
		t.Errorf("lock: %v %v", locked, err)
	}
	p.run(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()))
	if p.Version == cluster.Old {
		select {
		case offsets := <-reset:
			if offset, ok := offsets[q]; !ok || offset != 0 {
				t.Errorf("220 brought %v", offsets)
			}
		case <-within(t, patience).Done():
			t.Error("220 did not arrive")
		}
		return
	}
	r, err := c.Pull(t.Context(), &rocketmq.PullRequest{Group: group, Queue: q, Offset: 3, MaxMessages: 32, MaxBytes: 1 << 20, Subscription: everything(topic)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if r.Status != rocketmq.PullOffsetIllegal || !r.Reset || r.Next != 0 {
		t.Errorf("the pull after a reset: status %d, reset %t, next %d", r.Status, r.Reset, r.Next)
	}
}

// smokeStreamd runs the whole path once: handled, retried, dead-lettered, reset.
func smokeStreamd(t *testing.T, p *place) {
	t.Helper()
	topic, group := p.topic(t, "SmokeStreamd", 2), "smoke-streamd"
	c := newClient(t, p.Addr)
	for _, body := range []string{"ok 1", "fail-1 2", "fail 3", "reject 4"} {
		send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body)})
	}
	m := p.streamd(t, stream{group: group, topic: topic, keys: quickLevels}).ready(t)
	m.handled(t, 2, time.Minute)
	readAll(t, c, "smoke-dlq", wire.DLQTopic(group), 2)
	p.run(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()))
	until(t, time.Minute, "the first message again", func() (bool, string) {
		n := 0
		for _, e := range p.entries(t, m) {
			if e.Body == "ok 1" && e.Error == "" {
				n++
			}
		}
		return n == 4, fmt.Sprint(n) // two starts, two ends
	})
	m.stop(t)
}
