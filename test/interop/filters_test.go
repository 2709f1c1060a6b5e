package interop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/ledger"
)

// TestFilters runs what brokers filter: SQL92, and groups whose members subscribe unlike.
func TestFilters(t *testing.T) {
	t.Parallel()
	side(t, mainCluster(t), map[string]scene{"sql": filterSQL, "unlike a Java member": filterUnlike, "rolling change": filterRolled})
}

// filterSQL: exactly the messages that match, whatever is missing or of another type in the others.
func filterSQL(t *testing.T, p *place) {
	const group = "filter-sql"
	topic := p.topic(t, "FilterSQL", 2)
	c := newClient(t, p.Addr)
	all := []struct {
		name, tag string
		own       map[string]string
		match     bool
	}{
		{"number", "", map[string]string{"amount": "150", "color": "red"}, true},
		{"another type", "", map[string]string{"amount": "150.5", "color": "red"}, false}, // 100 is an integer, so that is none
		{"decimal", "", map[string]string{"price": "0.75"}, true},
		{"integer for a decimal", "", map[string]string{"price": "1"}, true},
		{"smaller decimal", "", map[string]string{"price": "0.25"}, false},
		{"equal is not greater", "", map[string]string{"amount": "100", "color": "red"}, false},
		{"smaller", "", map[string]string{"amount": "9", "color": "red"}, false}, // as text it would be greater
		{"no number", "", map[string]string{"amount": "many", "color": "red"}, false},
		{"no amount", "", map[string]string{"color": "red"}, false},
		{"color is not in the set", "", map[string]string{"amount": "150", "color": "green"}, false},
		{"no color", "", map[string]string{"amount": "150"}, false},
		{"no color, and vip", "", map[string]string{"amount": "150", "vip": "x"}, true},
		{"vip alone", "", map[string]string{"vip": "x"}, false},
		{"tag", "gold", nil, true},
		{"another tag", "silver", nil, false},
		{"nothing", "", nil, false},
	}
	want := map[string]bool{}
	for round := range 3 {
		for _, m := range all {
			body := fmt.Sprintf("ok %s %d", m.name, round)
			send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Tag: m.tag, Properties: m.own, Body: []byte(body)})
			want[body] = m.match
		}
	}
	sql := "amount > 100 AND (color IN ('red', 'blue') OR (color IS NULL AND vip IS NOT NULL)) OR price > 0.5 OR TAGS = 'gold'"
	m := p.streamd(t, stream{group: group, topic: topic + `, sql: "` + sql + `"`}).ready(t)
	shown(t, c, topic, int64(len(want)))
	p.idle(t, c, group, topic) // the end is committed: nothing comes any more
	got := ledger.Handled(p.entries(t, m))
	for body, match := range want {
		if n := got[body]; match && n != 1 || !match && n != 0 {
			t.Errorf("%q was handled %d times, and it matches: %t", body, n, match)
		}
	}
	m.stop(t)
}

// filterUnsupported: a broker that does not filter by SQL92 would let everything pass. Nothing is read from it, and what is
// wrong is told; it goes on by itself once the broker can.
func filterUnsupported(t *testing.T, p *place) {
	const group = "filter-unsupported"
	topic := p.topic(t, "FilterUnsupported", 1)
	c := newClient(t, p.Addr)
	broker := p.Brokers[0].Addr
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "enablePropertyFilter", "-v", "false")
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("ok no"), Properties: map[string]string{"a": "1"}})
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("ok yes"), Properties: map[string]string{"a": "2"}})
	m := p.streamd(t, stream{group: group, topic: topic + `, sql: "a = 2"`})
	m.tells(t, "filter_refused", "does not filter by SQL92", "enablePropertyFilter", broker)
	p.run(t, "updateBrokerConfig", "-b", broker, "-k", "enablePropertyFilter", "-v", "true")
	m.handled(t, 1, 2*time.Minute)
	p.idle(t, c, group, topic)
	if got := ledger.Handled(p.entries(t, m)); got["ok yes"] != 1 || got["ok no"] != 0 {
		t.Errorf("handled %v", got)
	}
	m.stop(t)
	// What no broker can read refuses the start, with the broker's words.
	bad := p.launch(t, stream{group: group + "-bad", topic: topic + `, sql: "a >< 2"`})
	waitLine(t, bad.Process, func(l string) bool {
		return strings.HasPrefix(l, "streamd: ") && strings.Contains(l, `"a >< 2"`) && strings.Contains(l, "correct it") && strings.Contains(l, "ParseException") &&
			strings.Count(l, "checking the filter") == 1
	})
	<-bad.Done()
	if bad.Err() == nil {
		t.Error("a filter that cannot be read is no error")
	}
}

// filterUnlike: a Java member of the group subscribes to other tags, and its heartbeats come later than ours. It is found and
// named; what streamd's own queues have for it is handled, and nothing else.
func filterUnlike(t *testing.T, p *place) {
	const group, queues = "filter-unlike", 4
	topic := p.topic(t, "FilterUnlike", queues)
	c := newClient(t, p.Addr)
	m := p.streamd(t, stream{group: group, topic: topic + ", tags: mine"}).ready(t)
	java := p.javaReady(t, "Consume", group, topic, "theirs")
	id := strings.Fields(java.Lines()[slices.IndexFunc(java.Lines(), line("#ready"))])[1]
	g := p.settled(t, group, topic, 2, queues)
	if !slices.ContainsFunc(g.Notes, func(n string) bool {
		return strings.Contains(n, "subscribe unlike to topic "+topic) && strings.Contains(n, "tags theirs ("+id+")") && strings.Contains(n, "tags mine")
	}) {
		t.Errorf("group status names no unlike subscription: %q", g.Notes)
	}
	m.tells(t, `"unlike"`, id, "tags theirs", "tags mine")
	owner := map[int32]string{}
	for _, q := range g.Queues {
		if q.Topic == topic {
			owner[q.ID] = q.Owners[0]
		}
	}
	qs, err := c.Queues(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for i := range 10 {
		for _, q := range qs {
			for _, tag := range []string{"mine", "theirs"} {
				body := fmt.Sprintf("%s-%d-%d", tag, q.ID, i)
				send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Queue: &q, Tag: tag, Body: []byte(body)})
				want[body] = tag == "mine" && owner[q.ID] != id
			}
		}
	}
	shown(t, c, topic, int64(len(want)))
	p.idle(t, c, group, topic)
	got := ledger.Handled(p.entries(t, m))
	for body, here := range want {
		if n := got[body]; here && n != 1 || !here && n != 0 {
			t.Errorf("streamd handled %s %d times, and it was streamd's: %t", body, n, here)
		}
	}
	foreign := 0
	for _, l := range java.Lines() {
		if f := strings.Fields(l); len(f) == 6 && f[0] == "got" {
			foreign++
			if !strings.HasPrefix(f[2], "theirs") {
				t.Errorf("the Java member got %s", f[2])
			}
		}
	}
	if foreign != 10*queues/2 {
		t.Errorf("the Java member got %d messages, want those of its filter in its queues, %d", foreign, 10*queues/2)
	}
	m.stop(t)
}

// filterRolled: two members change what they subscribe to one after the other, as a deploy does: a filter becomes wider, and a
// topic comes along. Nothing that both the old and the new subscriptions want is lost meanwhile, and nothing of what the new
// ones want once all have them.
func filterRolled(t *testing.T, p *place) {
	const group, queues = "filter-rolled", 4
	topic, more := p.topic(t, "FilterRolled", queues), p.topic(t, "FilterRolledMore", queues)
	c := newClient(t, p.Addr)
	sent := map[string]bool{}
	produce := func(topic, tag string, round, n int) {
		for i := range n {
			body := fmt.Sprintf("ok %s %s %d-%d", topic, tag, round, i)
			send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Tag: tag, Body: []byte(body)})
			sent[body] = true
		}
	}
	before := stream{group: group, topic: topic + ", tags: a", handler: "slow: 20ms"}
	after := before
	after.topic = topic + `, tags: "a || b"}, {topic: ` + more
	first := p.streamd(t, before).ready(t)
	before.ledger, after.ledger = first.ledger, first.ledger
	second := p.streamd(t, before).ready(t)
	p.settled(t, group, topic, 2, queues)
	produce(topic, "a", 0, 40)
	third := p.streamd(t, after).ready(t)
	produce(topic, "a", 1, 40)
	first.stop(t)
	produce(topic, "a", 2, 40)
	fourth := p.streamd(t, after).ready(t)
	produce(topic, "a", 3, 40)
	second.stop(t)
	produce(topic, "a", 4, 40)
	p.settled(t, group, topic, 2, queues)
	g := p.settled(t, group, more, 2, queues)
	produce(topic, "a", 5, 20)
	produce(topic, "b", 5, 20)
	produce(more, "c", 5, 20)
	p.times(t, first.ledger, len(sent), func(string) (least, most int) { return 1, 1 })
	if got := ledger.Handled(p.entries(t, first)); !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(sent))) {
		t.Errorf("handled\n%v\nsent\n%v", got, sent)
	}
	if i := slices.IndexFunc(g.Notes, func(n string) bool { return strings.Contains(n, "unlike") }); i >= 0 {
		t.Errorf("after the change group status still says: %s", g.Notes[i])
	}
	third.stop(t)
	fourth.stop(t)
}
