package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
	"github.com/streamd/streamd/sdk/serve"
)

func TestBatchHandlerGetsTheBatchWhole(t *testing.T) {
	spec := sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (sdk.BatchHandler, error) {
		return sdk.BatchHandlerFunc(func(_ context.Context, b *sdk.Batch) error {
			for i, m := range b.All() {
				switch m.ID() {
				case "1":
					b.Fail(i, sdk.Reject("bad", errors.New("one")))
				case "2":
					b.Fail(i, nil)
				case "3":
					m.Emit(sdk.Output{Body: []byte("out")})
				}
			}
			if b.At(0).ID() == "0" && b.Len() == 4 {
				return errors.New("the rest fails")
			}
			return nil
		}), nil
	})
	lane := open(t, spec, sdktest.Options{})
	got := lane.Wait(lane.Send(messages(4)...), 4)
	for i, want := range []sdktest.Kind{"retry", "reject", "ack", "retry"} {
		if got[i].Kind != want {
			t.Errorf("message %d: %+v, want %s", i, got[i], want)
		}
	}
	allAcked(t, lane.Wait(lane.Send(messages(5)[3:]...), 2))
	lane.Drain()
}

func TestBatchHandlerAndStrands(t *testing.T) {
	spec := sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (sdk.BatchHandler, error) {
		return sdk.BatchHandlerFunc(func(_ context.Context, b *sdk.Batch) error {
			b.Fail(0, errors.New("first"))
			return nil
		}), nil
	})
	batch := messages(4)
	for i := range batch {
		batch[i].Strand = uint32(i%2) + 1
	}
	got := sdktest.Start(t, spec).Configure("h", "").Deliver(batch...)
	for i, want := range []sdktest.Kind{"retry", "ack", "untouched", "ack"} {
		if got[i].Kind != want {
			t.Errorf("message %d: %+v, want %s", i, got[i], want)
		}
	}
}

func TestBatchHandlerPanicAndCancel(t *testing.T) {
	started := make(chan struct{})
	spec := sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (sdk.BatchHandler, error) {
		return sdk.BatchHandlerFunc(func(ctx context.Context, b *sdk.Batch) error {
			if b.Len() == 1 {
				panic("alone")
			}
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}), nil
	})
	lane := open(t, spec, sdktest.Options{})
	if r := lane.WaitFor(lane.Send(messages(1)...), 0); r.Class != sdk.ClassPanic {
		t.Errorf("a panic gave %+v", r)
	}
	seq := lane.Send(messages(3)...)
	<-started
	lane.Cancel(seq)
	for i, r := range lane.Wait(seq, 3) {
		if r.Kind != sdktest.Retried || r.Class != sdk.ClassCanceled {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	lane.Drain()
}

// buffer is an AsyncHandler that answers on Flush.
type buffer struct {
	mu    sync.Mutex
	done  []func(error)
	ids   []string
	taken chan string
	gone  chan []sdk.Queue
}

func (b *buffer) HandleAsync(ctx context.Context, m *sdk.Message, done func(error)) {
	b.mu.Lock()
	b.done, b.ids = append(b.done, done), append(b.ids, m.ID())
	b.mu.Unlock()
	if m.ID() == "panic" {
		panic("async")
	}
	if m.ID() == "revoked" {
		context.AfterFunc(ctx, func() { done(ctx.Err()) })
	}
	b.taken <- m.ID()
}

func (b *buffer) Flush(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, done := range b.done {
		done(nil)
		if b.ids[i] == "twice" {
			done(errors.New("the second answer does not count"))
		}
	}
	b.done, b.ids = nil, nil
	return nil
}

func (b *buffer) Revoked(_ context.Context, queues []sdk.Queue) error {
	b.gone <- queues
	return nil
}

func async(t *testing.T) (*buffer, *sdktest.Lane) {
	t.Helper()
	b := &buffer{taken: make(chan string, 100), gone: make(chan []sdk.Queue, 1)}
	spec := sdk.AsyncComponent("h", func(context.Context, none, sdk.Env) (*buffer, error) { return b, nil })
	return b, open(t, spec, sdktest.Options{Concurrency: 2})
}

func TestAsyncHandlerBuffersBeyondConcurrency(t *testing.T) {
	b, lane := async(t)
	batch := messages(10)
	batch[3].ID = "twice"
	seq := lane.Send(batch...)
	for range 10 {
		<-b.taken
	}
	if lane.Answered() != 0 {
		t.Error("answers before done")
	}
	lane.Flush()
	allAcked(t, lane.Wait(seq, 10))
	lane.Drain()
}

func TestAsyncStrandsTakeTurns(t *testing.T) {
	b, lane := async(t)
	batch := messages(6)
	for i := range batch {
		batch[i].Strand = uint32(i%2) + 1
	}
	seq := lane.Send(batch...)
	for round := range 3 {
		first, second := <-b.taken, <-b.taken
		if got := first + second; got != messages(6)[2*round].ID+messages(6)[2*round+1].ID {
			t.Fatalf("round %d took %s", round, got)
		}
		if len(b.taken) > 0 {
			t.Fatal("a strand's next message came before the answer to the one before")
		}
		lane.Flush()
	}
	allAcked(t, lane.Wait(seq, 6))
	lane.Drain()
}

func TestAsyncPanicIsAnswered(t *testing.T) {
	_, lane := async(t)
	if r := lane.WaitFor(lane.Send(sdktest.Message{ID: "panic"}), 0); r.Class != sdk.ClassPanic {
		t.Errorf("a panic gave %+v", r)
	}
	lane.Drain()
}

func TestRevokeTellsAndLetsRunningWorkEnd(t *testing.T) {
	b, lane := async(t)
	q := sdk.Queue{Topic: "Orders", Broker: "b", ID: 3}
	seq := lane.Send(sdktest.Message{ID: "revoked", Topic: q.Topic, Broker: q.Broker, QueueID: q.ID},
		sdktest.Message{ID: "other", Topic: q.Topic, Broker: q.Broker, QueueID: 4})
	<-b.taken
	<-b.taken
	lane.Revoke(q)
	if got := <-b.gone; len(got) != 1 || got[0] != q {
		t.Errorf("revoked %v", got)
	}
	allAcked(t, lane.Wait(seq, 2)) // the author flushes; a context that ended would have made it a retry
	lane.Drain()
}

// gate handles a message for as long as it is told to, and heeds its context.
type gate struct {
	begun, revoked chan struct{}
	release        chan struct{}
}

func (g *gate) Handle(ctx context.Context, _ *sdk.Message) error {
	g.begun <- struct{}{}
	select {
	case <-g.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Revoked(context.Context, []sdk.Queue) error {
	close(g.revoked)
	return nil
}

// TestRevokeLeavesRunningWorkAlone: a hand-over drains. A handler that heeds its context must not be made to fail by it.
func TestRevokeLeavesRunningWorkAlone(t *testing.T) {
	g := &gate{begun: make(chan struct{}, 2), revoked: make(chan struct{}), release: make(chan struct{})}
	lane := open(t, sdk.Component("h", func(context.Context, none, sdk.Env) (*gate, error) { return g, nil }), sdktest.Options{Concurrency: 1})
	q := sdk.Queue{Topic: "Orders", Broker: "b", ID: 3}
	seq := lane.Send(sdktest.Message{ID: "running", Topic: q.Topic, Broker: q.Broker, QueueID: q.ID},
		sdktest.Message{ID: "waiting", Topic: q.Topic, Broker: q.Broker, QueueID: q.ID})
	<-g.begun
	lane.Revoke(q)
	<-g.revoked
	close(g.release)
	got := lane.Wait(seq, 2)
	if got[0].Kind != sdktest.Acked || got[1].Kind != sdktest.Untouched {
		t.Errorf("running: %+v, waiting: %+v; want acked and untouched", got[0], got[1])
	}
	lane.Drain()
}

func TestDrainFlushesAsyncHandlers(t *testing.T) {
	b, lane := async(t)
	seq := lane.Send(messages(4)...)
	for range 4 {
		<-b.taken
	}
	lane.Drain()
	allAcked(t, lane.Wait(seq, 4))
}

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	logger := serve.NewLogger(&out, slog.LevelDebug).With("level", 7, "instance", "billing")
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1,
	}))
	logger.InfoContext(ctx, "paid \xff", "msg", 5, "@message", []int{1}, "order", 42)
	logger.WithGroup("g").Warn("grouped", "msg", 1)
	logger.Debug("plain")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for _, line := range lines {
		if strings.Count(line, `"@message"`) != 1 || strings.Count(line, `"@level"`) != 1 {
			t.Errorf("a key is there twice: %s", line)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, key := range []string{"@level", "@message", "@timestamp"} {
			if _, ok := fields[key].(string); !ok {
				t.Errorf("%s is no string: %s", key, line)
			}
		}
		if fields["attr_level"] != 7.0 {
			t.Errorf("the author's level is lost: %s", line)
		}
	}
	if !strings.Contains(lines[0], `"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000"`) ||
		!strings.Contains(lines[0], `"@level":"info"`) || !strings.Contains(lines[0], `"order":42`) {
		t.Errorf("line %s", lines[0])
	}
}

func TestConfigureSaysWhatIsWrong(t *testing.T) {
	type config struct {
		Currency string `json:"currency" required:"true"`
	}
	p := sdktest.Start(t, sdk.Component("h", func(_ context.Context, c config, _ sdk.Env) (sdk.Handler, error) {
		if c.Currency == "panic" {
			panic("no")
		}
		return sdk.HandlerFunc(func(context.Context, *sdk.Message) error { return nil }), nil
	}))
	for input, want := range map[string]string{`{}`: "/currency", `{"currency":1,"x":2}`: "/currency", `{"currency":"panic"}`: ""} {
		if got := p.Check("h", input); len(got) == 0 || got[0].Pointer != want {
			t.Errorf("%s: %+v", input, got)
		}
	}
	if got := p.Check("absent", "{}"); len(got) != 1 || !strings.Contains(got[0].Text, `no component "absent"`) || got[0].Hint != "one of h" {
		t.Errorf("an unknown component: %+v", got)
	}
	d := p.Describe()
	if len(d.GetComponents()) != 1 || !json.Valid([]byte(d.GetComponents()[0].GetConfigSchema())) || d.GetComponents()[0].GetModes()[0] != "single" || d.GetComponents()[0].GetUnordered() != "" {
		t.Errorf("described as %v", d)
	}
}

func TestWithoutOrder_isToldToTheHost(t *testing.T) {
	p := sdktest.Start(t, handler(func(context.Context, *sdk.Message) error { return nil }).WithoutOrder("works later"))
	if c := p.Describe().GetComponents(); len(c) != 1 || c[0].GetUnordered() != "works later" {
		t.Errorf("described as %v", c)
	}
	defer func() {
		if p := recover(); p == nil {
			t.Error("no reason was taken")
		}
	}()
	handler(func(context.Context, *sdk.Message) error { return nil }).WithoutOrder("")
}

func TestComponentsAreChecked(t *testing.T) {
	good := handler(func(context.Context, *sdk.Message) error { return nil })
	for want, specs := range map[string][]sdk.Spec{"no component": {}, "there twice": {good, good}, "has no name": {{}}, "cannot be built": {{Name: "x"}}} {
		if _, err := serve.NewServer(sdk.Info{}, specs, slog.New(slog.DiscardHandler), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
