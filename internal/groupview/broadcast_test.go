package groupview_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// broadcastGroup is javaGroup as brokers show a broadcasting one: they have no offsets, and tell a topic's ends when asked
// for it by name.
type broadcastGroup struct{ javaGroup }

func (g broadcastGroup) ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error) {
	cs, err := g.javaGroup.ConsumerConnections(ctx, broker, group)
	cs.MessageModel = "BROADCASTING"
	cs.Connections = append(cs.Connections, wire.Connection{ClientID: "m2@1#2", Addr: "10.0.0.6:50000", Language: "GO"})
	return cs, err
}

func (g broadcastGroup) ConsumeStats(ctx context.Context, broker, group, topic string) (*wire.ConsumeStats, error) {
	if topic == "" {
		return &wire.ConsumeStats{}, nil
	}
	s, err := g.javaGroup.ConsumeStats(ctx, broker, group, topic)
	for q, o := range s.Offsets {
		o.ConsumerOffset = -1
		s.Offsets[q] = o
	}
	return s, err
}

// Each member's own progress is shown, since it is nowhere else; owning a queue together is no overlap.
func TestBroadcastingMembers(t *testing.T) {
	g, err := groupview.Read(t.Context(), broadcastGroup{newJavaGroup(t, time.Second)}, "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Progress) != 4 { // two members, and each of them gives one of the three queues up
		t.Fatalf("progress %+v", g.Progress)
	}
	for _, p := range g.Progress {
		if p.Committed != 4 || p.Max != 6 || p.Lag != 2 {
			t.Errorf("progress %+v, want 4 of 6", p)
		}
	}
	for _, q := range g.Queues {
		if q.Topic == "Orders" && q.ID < 2 && (len(q.Owners) != 2 || q.State == groupview.StateOverlap || q.Committed != 4 || q.Lag != 2) {
			t.Errorf("queue %+v", q)
		}
	}
	var out bytes.Buffer
	if err := g.Text(&out); err != nil || !strings.Contains(out.String(), "slowest member") || strings.Count(out.String(), "m2@1#2") < 3 {
		t.Errorf("%v\n%s", err, out.String())
	}
}
