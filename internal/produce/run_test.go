package produce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker stores what it is sent and refuses what refuse names.
type broker struct {
	mu       sync.Mutex
	stored   []*rocketmq.OutgoingMessage
	requests []int // messages per request
	refuse   func(m *rocketmq.OutgoingMessage, request int) error
}

func (b *broker) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	rs, err := b.SendBatch(ctx, m.Topic, []*rocketmq.OutgoingMessage{m})
	if err != nil {
		return rocketmq.SendResult{}, err
	}
	return rs[0], nil
}

func (b *broker) SendBatch(_ context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, len(ms))
	var rs []rocketmq.SendResult
	for _, m := range ms {
		if b.refuse != nil {
			if err := b.refuse(m, len(b.requests)); err != nil {
				return nil, err
			}
		}
		n := len(b.stored) + len(rs)
		rs = append(rs, rocketmq.SendResult{Status: rocketmq.SendOK, MessageID: fmt.Sprint("id", n+1), Queue: sdk.Queue{Topic: topic}, Offset: int64(n)})
	}
	b.stored = append(b.stored, ms...)
	return rs, nil
}

func (b *broker) bodies() (out []string) {
	for _, m := range b.stored {
		out = append(out, string(m.Body))
	}
	return out
}

func collect(into *[]produce.Result) func(produce.Result) {
	return func(r produce.Result) { *into = append(*into, r) }
}

var errRefused = errors.New("refused")

func TestLinesKeepTheirOrder(t *testing.T) {
	b, got := &broker{}, []produce.Result{}
	s, err := produce.Run(t.Context(), b, produce.Lines(strings.NewReader("one\r\n\ntwo\nthree"), produce.Template{
		Topic: "T", Tag: "t{n}", Keys: []string{"k{n}", "fixed"}, Properties: map[string]string{"p": "v{n}"},
	}), produce.Options{}, collect(&got))
	if err != nil || s.Stored != 3 || s.Failed != 0 || s.Bytes != 11 {
		t.Fatalf("Run = %+v, %v", s, err)
	}
	if d := cmp.Diff([]string{"one", "two", "three"}, b.bodies()); d != "" {
		t.Error(d)
	}
	m := b.stored[2]
	if m.Tag != "t4" || !slices.Equal(m.Keys, []string{"k4", "fixed"}) || m.Properties["p"] != "v4" {
		t.Errorf("message = %+v", m)
	}
	if len(got) != 3 || got[1].N != 2 || got[1].Stored.MessageID != "id2" {
		t.Errorf("results = %+v", got)
	}
}

func TestJSONLines(t *testing.T) {
	input := `{"body":"text","key":"a","keys":["b"],"tag":"x","delay":"10s","properties":{"own":"1"},"topic":"Other"}
{"body":{"n": 1},"delay":3}
{"body_base64":"AAE=","delay":"90s"}
{"bdoy":"typo"}
{"body":"x","delay":"soon"}
not json
{}
`
	b, got := &broker{}, []produce.Result{}
	s, err := produce.Run(t.Context(), b, produce.JSONLines(strings.NewReader(input), produce.Template{
		Topic: "T", Properties: map[string]string{"own": "0", "base": "1"},
	}), produce.Options{}, collect(&got))
	if err != nil || s.Stored != 4 || s.Failed != 3 {
		t.Fatalf("Run = %+v, %v", s, err)
	}
	first := b.stored[0]
	if first.Topic != "Other" || first.DelayLevel != 3 || first.Tag != "x" || !slices.Equal(first.Keys, []string{"a", "b"}) {
		t.Errorf("first = %+v", first)
	}
	if d := cmp.Diff(map[string]string{"own": "1", "base": "1"}, first.Properties); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"text", `{"n": 1}`, "\x00\x01", ""}, b.bodies()); d != "" {
		t.Error(d)
	}
	if b.stored[1].DelayLevel != 3 || b.stored[2].Delay != 90*time.Second || b.stored[2].DelayLevel != 0 {
		t.Errorf("delays = %d, %v", b.stored[1].DelayLevel, b.stored[2].Delay)
	}
	var lines []string
	for _, r := range got {
		if r.Err != nil {
			lines = append(lines, r.Err.Error())
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "line 4: ") || !strings.Contains(lines[0], "bdoy") || !strings.HasPrefix(lines[1], "line 5: ") {
		t.Errorf("failures = %q", lines)
	}
}

func TestBatchesNeverMixTopicsOrDelays(t *testing.T) {
	input := `{"body":"1"}
{"body":"2"}
{"body":"3"}
{"body":"4","topic":"U"}
{"body":"5","topic":"U","delay":1}
{"body":"6"}
`
	b, got := &broker{}, []produce.Result{}
	_, err := produce.Run(t.Context(), b, produce.JSONLines(strings.NewReader(input), produce.Template{Topic: "T"}), produce.Options{Batch: 2}, collect(&got))
	if err != nil || !slices.Equal(b.requests, []int{2, 1, 1, 1, 1}) {
		t.Errorf("requests = %v, %v", b.requests, err)
	}
}

func TestGenerate(t *testing.T) {
	b, got := &broker{}, []produce.Result{}
	s, err := produce.Run(t.Context(), b, produce.Generate(100, 1024, produce.Template{Topic: "T"}), produce.Options{Batch: 16, InFlight: 4, Trace: true}, collect(&got))
	if err != nil || s.Stored != 100 || s.Bytes != 100<<10 || len(got) != 100 {
		t.Fatalf("Run = %+v, %v", s, err)
	}
	seen := map[string]bool{}
	for _, m := range b.stored {
		seen[m.Properties["traceparent"]] = true
		var order struct {
			ID     string  `json:"id"`
			Amount float64 `json:"amount"`
		}
		if err := json.Unmarshal(m.Body, &order); err != nil || len(m.Body) != 1024 || order.Amount < 1 {
			t.Errorf("body = %q, %v", m.Body[:40], err)
		}
		seen[order.ID] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d traces and ids for 100 messages", len(seen))
	}
}

// A body has its size, and is JSON as soon as there is room for an order.
func TestGenerate_sizes(t *testing.T) {
	for size := range 80 {
		m, err := produce.Generate(1, size, produce.Template{Topic: "T"}).Next()
		if err != nil || len(m.Body) != size {
			t.Fatalf("size %d: %q, %v", size, m.Body, err)
		}
		if room := len(`{"id":"G-1","amount":2.01,"filler":""}`); json.Valid(m.Body) != (size >= room) {
			t.Errorf("size %d: %q", size, m.Body)
		}
	}
}

func TestFailuresAreNamedAndTheRestGoesOn(t *testing.T) {
	b := &broker{refuse: func(m *rocketmq.OutgoingMessage, _ int) error {
		if string(m.Body) == "b" {
			return errRefused
		}
		return nil
	}}
	var got []produce.Result
	s, err := produce.Run(t.Context(), b, produce.Lines(strings.NewReader("a\nb\nc\n"), produce.Template{Topic: "T"}), produce.Options{}, collect(&got))
	if err != nil || s.Stored != 2 || s.Failed != 1 || !errors.Is(s.First, errRefused) || got[1].N != 2 || !errors.Is(got[1].Err, errRefused) {
		t.Errorf("Run = %+v, %v; results %+v", s, err, got)
	}
}

func TestUnreachableEndsTheRun(t *testing.T) {
	b := &broker{refuse: func(*rocketmq.OutgoingMessage, int) error { return errRefused }}
	var got []produce.Result
	_, err := produce.Run(t.Context(), b, produce.Generate(1000, 10, produce.Template{Topic: "T"}), produce.Options{
		Unreachable: func(err error) bool { return errors.Is(err, errRefused) },
	}, collect(&got))
	if !errors.Is(err, errRefused) || len(got) > 3 {
		t.Errorf("Run = %v after %d results", err, len(got))
	}
}

func TestRetryForAndRateInVirtualTime(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		b := &broker{refuse: func(_ *rocketmq.OutgoingMessage, request int) error {
			if request < 5 {
				return errRefused
			}
			return nil
		}}
		var got []produce.Result
		start := time.Now()
		s, err := produce.Run(t.Context(), b, produce.Generate(11, 10, produce.Template{Topic: "T"}), produce.Options{Rate: 2, RetryFor: time.Minute}, collect(&got))
		if err != nil || s.Stored != 11 || s.Failed != 0 {
			t.Errorf("Run = %+v, %v", s, err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("11 messages at 2 per second took %v, want 5s", took)
		}
	})
}

func TestCancelReportsWhatWasRead(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &broker{refuse: func(_ *rocketmq.OutgoingMessage, request int) error {
		if request == 2 {
			cancel(errors.New("stopped"))
		}
		return nil
	}}
	var got []produce.Result
	s, err := produce.Run(ctx, b, produce.Generate(1000, 10, produce.Template{Topic: "T"}), produce.Options{}, collect(&got))
	if err == nil || err.Error() != "stopped" {
		t.Errorf("Run = %v", err)
	}
	if len(got) != s.Stored+s.Failed || s.Stored != len(b.stored) || s.Stored < 2 || s.Stored > 4 {
		t.Errorf("%d results, summary %+v, stored %d", len(got), s, len(b.stored))
	}
	for i, r := range got {
		if r.N > len(got) {
			t.Errorf("result %d is for message %d: one is missing", i, r.N)
		}
	}
}

func TestParseDelay(t *testing.T) {
	for text, want := range map[string]produce.Delay{"": {}, "1": {Level: 1}, "18": {Level: 18}, "1m": {Level: 5}, "2h": {Level: 18}, "7s": {After: 7 * time.Second}} {
		if got, err := produce.ParseDelay(text); err != nil || got != want {
			t.Errorf("ParseDelay(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "19", "-1s", "soon"} {
		if got, err := produce.ParseDelay(text); err == nil {
			t.Errorf("ParseDelay(%q) = %+v, want an error", text, got)
		}
	}
}
