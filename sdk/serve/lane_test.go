package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

type none struct{}

// handler makes a component of a function.
func handler(f sdk.HandlerFunc) sdk.Spec {
	return sdk.Component("h", func(context.Context, none, sdk.Env) (sdk.Handler, error) { return f, nil })
}

func open(t *testing.T, spec sdk.Spec, o sdktest.Options) *sdktest.Lane {
	t.Helper()
	return sdktest.Start(t, spec).Configure("h", "").Open(o)
}

func messages(n int) []sdktest.Message {
	out := make([]sdktest.Message, n)
	for i := range out {
		out[i] = sdktest.Message{ID: fmt.Sprint(i), Body: []byte(fmt.Sprint("body ", i)), QueueID: int32(i % 4), Offset: int64(i)}
	}
	return out
}

func allAcked(t *testing.T, results []sdktest.Result) {
	t.Helper()
	for i, r := range results {
		if r.Kind != sdktest.Acked {
			t.Errorf("message %d: %+v", i, r)
		}
	}
}

func TestASlowRecordHoldsNobodyBack(t *testing.T) {
	release := make(chan struct{})
	lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
		if m.ID() == "0" {
			<-release
		}
		return nil
	}), sdktest.Options{})
	first := lane.Send(messages(256)...)
	second := lane.Send(messages(256)[1:]...)
	allAcked(t, lane.Wait(second, 255))
	for i := uint32(1); i < 256; i++ {
		if r := lane.WaitFor(first, i); r.Kind != sdktest.Acked {
			t.Fatalf("message %d: %+v", i, r)
		}
	}
	if n := lane.Answered(); n != 510 {
		t.Errorf("%d answers while message 0 is running, want 510", n)
	}
	close(release)
	if r := lane.WaitFor(first, 0); r.Kind != sdktest.Acked {
		t.Errorf("message 0: %+v", r)
	}
	lane.Drain()
}

func TestConcurrencyIsABound(t *testing.T) {
	var running, most atomic.Int32
	reached := make(chan struct{})
	var once sync.Once
	lane := open(t, handler(func(ctx context.Context, _ *sdk.Message) error {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
			m = most.Load()
		}
		if n == 3 {
			once.Do(func() { close(reached) })
		}
		select {
		case <-reached:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}), sdktest.Options{Concurrency: 3})
	allAcked(t, lane.Wait(lane.Send(messages(50)...), 50))
	if most.Load() != 3 {
		t.Errorf("at most %d ran at once, want 3", most.Load())
	}
	lane.Drain()
}

func TestVerdicts(t *testing.T) {
	h := sdktest.Start(t, handler(func(_ context.Context, m *sdk.Message) error {
		switch m.ID() {
		case "1":
			return errors.New("db away")
		case "2":
			return sdk.RetryAfter(errors.New("later"), 1500*time.Millisecond)
		case "3":
			return fmt.Errorf("order: %w", sdk.Reject("bad_order", errors.New("no such customer")))
		case "4":
			panic("oops")
		case "5":
			return fmt.Errorf("calling: %w", context.DeadlineExceeded)
		case "6":
			return errors.New("not text: \xff")
		}
		return nil
	})).Configure("h", "")
	got := h.Deliver(messages(7)...)
	want := []sdktest.Result{
		{Kind: sdktest.Acked},
		{Kind: sdktest.Retried, Class: "error", Text: "db away"},
		{Kind: sdktest.Retried, Class: "error", Text: "later", Delay: 1500 * time.Millisecond},
		{Kind: sdktest.Rejected, Class: "bad_order", Text: "order: no such customer"},
		{Kind: sdktest.Retried, Class: "panic", Text: "panic: oops"},
		{Kind: sdktest.Retried, Class: "timeout", Text: "calling: context deadline exceeded"},
		{Kind: sdktest.Retried, Class: "error", Text: "not text: \uFFFD"},
	}
	for i := range want {
		if g := got[i]; g.Kind != want[i].Kind || g.Class != want[i].Class || g.Text != want[i].Text || g.Delay != want[i].Delay {
			t.Errorf("message %d: %+v, want %+v", i, g, want[i])
		}
	}
}

func TestStrandsAreInOrderAndOthersParallel(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{}
	meet := make(chan struct{})
	var once sync.Once
	waiting := 0
	lane := open(t, handler(func(ctx context.Context, m *sdk.Message) error {
		mu.Lock()
		seen[m.Tag()] = append(seen[m.Tag()], m.ID())
		if len(seen[m.Tag()]) == 1 {
			waiting++
		}
		if waiting == 4 {
			once.Do(func() { close(meet) }) // only reached when strands run in parallel
		}
		mu.Unlock()
		select {
		case <-meet:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}), sdktest.Options{})
	batch := messages(64)
	for i := range batch {
		batch[i].Strand, batch[i].Tag = uint32(i%4)+1, fmt.Sprint(i%4)
	}
	allAcked(t, lane.Wait(lane.Send(batch...), 64))
	for tag, ids := range seen {
		last := -1
		for _, id := range ids {
			var n int
			if _, err := fmt.Sscan(id, &n); err != nil || n <= last {
				t.Fatalf("strand %s was handled as %v", tag, ids)
			}
			last = n
		}
	}
	lane.Drain()
}

func TestAFailureGivesTheRestOfItsStrandBack(t *testing.T) {
	var handled sync.Map
	h := sdktest.Start(t, handler(func(_ context.Context, m *sdk.Message) error {
		handled.Store(m.ID(), true)
		if m.ID() == "2" {
			return errors.New("no")
		}
		return nil
	})).Configure("h", "")
	batch := messages(8)
	for i := range batch {
		batch[i].Strand = uint32(i%2) + 1
	}
	got := h.Deliver(batch...)
	for i, want := range []sdktest.Kind{"ack", "ack", "retry", "ack", "untouched", "ack", "untouched", "ack"} {
		if got[i].Kind != want {
			t.Errorf("message %d: %s, want %s", i, got[i].Kind, want)
		}
		if _, was := handled.Load(fmt.Sprint(i)); was == (want == sdktest.Untouched) {
			t.Errorf("message %d: handled %v, verdict %s", i, was, got[i].Kind)
		}
	}
}

func TestDeadlineEndsTheContext(t *testing.T) {
	lane := open(t, handler(func(ctx context.Context, _ *sdk.Message) error {
		at, ok := ctx.Deadline()
		if !ok || time.Until(at) > 60*time.Millisecond {
			return sdk.Reject("deadline", fmt.Errorf("deadline %v, %v", at, ok))
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		return ctx.Err()
	}), sdktest.Options{Deadline: 60 * time.Millisecond})
	if r := lane.WaitFor(lane.Send(messages(1)...), 0); r.Kind != sdktest.Retried || r.Class != sdk.ClassTimeout {
		t.Errorf("verdict %+v", r)
	}
	lane.Drain()
}

func TestContextAfterTheAnswer(t *testing.T) {
	kept := make(chan context.Context, 1)
	lane := open(t, handler(func(ctx context.Context, _ *sdk.Message) error { kept <- ctx; return nil }), sdktest.Options{})
	allAcked(t, lane.Wait(lane.Send(messages(1)...), 1))
	ctx := <-kept
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("context ended with %v", ctx.Err())
	}
	lane.Drain()
}

func TestStartedIsSentForLongRecordsOnly(t *testing.T) {
	release := make(chan struct{})
	lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
		if m.ID() == "1" {
			<-release
		}
		return nil
	}), sdktest.Options{})
	seq := lane.Send(messages(3)...)
	lane.Started(seq, 1)
	close(release)
	allAcked(t, lane.Wait(seq, 3))
	lane.Drain()
}

func TestCancelEndsWhatRunsAndReturnsWhatWaits(t *testing.T) {
	started := make(chan struct{})
	lane := open(t, handler(func(ctx context.Context, _ *sdk.Message) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}), sdktest.Options{Concurrency: 1})
	seq := lane.Send(messages(3)...)
	<-started
	lane.Cancel(seq)
	got := lane.Wait(seq, 3)
	if got[0].Kind != sdktest.Retried || got[0].Class != sdk.ClassCanceled {
		t.Errorf("what ran: %+v", got[0])
	}
	if got[1].Kind != sdktest.Untouched || got[2].Kind != sdktest.Untouched {
		t.Errorf("what waited: %+v, %+v", got[1], got[2])
	}
	lane.Drain()
}

func TestDrainReturnsWhatWaits(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	lane := open(t, handler(func(context.Context, *sdk.Message) error {
		close(started)
		<-release
		return nil
	}), sdktest.Options{Concurrency: 1})
	seq := lane.Send(messages(5)...)
	<-started
	lane.StartDrain()
	for i := uint32(1); i < 5; i++ {
		if r := lane.WaitFor(seq, i); r.Kind != sdktest.Untouched {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	close(release)
	if r := lane.WaitFor(seq, 0); r.Kind != sdktest.Acked {
		t.Errorf("what ran: %+v", r)
	}
	lane.Drain()
}

func TestDrainReturnsTheRestOfAStrandInHand(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	lane := open(t, handler(func(context.Context, *sdk.Message) error {
		close(started)
		<-release
		return nil
	}), sdktest.Options{})
	batch := messages(4)
	for i := range batch {
		batch[i].Strand = 1
	}
	seq := lane.Send(batch...)
	<-started
	lane.StartDrain()
	late := lane.Send(sdktest.Message{ID: "late", Strand: 2})
	if r := lane.WaitFor(late, 0); r.Kind != sdktest.Untouched { // and so the drain has been seen
		t.Errorf("what came after the drain: %+v", r)
	}
	close(release)
	got := lane.Wait(seq, 4)
	if got[0].Kind != sdktest.Acked {
		t.Errorf("what ran: %+v", got[0])
	}
	for i := 1; i < 4; i++ {
		if got[i].Kind != sdktest.Untouched {
			t.Errorf("message %d: %+v", i, got[i])
		}
	}
	lane.Ended()
}

func TestOutputsRideWithTheirVerdictAndWaitForCredit(t *testing.T) {
	lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
		if m.ID() == "9" {
			m.Emit(sdk.Output{Body: []byte("lost")})
			return errors.New("failed after all")
		}
		if m.ID() != "0" {
			m.Emit(sdk.Output{
				Topic: "Out", Tag: "t", Keys: []string{"a", "b"}, Body: make([]byte, 1000), Delay: time.Second,
				Properties: map[string]string{"x": "1", "a": "2"}, ShardingKey: m.ID(),
			})
		}
		return nil
	}), sdktest.Options{OutputBytes: 1500, Concurrency: 1})
	seq := lane.Send(messages(10)...)
	if r := lane.WaitFor(seq, 9); r.Kind != sdktest.Retried || len(r.Outputs) != 0 {
		t.Errorf("a failed message: %+v", r)
	}
	if r := lane.WaitFor(seq, 0); r.Kind != sdktest.Acked || r.Outputs != nil {
		t.Errorf("without outputs: %+v", r)
	}
	lane.WaitFor(seq, 2)
	if n := lane.Answered(); n > 4 {
		t.Errorf("%d answers with credit for two messages' outputs", n)
	}
	lane.Grant(1 << 20)
	got := lane.Wait(seq, 10)
	o := got[8].Outputs
	if len(o) != 1 || o[0].Topic != "Out" || o[0].Tag != "t" || len(o[0].Keys) != 2 || len(o[0].Body) != 1000 ||
		o[0].Delay != time.Second || o[0].ShardingKey != "8" || o[0].Properties["x"] != "1" || o[0].Properties["a"] != "2" {
		t.Errorf("outputs %+v", o)
	}
	lane.Drain()
}

func TestCreditsComeBack(t *testing.T) {
	lane := open(t, handler(func(context.Context, *sdk.Message) error { return nil }), sdktest.Options{Credits: 8})
	lane.Credits(8)
	for range 5 {
		allAcked(t, lane.Wait(lane.Send(messages(8)...), 8))
	}
	lane.Credits(47) // less than a quarter of the window is held back
	lane.Drain()
}

func TestWhatAHandlerSees(t *testing.T) {
	traceBytes := []byte(strings.Repeat("\x01", 16) + strings.Repeat("\x02", 8) + "\x01")
	h := sdktest.Start(t, handler(func(ctx context.Context, m *sdk.Message) error {
		tc, ok := m.TraceContext()
		sc := trace.SpanContextFromContext(ctx)
		value, has := m.Property("k")
		checks := map[string]bool{
			"id": m.ID() == "m-1", "topic": m.Topic() == "Orders", "tag": m.Tag() == "paid", "keys": len(m.Keys()) == 2,
			"body": string(m.Body()) == "hello", "attempt": m.Attempt() == 3, "born": m.BornAt().UnixMilli() == 1_700_000_000_000,
			"stored": m.StoredAt().After(m.BornAt()), "offset": m.Offset() == 42, "property": value == "v" && has,
			"queue": m.Queue() == sdk.Queue{Topic: "Orders", Broker: "b", ID: 7},
			"trace": ok && tc.Flags == 1 && sc.IsRemote() && sc.IsSampled() && [16]byte(sc.TraceID()) == tc.TraceID && [8]byte(sc.SpanID()) == tc.SpanID,
		}
		for what, fine := range checks {
			if !fine {
				return sdk.Reject(what, errors.New("wrong"))
			}
		}
		return nil
	})).Configure("h", "")
	allAcked(t, h.Deliver(sdktest.Message{
		ID: "m-1", Topic: "Orders", Broker: "b", Tag: "paid", Keys: []string{"a", "b"},
		Properties: map[string]string{"k": "v"}, Body: []byte("hello"), QueueID: 7, Offset: 42, Attempt: 3, Trace: traceBytes,
	}))
}

func TestAHostThatGoesEndsTheContexts(t *testing.T) {
	ended := make(chan error, 1)
	started := make(chan struct{})
	lane := open(t, handler(func(ctx context.Context, _ *sdk.Message) error {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	}), sdktest.Options{})
	lane.Send(messages(1)...)
	<-started
	lane.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("context ended with %v", err)
	}
}

func TestManyBatchesUnderLoad(t *testing.T) {
	var handled atomic.Int64
	lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
		handled.Add(1)
		if m.Offset()%97 == 13 {
			return errors.New("again")
		}
		return nil
	}), sdktest.Options{Concurrency: 8})
	const batches, size = 200, 50
	for range batches {
		lane.Send(messages(size)...)
	}
	for seq := uint64(1); seq <= batches; seq++ {
		for i, r := range lane.Wait(seq, size) {
			if want := i%97 == 13; (r.Kind == sdktest.Retried) != want {
				t.Fatalf("batch %d message %d: %+v", seq, i, r)
			}
		}
	}
	if handled.Load() != batches*size {
		t.Errorf("%d handled, %d sent", handled.Load(), batches*size)
	}
	lane.Drain()
}
