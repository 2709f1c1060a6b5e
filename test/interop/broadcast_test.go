package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/ledger"
)

// TestBroadcasting_withJava puts a streamd and a Java member into one broadcasting group: each handles every message once, and the
// group's status shows where each of them stands.
func TestBroadcasting_withJava(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	const n, queues = 300, 4
	topic, group := p.topic(t, "Broadcast", queues), "broadcast"
	java := p.javaReady(t, "Consume", group, topic, "*", "broadcast")
	all := stream{
		group: group, topic: topic, keys: "model: broadcasting\non_exhausted: block",
		env: []string{"STREAMD_MEMBER=m1", "STREAMD_STATE_EPHEMERAL=true"}, // the folder of a test is below /tmp
	}
	m := p.streamd(t, all).ready(t)
	load := p.java(t, "Produce", topic, fmt.Sprint(n), "200", "1", "t", "200")
	waitLine(t, load, line("#done"))
	ids := sent(load.Lines())
	entries := m.handled(t, n, 90*time.Second)
	times := ledger.Handled(entries)
	got := map[string]int{}
	until(t, 90*time.Second, "the Java member has all", func() (bool, string) {
		clear(got)
		for _, l := range java.Lines() {
			if f := strings.Fields(l); len(f) == 6 && f[0] == "got" {
				got[f[2]]++
			}
		}
		return len(got) >= len(ids), fmt.Sprint(len(got))
	})
	for body := range ids {
		if times[body] != 1 || got[body] != 1 {
			t.Errorf("%s: streamd handled it %d times, Java %d times", body, times[body], got[body])
		}
	}
	until(t, time.Minute, "group status shows where each member stands", func() (bool, string) {
		g, err := p.status(t, group)
		if err != nil {
			return false, err.Error()
		}
		done := map[string]int64{}
		for _, at := range g.Progress {
			if at.Topic == topic && at.Committed > 0 {
				done[at.Member] += at.Committed
			}
		}
		whole := 0
		for _, sum := range done {
			if sum == n {
				whole++
			}
		}
		return g.Model == "BROADCASTING" && len(g.Members) == 2 && whole == 2, asJSON(g)
	})
	m.stop(t)
}
