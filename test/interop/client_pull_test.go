package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// sent collects the ids that a producing peer printed, by body.
func sent(lines []string) map[string]string {
	ids := map[string]string{}
	for _, l := range lines {
		if f := strings.Fields(l); len(f) == 3 && f[0] == "sent" {
			ids[f[2]] = f[1]
		}
	}
	return ids
}

func TestClient_readsWhatJavaAndGoSent(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	c := newClient(t, p.Addr)
	for _, tt := range []struct {
		name, batch, size, compression string
		want                           wire.Compression
		compressed                     bool
	}{
		{"Single", "1", "100", "ZLIB", 0, false},
		{"Batch", "10", "100", "ZLIB", 0, false},
		{"Zlib", "1", "9000", "ZLIB", wire.CompressionZlib, true},
		{"Lz4", "1", "9000", "LZ4", wire.CompressionLZ4, true},
		{"Zstd", "1", "9000", "ZSTD", wire.CompressionZstd, true},
	} {
		t.Run("java "+tt.name, func(t *testing.T) {
			topic := p.topic(t, "ClientRead"+tt.name, 2)
			j := p.java(t, "Produce", topic, "20", tt.size, tt.batch, "tag1", "0", tt.compression)
			waitLine(t, j, line("#done"))
			ids := sent(j.Lines())
			all := byText(t, readAll(t, c, "client-read", topic, 20))
			identities := map[string]bool{}
			for i := range 20 {
				body := fmt.Sprintf("java-%d", i)
				m, ok := all[body]
				if !ok || fmt.Sprint(m.Size) != tt.size || string(m.Tag()) != "tag1" || m.Props["n"] != fmt.Sprint(i) || strings.Join(m.Keys(), " ") != fmt.Sprintf("key-%d", i) {
					t.Errorf("%s: there %t, %d bytes, tag %q, properties %q", body, ok, m.Size, m.Tag(), m.Properties)
				}
				if m.IsCompressed() != tt.compressed || tt.compressed && m.Compression() != tt.want {
					t.Errorf("%s: flags %#x, want compression %v", body, m.SysFlag, tt.want)
				}
				if tt.batch == "1" && m.ID() != ids[body] {
					t.Errorf("%s: id %s, Java says %s", body, m.ID(), ids[body])
				}
				identities[wire.Identity(&m.Message)] = true
			}
			if len(identities) != 20 {
				t.Errorf("%d identities for 20 messages", len(identities))
			}
		})
	}
	t.Run("go", func(t *testing.T) {
		topic := p.topic(t, "ClientReadGo", 2)
		g := p.goPeer(t, "produce", topic, "20", "9000")
		waitLine(t, g, line("#done"))
		ids := sent(g.Lines())
		for body, m := range byText(t, readAll(t, c, "client-read", topic, 20)) {
			if m.Size != 9000 || m.ID() != ids[body] || "go-"+m.Props["n"] != body || !m.IsCompressed() {
				t.Errorf("%s: %d bytes, id %s, Go says %s, flags %#x", body, m.Size, m.ID(), ids[body], m.SysFlag)
			}
		}
	})
}

func TestClient_longPollIsWoken(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "ClientPoll", 1)
	c := newClient(t, p.Addr)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	type answer struct {
		ms  []stored
		err error
		at  time.Time
	}
	got := make(chan answer, 1)
	asking := make(chan struct{})
	go func() {
		close(asking)
		r, err := c.Pull(t.Context(), &rocketmq.PullRequest{
			Group: "client-poll", Queue: q, MaxMessages: 32, MaxBytes: 1 << 20, Subscription: everything(topic), Hold: time.Minute,
		})
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer r.Release()
		at := time.Now()
		ms, err := decode(r.Body, q)
		got <- answer{ms, err, at}
	}()
	<-asking
	select {
	case a := <-got:
		t.Fatalf("a pull of an empty queue was not held: %+v", a)
	case <-time.After(2 * time.Second): // what the broker must let pass
	}
	before := time.Now()
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("wake")})
	a := <-got
	if a.err != nil || len(a.ms) != 1 || a.ms[0].Text != "wake" || a.at.Sub(before) > 45*time.Second { // less than is left of the hold
		t.Errorf("woken after %s: %+v", a.at.Sub(before), a)
	}
}

func TestClient_filtersAndOffsetsOutOfRange(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "ClientFilter", 1)
	c := newClient(t, p.Addr)
	for i := range 10 {
		send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "m%d", i), Tag: []string{"red", "blue"}[i%2], Properties: map[string]string{"n": fmt.Sprint(i)}})
	}
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	visible(t, c, q, 10)
	for _, tt := range []struct {
		name   string
		sub    rocketmq.Subscription
		offset int64
		status rocketmq.PullStatus
		next   int64
		bodies string
	}{
		{"tag", rocketmq.Subscription{Topic: topic, Expression: "red || green", Type: rocketmq.FilterTag}, 0, rocketmq.PullFound, 10, "m0 m2 m4 m6 m8"},
		{"no such tag", rocketmq.Subscription{Topic: topic, Expression: "green", Type: rocketmq.FilterTag}, 0, rocketmq.PullNoMatch, 10, ""},
		{"sql", rocketmq.Subscription{Topic: topic, Expression: "n > 6", Type: rocketmq.FilterSQL92}, 0, rocketmq.PullFound, 10, "m7 m8 m9"},
		{"at the end", everything(topic), 10, rocketmq.PullNoNew, 10, ""},
		{"above max", everything(topic), 77, rocketmq.PullOffsetIllegal, 10, ""},
		{"below min", everything(topic), -5, rocketmq.PullOffsetIllegal, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.sub.Version = 1
			r, err := c.Pull(t.Context(), &rocketmq.PullRequest{Group: "client-filter", Queue: q, Offset: tt.offset, MaxMessages: 32, MaxBytes: 1 << 20, Subscription: tt.sub})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			ms, err := decode(r.Body, q)
			var bodies []string
			for _, m := range ms {
				bodies = append(bodies, m.Text)
			}
			if err != nil || r.Status != tt.status || r.Next != tt.next || strings.Join(bodies, " ") != tt.bodies || r.Reset || r.Max != 10 {
				t.Errorf("status %d, next %d, %q, min %d, max %d, reset %t, error %v", r.Status, r.Next, bodies, r.Min, r.Max, r.Reset, err)
			}
		})
	}
}
