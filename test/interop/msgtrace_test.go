package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/msgtrace"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// traced is the records of RocketMQ's own trace about one message.
type traced struct {
	pub      [][]string
	attempts map[string][][]string // by group, in the order of the trace: SubBefore and SubAfter in turn
}

// records reads the whole trace topic, by message id.
func (p *place) records(ctx context.Context, c *rocketmq.Client) (map[string]*traced, error) {
	queues, err := c.Queues(ctx, wire.TraceTopic)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, q := range queues {
		texts, err := texts(ctx, c, q)
		if err != nil {
			return nil, err
		}
		all = append(all, texts...)
	}
	groups := map[string]string{} // by request id
	for _, r := range all {
		if f := strings.Split(r, "\x01"); f[0] == "SubBefore" {
			groups[f[4]] = f[3]
		}
	}
	out := map[string]*traced{}
	of := func(id string) *traced {
		if out[id] == nil {
			out[id] = &traced{attempts: map[string][][]string{}}
		}
		return out[id]
	}
	for _, r := range all {
		switch f := strings.Split(r, "\x01"); f[0] {
		case "Pub":
			of(f[5]).pub = append(of(f[5]).pub, f)
		case "SubBefore":
			of(f[5]).attempts[f[3]] = append(of(f[5]).attempts[f[3]], f)
		case "SubAfter":
			of(f[2]).attempts[groups[f[1]]] = append(of(f[2]).attempts[groups[f[1]]], f)
		}
	}
	return out, nil
}

// texts are the records in one queue of the trace.
func texts(ctx context.Context, c *rocketmq.Client, q sdk.Queue) (all []string, err error) {
	for at := int64(0); ; {
		ms, next, err := read(ctx, c, "msgtrace-reader", q, at)
		if err != nil || len(ms) == 0 {
			return all, err
		}
		for _, m := range ms {
			all = append(all, strings.Split(strings.TrimSuffix(m.Text, "\x02"), "\x02")...)
		}
		at = next
	}
}

// TestMessageTrace holds streamd's records of RocketMQ's own trace against those of a Java client that handles, and sends, the
// same; mqadmin shows both.
func TestMessageTrace(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "MsgTrace", 1)
	c := newClient(t, p.Addr)
	java := p.javaReady(t, "Trace", "msgtrace-java", topic)
	ids := map[string]string{} // by body
	waitLine(t, java, func(l string) bool {
		if f := strings.SplitN(l, " ", 3); len(f) == 3 && f[0] == "sent" {
			ids[f[2]] = f[1]
		}
		return strings.HasPrefix(l, "#ready")
	})
	ids["ok streamd"] = p.produceTraced(t, topic, "ok streamd")
	m := p.streamd(t, stream{group: "msgtrace", topic: topic, keys: quickLevels, env: []string{"STREAMD_TELEMETRY_ROCKETMQ_TRACE=true"}}).ready(t)
	m.handled(t, 3, time.Minute)
	done := map[string]bool{}
	waitLine(t, java, func(l string) bool {
		if f := strings.SplitN(l, " ", 3); len(f) == 3 && f[0] == "done" {
			done[f[2]] = true
		}
		return len(done) == 3
	})
	until(t, 30*time.Second, "the trace in the status", func() (bool, string) {
		n, err := m.traceCounts(t.Context())
		return err == nil && n.Written >= 8 && n.Dropped+n.Failed == 0, fmt.Sprint(n, err)
	})
	m.stop(t)
	if err := java.Write(""); err != nil {
		t.Fatal(err)
	}
	waitLine(t, java, line("#done"))
	var all map[string]*traced
	until(t, 30*time.Second, "the records of three messages, from both", func() (bool, string) {
		var err error
		if all, err = p.records(t.Context(), c); err != nil {
			return false, err.Error()
		}
		for body, id := range ids {
			want := 2 + 2*strings.Count(body, "fail-1")
			if r := all[id]; r == nil || len(r.pub) != 1 || len(r.attempts["msgtrace"]) != want || len(r.attempts["msgtrace-java"]) != want {
				return false, fmt.Sprintf("%s %s: %+v", body, id, r)
			}
		}
		return true, ""
	})
	for body, id := range ids {
		sameAttempts(t, body, all[id].attempts["msgtrace"], all[id].attempts["msgtrace-java"])
	}
	samePub(t, all[ids["ok streamd"]].pub[0], all[ids["ok java"]].pub[0])
	until(t, 30*time.Second, "mqadmin that finds the attempts of both", func() (bool, string) {
		out := p.run(t, "queryMsgTraceById", "-i", ids["fail-1 java"], "-t", wire.TraceTopic)
		return strings.Count(out, "msgtrace-java") >= 1 && strings.Count(out, "msgtrace") > strings.Count(out, "msgtrace-java") &&
			strings.Contains(out, "success") && strings.Contains(out, "failed"), out
	})
	if out := p.run(t, "queryMsgTraceById", "-i", ids["ok streamd"], "-t", wire.TraceTopic); !strings.Contains(out, "Pub ") || !strings.Contains(out, wire.InnerProducerGroup) {
		t.Errorf("mqadmin of a message that streamd sent:\n%s", out)
	}
}

// produceTraced sends a message with keys and a tag by streamd produce, with a trace, and returns its UNIQ_KEY.
func (p *place) produceTraced(t *testing.T, topic, body string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t, shared.streamd), "produce", "-n", p.Addr, "--topic", topic, "--keys", "k1,k2", "--tag", "tag", "--rocketmq-trace", "-o", "json")
	cmd.Stdin = strings.NewReader(body + "\n")
	out, err := cmd.CombinedOutput()
	var sent struct {
		ID string `json:"unique_key"`
	}
	text, _, _ := strings.Cut(string(out), "\n")
	if err != nil || json.Unmarshal([]byte(text), &sent) != nil || sent.ID == "" {
		t.Fatalf("produce: %v\n%s", err, out)
	}
	return sent.ID
}

// traceCounts are the counts of the trace in a member's status.
func (m *member) traceCounts(ctx context.Context) (n msgtrace.Counts, err error) {
	text, err := m.get(ctx, "/api/v1/status")
	if err != nil {
		return n, err
	}
	var status struct {
		Brokers []struct {
			Trace msgtrace.Counts `json:"rocketmq_trace"`
		}
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil || len(status.Brokers) != 1 {
		return n, fmt.Errorf("reading %s: %w", text, err)
	}
	return status.Brokers[0].Trace, nil
}

// sameAttempts wants the records of both members to be alike in all but times, request ids and groups.
func sameAttempts(t *testing.T, body string, mine, java [][]string) {
	t.Helper()
	for i := range mine {
		if len(mine[i]) != len(java[i]) {
			t.Errorf("%s: record %d has %d fields, Java's %d: %q and %q", body, i, len(mine[i]), len(java[i]), mine[i], java[i])
			continue
		}
		differs := map[string][]int{"SubBefore": {1, 3, 4}, "SubAfter": {1, 3, 7, 8}}[java[i][0]]
		for k := range java[i] {
			if mine[i][k] != java[i][k] && !slices.Contains(differs, k) {
				t.Errorf("%s: field %d of record %d is %q, Java's %q: %q", body, k, i, mine[i][k], java[i][k], java[i])
			}
		}
	}
}

// samePub wants the record of a message that streamd sent like that of one that Java sent with the same tag and keys.
func samePub(t *testing.T, mine, java []string) {
	t.Helper()
	if len(mine) != len(java) {
		t.Fatalf("a Pub record of %d fields, Java's has %d: %q and %q", len(mine), len(java), mine, java)
	}
	const length = 9
	differs := []int{1, 3, 5, length, 10, 12} // time, group, id, body, cost, offset id
	for k := range java {
		if mine[k] != java[k] && !slices.Contains(differs, k) {
			t.Errorf("field %d of the Pub record is %q, Java's %q", k, mine[k], java[k])
		}
	}
	if mine[length] != fmt.Sprint(len("ok streamd")) || java[length] != fmt.Sprint(len("ok java")) {
		t.Errorf("bodies of %s and %s bytes", mine[length], java[length])
	}
}
