package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestNamespace_withAJavaMember: streamd and a Java client with one namespace are one group. On the wire every name has it,
// those of the retry and dead-letter topics too; handlers and operators see none.
func TestNamespace_withAJavaMember(t *testing.T) {
	t.Parallel()
	const ns, topic, output, group = "INST_S", "NsOrders", "NsInvoices", "ns-billing"
	p := mainCluster(t)
	for _, name := range []string{topic, output, "STREAMD_FAILURES"} {
		if err := p.admin.CreateTopic(t.Context(), ns+"%"+name, 4); err != nil {
			t.Fatal(err)
		}
	}
	plain := newClient(t, p.Addr)
	inside := newClient(t, p.Addr, func(c *rocketmq.Config) { c.Namespace = ns })
	for _, body := range []string{"ok 1", "fail-1 2", "reject 3"} {
		send(t, inside, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(body)})
	}
	m := p.streamd(t, stream{
		group: group, topic: topic, broker: "namespace: " + ns, keys: quickLevels + "\noutputs: {topic: " + output + "}", handler: "emit: " + output,
	}).ready(t)
	entries := m.handled(t, 2, time.Minute)
	if got := attempts(entries)["fail-1 2"]; !slices.Equal(got, []int{1, 2}) {
		t.Errorf("attempts %v", got)
	}
	dead := readAll(t, plain, "ns-reader", wire.DLQTopic(ns+"%"+group), 1)[0]
	if dead.Text != "reject 3" || dead.Props["RETRY_TOPIC"] != ns+"%"+topic {
		t.Errorf("dead letter %q of %q", dead.Text, dead.Props["RETRY_TOPIC"])
	}
	if out := readAll(t, plain, "ns-reader", ns+"%"+output, 2)[0]; out.Props["INSTANCE_ID"] != ns {
		t.Errorf("output with the properties %v", out.Props)
	}
	until(t, time.Minute, "failure records", func() (bool, string) {
		n := len(readAllNow(t, plain, ns+"%STREAMD_FAILURES"))
		return n == 2, fmt.Sprint(n)
	})
	j := p.javaReady(t, "Secure", "-", "-", ns, "-", topic, output, group, "8")
	until(t, 2*time.Minute, "both members handled all that Java sent", func() (bool, string) {
		seen := map[string]bool{}
		for _, e := range p.entries(t, m) {
			seen[e.Body] = true
		}
		for _, l := range j.Lines() {
			if w := strings.Fields(l); len(w) == 3 && w[0] == "got" {
				seen[w[1]] = true
				if w[2] != topic {
					t.Errorf("Java sees topic %q", w[2])
				}
			}
		}
		n := 0
		for i := range 8 {
			if seen[fmt.Sprintf("java-%d", i)] {
				n++
			}
		}
		return n == 8, fmt.Sprint(n)
	})
	until(t, time.Minute, "a group of two that shares the queues", func() (bool, string) {
		g, err := m.groupStatus(t, group)
		owners := map[string]int{}
		for _, q := range g.Queues {
			if strings.Contains(q.Topic, ns) {
				t.Errorf("group status shows the topic as %s", q.Topic)
			}
			if q.Topic == topic {
				for _, o := range q.Owners {
					owners[o]++
				}
			}
		}
		return err == nil && len(g.Members) == 2 && len(owners) == 2, fmt.Sprint(asJSON(g), err)
	})
	if out := p.run(t, "consumerProgress", "-g", ns+"%"+group); !strings.Contains(out, ns+"%"+topic) {
		t.Errorf("mqadmin sees\n%s", out)
	}
	m.stop(t)
}
