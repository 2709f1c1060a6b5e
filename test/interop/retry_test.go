package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/ledger"
)

const quickLevels = "retry: {max_retries: 2, levels: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s]}"

// attempts lists the attempts of each body that started.
func attempts(entries []ledger.Entry) map[string][]int {
	all := map[string][]int{}
	for _, e := range entries {
		if e.Event == ledger.Start {
			all[e.Body] = append(all[e.Body], e.Attempt)
		}
	}
	return all
}

func TestRetry_countsAndDeadLettersAsRocketMQ(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "Retry", 2), "retry"
	p.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", group, "-r", "5") // the request's own count wins
	c := newClient(t, p.Addr)
	sends := map[string]rocketmq.SendResult{}
	for _, body := range []string{"ok a", "fail b", "reject c", "fail-1 d", "fail-2 e", "after-2500 f", "panic g", "ok h"} {
		sends[body] = send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body), Tag: "t", Keys: []string{body[len(body)-1:]}})
	}
	m := p.streamd(t, stream{group: group, topic: topic, keys: quickLevels}).ready(t)
	dead := byText(t, readAll(t, c, "retry-dlq", wire.DLQTopic(group), 3))
	m.handled(t, 5, 60*time.Second)
	var failures []failure
	until(t, time.Minute, "failure records", func() (bool, string) { // what is not stored at the stop goes to the member's file
		var err error
		failures, err = readFailures(t, c, group)
		return err == nil && len(failures) >= 11, fmt.Sprint(len(failures), err)
	})
	m.stop(t)
	entries, err := ledger.Read(m.ledger)
	if err != nil {
		t.Fatal(err)
	}
	got := attempts(entries)
	for body, want := range map[string][]int{
		"ok a": {1}, "ok h": {1}, "fail b": {1, 2, 3}, "reject c": {1}, "fail-1 d": {1, 2}, "fail-2 e": {1, 2, 3}, "after-2500 f": {1, 2}, "panic g": {1, 2, 3},
	} {
		if !slices.Equal(got[body], want) {
			t.Errorf("%q was delivered in attempts %v, want %v", body, got[body], want)
		}
	}
	checkIdentity(t, entries, sends)
	checkDelay(t, entries)
	checkDead(t, group, topic, dead, sends)
	checkFailures(t, failures, sends)
	if left, err := p.lag(t, group); left != 0 || err != nil {
		t.Errorf("lag after all: %d, %v", left, err)
	}
}

// lag is what the tools see left, in all topics of the group.
func (p *place) lag(t *testing.T, group string) (int64, error) {
	t.Helper()
	g, err := p.status(t, group)
	return g.Lag, err
}

func checkIdentity(t *testing.T, entries []ledger.Entry, sends map[string]rocketmq.SendResult) {
	t.Helper()
	for _, e := range entries {
		if e.ID != sends[e.Body].OffsetMessageID {
			t.Errorf("attempt %d of %q has id %s, want %s", e.Attempt, e.Body, e.ID, sends[e.Body].OffsetMessageID)
		}
	}
}

// checkDelay checks that a wish for 2.5 s was rounded up to the level of 3 s, and a plain retry came after its level's 1 s.
func checkDelay(t *testing.T, entries []ledger.Entry) {
	t.Helper()
	at := func(body string, attempt int, event ledger.Event) time.Time {
		for _, e := range entries {
			if e.Body == body && e.Attempt == attempt && e.Event == event {
				return time.Unix(0, e.At)
			}
		}
		t.Fatalf("no %s of attempt %d of %q", event, attempt, body)
		return time.Time{}
	}
	for body, want := range map[string]time.Duration{"after-2500 f": 3 * time.Second, "fail-1 d": time.Second} {
		if wait := at(body, 2, ledger.Start).Sub(at(body, 1, ledger.End)); wait < want-200*time.Millisecond {
			t.Errorf("%q came back after %s, want %s", body, wait, want)
		}
	}
}

func checkDead(t *testing.T, group, topic string, dead map[string]stored, sends map[string]rocketmq.SendResult) {
	t.Helper()
	for body, times := range map[string]int32{"fail b": 3, "panic g": 3, "reject c": 1} {
		m := dead[body]
		want := map[string]string{"TAGS": "t", "KEYS": body[len(body)-1:], "RETRY_TOPIC": topic, "WAIT": "false", "DELAY": "0"}
		if times > 1 {
			want["REAL_TOPIC"], want["REAL_QID"] = wire.RetryTopic(group), "0"
		}
		checkProps(t, m, want, sends[body])
		if m.ReconsumeTimes != times {
			t.Errorf("%q: reconsumeTimes %d in the DLQ, want %d", body, m.ReconsumeTimes, times)
		}
	}
}

// failure is a record of STREAMD_FAILURES as its readers see it.
type failure struct {
	Group, Topic, Verdict, Class, Text, Handler, Plugin, Checksum, Member string
	MessageID                                                             string `json:"msg_id"`
	UniqueKey                                                             string `json:"unique_key"`
	PluginVersion                                                         string `json:"plugin_version"`
	Attempt                                                               int
	Started, Failed                                                       time.Time
}

// readFailures reads the failure records of a group, whatever others are there.
func readFailures(t *testing.T, c *rocketmq.Client, group string) (all []failure, err error) {
	t.Helper()
	queues, err := c.Queues(t.Context(), "STREAMD_FAILURES")
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		ms, _, err := read(t.Context(), c, "failures-reader", q, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			var f failure
			if err := json.Unmarshal([]byte(m.Text), &f); err != nil {
				t.Fatalf("record %s: %v", m.Text, err)
			}
			if f.Group == group {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

func checkFailures(t *testing.T, got []failure, sends map[string]rocketmq.SendResult) {
	t.Helper()
	type key struct {
		id      string
		attempt int
	}
	records := map[key]failure{}
	for _, f := range got {
		records[key{f.MessageID, f.Attempt}] = f
		if f.Plugin != "ledger" || f.PluginVersion != "1.0.0" || f.Handler != "ledger" || f.Member == "" || f.Checksum == "" || f.Failed.Before(f.Started) {
			t.Errorf("record %+v", f)
		}
	}
	count := 0
	for body, want := range map[string][]string{ // verdict and class, by attempt
		"fail b": {"retry told", "retry told", "retry told"}, "fail-1 d": {"retry told"}, "fail-2 e": {"retry told", "retry told"},
		"reject c": {"reject bad_order"}, "after-2500 f": {"retry error"}, "panic g": {"retry panic", "retry panic", "retry panic"},
	} {
		for i, w := range want {
			count++
			f, ok := records[key{sends[body].OffsetMessageID, i + 1}]
			if !ok || f.Verdict+" "+f.Class != w || f.UniqueKey != sends[body].MessageID {
				t.Errorf("attempt %d of %q: record there %t: %+v, want %s", i+1, body, ok, f, w)
			}
		}
	}
	if len(got) != count {
		t.Errorf("%d failure records, want %d", len(got), count)
	}
}

// TestRetry_oneOfAJavaBatch fails one message of a batch that Java sent: one id for all of them, so the identity must not
// be that id.
func TestRetry_oneOfAJavaBatch(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "RetryBatch", 1), "retry-batch"
	j := p.java(t, "ProduceBatch", topic, "ok 0", "ok 1", "fail-1 2", "ok 3", "ok 4")
	waitLine(t, j, line("#done"))
	m := p.streamd(t, stream{group: group, topic: topic, keys: quickLevels}).ready(t)
	entries := m.handled(t, 5, 60*time.Second)
	ids := map[string]bool{}
	for _, e := range entries {
		ids[e.ID] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d identities for 5 messages", len(ids))
	}
	for body, got := range attempts(entries) {
		want := []int{1}
		if body == "fail-1 2" {
			want = []int{1, 2}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q was delivered in attempts %v, want %v", body, got, want)
		}
	}
}

// TestRetry_whereTheGroupHasNoRetryQueues: a broker answers success to a send-back that it stores nowhere. The group's settings decide
// that, whether its retry topic has queues or not.
func TestRetry_whereTheGroupHasNoRetryQueues(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	c := newClient(t, p.Addr)
	for name, retryTopic := range map[string]bool{"RetryOff": false, "RetryGone": true} {
		topic, group := p.topic(t, name, 1), "group-"+name
		if retryTopic {
			p.run(t, "updateTopic", "-c", "DefaultCluster", "-t", wire.RetryTopic(group), "-r", "1", "-w", "1")
		}
		p.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", group, "-q", "0")
		var want []string
		for i := range 3 {
			body := fmt.Sprintf("fail %d", i)
			send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body)})
			want = append(want, body)
		}
		p.streamd(t, stream{group: group, topic: topic, keys: quickLevels})
		dead := byText(t, readAll(t, c, group+"-dlq", wire.DLQTopic(group), 3))
		for _, body := range want {
			if _, ok := dead[body]; !ok {
				t.Errorf("%s: %q is lost", name, body)
			}
		}
	}
}
