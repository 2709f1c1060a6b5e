package interop

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/cluster"
)

// java starts a Java peer that ends with the test.
func (p *place) java(t *testing.T, class string, args ...string) *cluster.Process {
	t.Helper()
	j, err := p.Java(t.Context(), class, append([]string{p.Addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Kill)
	return j
}

// javaReady starts a Java peer that says when it is ready, and waits for that; it ends with the test.
func (p *place) javaReady(t *testing.T, class string, args ...string) *cluster.Process {
	t.Helper()
	j, err := p.JavaReady(t.Context(), class, append([]string{p.Addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Kill)
	return j
}

// goPeer starts the Go peer; it ends with the test.
func (p *place) goPeer(t *testing.T, command string, args ...string) *cluster.Process {
	t.Helper()
	cmd := exec.Command(built(t, shared.goPeer), append([]string{command, p.Addr}, args...)...) // ended by the cleanup
	g, err := cluster.Start("gopeer "+command, cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Kill)
	return g
}

func waitLine(t *testing.T, p *cluster.Process, ok func(string) bool) {
	t.Helper()
	if _, err := p.WaitLine(within(t, patience), ok); err != nil {
		t.Fatal(err)
	}
}

func line(text string) func(string) bool {
	return func(l string) bool { return strings.HasPrefix(l, text) }
}

// inspected collects what a Java consumer saw of n messages, by body.
func inspected(t *testing.T, j *cluster.Process, n int) map[string]url.Values {
	t.Helper()
	seen := map[string]url.Values{}
	waitLine(t, j, func(l string) bool {
		if text, ok := strings.CutPrefix(l, "msg "); ok {
			v, err := url.ParseQuery(text)
			if err != nil {
				t.Fatalf("%v in %s", err, l)
			}
			seen[v.Get("body")] = v
		}
		return len(seen) == n
	})
	return seen
}

// produced is every way to send, with what a consumer must see.
func produced(topic string) []*rocketmq.OutgoingMessage {
	large := append([]byte("compressed"), bytes.Repeat([]byte(" "), 20_000)...)
	return []*rocketmq.OutgoingMessage{
		{Topic: topic, Body: []byte("plain")},
		{Topic: topic, Body: []byte("tagged"), Tag: "created", Keys: []string{"k1", "k2"}, Properties: map[string]string{"a": "1", "städte": "Zürich 東京"}, Flag: 7},
		{Topic: topic, Body: large},
		{Topic: topic, Body: []byte("sharded-1"), ShardingKey: "customer-7"},
		{Topic: topic, Body: []byte("sharded-2"), ShardingKey: "customer-7"},
		{Topic: topic, Body: []byte("level"), DelayLevel: 8},
		{Topic: topic, Body: []byte("timer"), Delay: 2500 * time.Millisecond},
	}
}

func TestClient_whatItSendsIsReadByJavaAndGo(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "ClientSend", 4)
	inspect := p.javaReady(t, "Inspect", "client-send-java", topic)
	peer := p.goPeer(t, "consume", "client-send-go", topic, "*")
	c := newClient(t, p.Addr)
	before := time.Now()
	var shards []rocketmq.SendResult
	for _, m := range produced(topic) {
		r := send(t, c, m)
		if m.ShardingKey != "" {
			shards = append(shards, r)
		}
	}
	if shards[0].Queue != shards[1].Queue || shards[1].Offset <= shards[0].Offset {
		t.Errorf("one sharding key in %+v", shards)
	}
	var batch []*rocketmq.OutgoingMessage
	for i := range 5 {
		batch = append(batch, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "part-%d", i), Keys: []string{fmt.Sprint("key", i)}, Tag: "batch"})
	}
	results, err := c.SendBatch(t.Context(), topic, batch)
	if err != nil {
		t.Fatal(err)
	}
	seen := inspected(t, inspect, 12)
	checkSeen(t, seen, before)
	for i, r := range results {
		v := seen[fmt.Sprintf("part-%d", i)]
		if r.Status != rocketmq.SendOK || v.Get("id") != r.MessageID || v.Get("keys") != fmt.Sprint("key", i) || v.Get("tag") != "batch" {
			t.Errorf("part %d: sent as %+v, Java sees %v", i, r, v)
		}
	}
	got := map[string]bool{}
	waitLine(t, peer, func(l string) bool {
		if f := strings.Fields(l); len(f) == 6 && f[0] == "got" {
			got[f[2]] = true
		}
		return len(got) == 12
	})
	for body := range seen {
		if !got[body] {
			t.Errorf("Go did not see %q", body)
		}
	}
	checkStored(t, byText(t, readAll(t, c, "client-send-raw", topic, 12)), before)
}

func checkSeen(t *testing.T, seen map[string]url.Values, _ time.Time) {
	t.Helper()
	for body, want := range map[string]map[string]string{
		"plain":      {"tag": "null", "keys": "null", "length": "5"},
		"tagged":     {"tag": "created", "keys": "k1 k2", "flag": "7", "p.a": "1", "p.städte": "Zürich 東京"},
		"compressed": {"length": "20010"},
		"sharded-1":  {"p.__SHARDINGKEY": "customer-7"},
		"level":      {"p.DELAY": "8"},
		"timer":      {"length": "5"},
	} {
		for k, v := range want {
			if got := seen[body].Get(k); got != v {
				t.Errorf("Java sees %s of %q as %q, want %q", k, body, got, v)
			}
		}
	}
}

func checkStored(t *testing.T, ms map[string]stored, before time.Time) {
	t.Helper()
	if m := ms["compressed"]; !m.IsCompressed() || len(m.Body) > 1000 || m.Size != 20_010 || m.Compression() != wire.CompressionZlib {
		t.Errorf("the large body is stored in %d bytes, flags %#x", len(m.Body), m.SysFlag)
	}
	for body, want := range map[string]time.Duration{"level": 2 * time.Second, "timer": 2500 * time.Millisecond} {
		m := ms[body]
		late := time.UnixMilli(m.StoreMillis).Sub(before)
		if late < want-100*time.Millisecond || late > want+time.Minute {
			t.Errorf("%q was delivered after %s, want %s", body, late, want)
		}
	}
	for _, m := range ms {
		if m.UniqueKey() == "" || m.Props["UNIQ_KEY"] == "" {
			t.Errorf("%q has no id: %v", m.Text, m.Props)
		}
	}
}
