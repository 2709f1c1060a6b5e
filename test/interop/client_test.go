package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// newClient starts a client that ends with the test.
func newClient(t *testing.T, nameServer string, change ...func(*rocketmq.Config)) *rocketmq.Client {
	t.Helper()
	cfg := rocketmq.Config{NameServers: []string{nameServer}, Logger: slog.New(slog.DiscardHandler), CallTimeout: 10 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	c, err := rocketmq.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

func everything(topic string) rocketmq.Subscription {
	return rocketmq.Subscription{Topic: topic, Expression: "*", Type: rocketmq.FilterTag, Version: 1}
}

// groupOf is a member of a group that is interested in topics.
func groupOf(name string, topics ...string) rocketmq.GroupSpec {
	return rocketmq.GroupSpec{Name: name, FromWhere: rocketmq.FromFirst, Subscriptions: func() []rocketmq.Subscription {
		var subs []rocketmq.Subscription
		for _, t := range append(topics, wire.RetryTopic(name)) {
			subs = append(subs, everything(t))
		}
		return subs
	}}
}

// stored is one message as our client pulled it, decompressed, with nothing that aliases a buffer.
type stored struct {
	wire.Message
	Props map[string]string
	Text  string // body without blanks at its end
	Size  int    // of the body
	Queue sdk.Queue
}

// read pulls one queue from an offset on until it has what is there.
func read(ctx context.Context, c *rocketmq.Client, group string, q sdk.Queue, from int64) ([]stored, int64, error) {
	var all []stored
	for {
		r, err := c.Pull(ctx, &rocketmq.PullRequest{
			Group: group, Queue: q, Offset: from, MaxMessages: 32, MaxBytes: 1 << 20, Subscription: everything(q.Topic),
		})
		if err != nil {
			return all, from, err
		}
		ms, err := decode(r.Body, q)
		status, next := r.Status, r.Next
		r.Release()
		if err != nil || status != rocketmq.PullFound {
			return all, from, err
		}
		all, from = append(all, ms...), next
	}
}

func decode(body []byte, q sdk.Queue) ([]stored, error) {
	var all []stored
	body = append([]byte(nil), body...)
	inflate := wire.NewInflater(wire.MaxBody)
	for len(body) > 0 {
		s := stored{Queue: q}
		n, err := s.Decode(body)
		if err != nil {
			return all, fmt.Errorf("message %d of %s: %w", len(all), q, err)
		}
		if err := s.CheckCRC(); err != nil {
			return all, err
		}
		b, err := inflate.AppendBody(nil, &s.Message)
		if err != nil {
			return all, err
		}
		s.Props, s.Text, s.Size = wire.PropertyMap(s.Properties), strings.TrimRight(string(b), " "), len(b)
		all = append(all, s)
		body = body[n:]
	}
	return all, nil
}

// readAll pulls all queues of a topic until n messages are there, in a group of its own.
func readAll(t *testing.T, c *rocketmq.Client, group, topic string, n int) []stored {
	t.Helper()
	var all []stored
	next := map[sdk.Queue]int64{}
	until(t, 40*time.Second, fmt.Sprintf("%d messages in %s", n, topic), func() (bool, string) {
		queues, err := c.Queues(t.Context(), topic)
		if err != nil {
			return false, err.Error() // a topic of the broker's own making takes a moment
		}
		for _, q := range queues {
			ms, end, err := read(t.Context(), c, group, q, next[q])
			if err != nil {
				return false, err.Error()
			}
			all, next[q] = append(all, ms...), end
		}
		return len(all) >= n, fmt.Sprintf("%d messages", len(all))
	})
	if len(all) != n {
		t.Fatalf("%s holds %d messages, want %d", topic, len(all), n)
	}
	return all
}

func byText(t *testing.T, ms []stored) map[string]stored {
	t.Helper()
	m := map[string]stored{}
	for _, s := range ms {
		if _, twice := m[s.Text]; twice {
			t.Errorf("%q is there twice", s.Text)
		}
		m[s.Text] = s
	}
	return m
}

// visible waits until a queue ends at an offset: a broker shows messages a moment after it stored them.
func visible(t *testing.T, c *rocketmq.Client, q sdk.Queue, end int64) {
	t.Helper()
	until(t, time.Minute, fmt.Sprintf("%s to end at %d", q, end), func() (bool, string) {
		at, err := c.MaxOffset(t.Context(), q)
		return err == nil && at >= end, fmt.Sprint(at, err)
	})
}

// topic makes a topic that no other test uses.
func (p *place) topic(t *testing.T, name string, queues int) string {
	t.Helper()
	if err := p.admin.CreateTopic(t.Context(), name, queues); err != nil {
		t.Fatal(err)
	}
	return name
}

// run executes an mqadmin command that must work.
func (p *place) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.admin.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func send(t *testing.T, c *rocketmq.Client, m *rocketmq.OutgoingMessage) rocketmq.SendResult {
	t.Helper()
	r, err := c.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != rocketmq.SendOK {
		t.Fatalf("sending %.30q: status %d", m.Body, r.Status)
	}
	return r
}

func sendN(t *testing.T, c *rocketmq.Client, topic, prefix string, n int) {
	t.Helper()
	for i := range n {
		send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "%s%d", prefix, i)})
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
