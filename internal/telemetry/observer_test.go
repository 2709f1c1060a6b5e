package telemetry

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	producer    = "b7ad6b7169203331"
	traceparent = "00-" + traceID + "-" + producer + "-01"
)

type rig struct {
	*Telemetry
	spans *tracetest.InMemoryExporter
	log   logtest.Log
}

func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter()}
	log := slog.New(LogHandler{slog.NewJSONHandler(&r.log, nil)})
	tel, err := New(t.Context(), c, log, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r.Telemetry = tel
	tel.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithIDGenerator(idGenerator{}))
	tel.tracer = tel.traces.Tracer(Scope)
	t.Cleanup(func() {
		if err := tel.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// stored is a message that is decoded already.
type stored struct{ m *wire.Message }

func (s stored) Message() *wire.Message { return s.m }

func attempt(number int, properties string) *runtime.AttemptInfo {
	m := &wire.Message{QueueOffset: 42, LogOffset: 4711, StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Topic: []byte("Orders"), Properties: []byte(properties), Body: []byte("secret body")}
	q := sdk.Queue{Topic: "Orders", Broker: "broker-a", ID: 3}
	if number > 1 {
		q = sdk.Queue{Topic: "%RETRY%billing", Broker: "broker-a"}
	}
	parent, _ := m.Property("traceparent")
	return &runtime.AttemptInfo{Stream: "orders", Group: "billing", Handler: "invoice", ClientID: "c1", Queue: q, Topic: "Orders", Identity: wire.Identity(m), Number: number, BatchSize: 1, Stored: stored{m}, TraceParent: parent}
}

func TestAttempts_ofAMessageAreInOneTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	props := "UNIQ_KEY\x01U1\x02KEYS\x01k1 k2\x02traceparent\x01" + traceparent + "\x02"
	retry := frame.Verdict{Kind: frame.VerdictRetry, Class: "timeout", Text: "db timeout"}
	var sc [frame.TraceSize]byte
	first := r.Attempt(attempt(1, props), &sc)
	first.Settle("send_back", "Orders")(nil)
	first.End(retry, nil)
	second := r.Attempt(attempt(2, props), &sc)
	second.Settle("dead_letter", "%DLQ%billing")(nil)
	second.End(retry, nil)

	spans := map[string]tracetest.SpanStub{}
	for _, s := range r.spans.GetSpans() {
		spans[s.Name+attr(s, "streamd.delivery.attempt")] = s
		if s.SpanContext.TraceID().String() != traceID {
			t.Errorf("%s is in trace %s", s.Name, s.SpanContext.TraceID())
		}
	}
	one, two := spans["process Orders1"], spans["process Orders2"]
	if one.Parent.SpanID().String() != producer || two.Parent.SpanID().String() != producer {
		t.Errorf("parents %s and %s, want the producer's span", one.Parent.SpanID(), two.Parent.SpanID())
	}
	if len(two.Links) != 2 || two.Links[1].SpanContext.SpanID() != one.SpanContext.SpanID() {
		t.Errorf("links of attempt 2: %v, want the creation and attempt 1", two.Links)
	}
	if attr(one, "streamd.delivery.outcome") != "retry" || attr(two, "streamd.delivery.outcome") != "dead_letter" || attr(two, "streamd.delivery.final") != "true" {
		t.Errorf("outcomes: %s, %s", attr(one, "streamd.delivery.outcome"), attr(two, "streamd.delivery.outcome"))
	}
	if attr(one, "error.type") != "timeout" || attr(two, "streamd.delivery.physical_topic") != "%RETRY%billing" {
		t.Error("error.type or physical topic is missing")
	}
	if s := spans["send_back Orders"]; s.Parent.SpanID() != one.SpanContext.SpanID() {
		t.Error("send_back is not a child of its attempt")
	}
	if s := spans["dead_letter %DLQ%billing"]; s.Parent.SpanID() != two.SpanContext.SpanID() {
		t.Error("dead_letter is not a child of its attempt")
	}
	if got := trace.SpanID(sc[16:24]); got != two.SpanContext.SpanID() || sc[24] != 1 {
		t.Errorf("the handler's process got span %s, want the attempt's", got)
	}
}

func attr(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestAttempt_unsampledStaysUnsampled(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{SampleRatio: 1}) // the ratio is for roots only
	var sc [frame.TraceSize]byte
	a := attempt(1, "traceparent\x01"+strings.TrimSuffix(traceparent, "1")+"0\x02")
	if s := r.Attempt(a, &sc); s != nil {
		t.Fatal("an unsampled message got a span")
	}
	if trace.TraceID(sc[:16]).String() != traceID || trace.SpanID(sc[16:24]).String() != producer || sc[24] != 0 {
		t.Errorf("the handler's process got %x", sc)
	}
	r.Answered(a, frame.Verdict{Kind: frame.VerdictReject, Class: "invalid", Text: "no such customer"}, time.Second)
	if len(r.spans.GetSpans()) != 0 {
		t.Error("spans were recorded")
	}
	if line := r.log.String(); !strings.Contains(line, `"trace_id":"`+traceID+`"`) || !strings.Contains(line, "no such customer") || strings.Contains(line, "secret body") {
		t.Errorf("the failure's log record: %s", line)
	}
}

// TestAttempt_withoutContextMeetsByIdentity: attempts of a message without a traceparent, on two members.
func TestAttempt_withoutContextMeetsByIdentity(t *testing.T) {
	t.Parallel()
	one, two := newRig(t, Config{SampleRatio: 1}), newRig(t, Config{SampleRatio: 1})
	var sc [frame.TraceSize]byte
	retry := frame.Verdict{Kind: frame.VerdictRetry}
	one.Attempt(attempt(1, ""), &sc).End(retry, nil)
	second := attempt(2, "ORIGIN_MESSAGE_ID\x01"+attempt(1, "").Identity+"\x02")
	second.Stored.Message().LogOffset = 9999
	second.Identity = wire.Identity(second.Stored.Message())
	two.Attempt(second, &sc).End(frame.Verdict{Kind: frame.VerdictAck}, nil)
	a, b := one.spans.GetSpans()[0].SpanContext, two.spans.GetSpans()[0].SpanContext
	if a.TraceID() != b.TraceID() || a.SpanID() == b.SpanID() {
		t.Errorf("attempt 1 in %s/%s, attempt 2 in %s/%s", a.TraceID(), a.SpanID(), b.TraceID(), b.SpanID())
	}
}

func TestAttempt_noParentLinksInstead(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{NoParent: true})
	var sc [frame.TraceSize]byte
	r.Attempt(attempt(1, "traceparent\x01"+traceparent+"\x02"), &sc).End(frame.Verdict{Kind: frame.VerdictAck}, nil)
	s := r.spans.GetSpans()[0]
	if s.Parent.IsValid() || s.SpanContext.TraceID().String() == traceID || len(s.Links) != 1 || s.Links[0].SpanContext.SpanID().String() != producer {
		t.Errorf("parent %v links %v", s.Parent, s.Links)
	}
}

func TestAttempt_unreadableContextIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	var sc [frame.TraceSize]byte
	r.Attempt(attempt(1, "traceparent\x01garbage\x02"), &sc)
	if got := scrape(t, r.Telemetry)["streamd_trace_context_errors_total"]; got != 1 {
		t.Errorf("%v unreadable contexts counted, want 1", got)
	}
}

func TestSpan_settleErrorIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	var sc [frame.TraceSize]byte
	s := r.Attempt(attempt(1, "traceparent\x01"+traceparent+"\x02"), &sc)
	s.Settle("dead_letter", "%DLQ%billing")(errors.New("broker said no"))
	s.End(frame.Verdict{Kind: frame.VerdictReject, Class: "invalid"}, nil)
	if got := r.spans.GetSpans()[0]; got.Status.Description != "broker said no" {
		t.Errorf("status %v", got.Status)
	}
}

// scrape reads /metrics as Prometheus does and sums each family.
func scrape(t *testing.T, tel *Telemetry) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			sums[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sums
}

func TestMetrics_areScraped(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	var sc [frame.TraceSize]byte
	for range 3 { // batches of two
		a := attempt(1, "")
		r.Begun(a, 2)
		r.Attempt(a, &sc)
		r.Acked(a, 2, 12*time.Millisecond)
	}
	got := scrape(t, r.Telemetry)
	if got["messaging_process_duration_seconds"] != 6 || got["messaging_client_consumed_messages_total"] != 6 {
		t.Errorf("scraped %v", got)
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), `le="0.01"} 0`) || !strings.Contains(w.Body.String(), `le="0.025"} 6`) {
		t.Error("12 ms did not land between 10 and 25 ms: the bucket boundaries are not the conventions'")
	}
}

func BenchmarkAttempt_unsampled(b *testing.B) {
	tel, err := New(b.Context(), Config{SampleRatio: 0.01}, slog.New(slog.DiscardHandler), io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	a := attempt(1, "UNIQ_KEY\x017F0000010A3B18B4AAC2000000000001\x02KEYS\x01key-1\x02WAIT\x01true\x02n\x0142\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02")
	var sc [frame.TraceSize]byte
	b.ReportAllocs()
	for b.Loop() {
		tel.Begun(a, 1)
		tel.Attempt(a, &sc)
		tel.Acked(a, 1, time.Millisecond)
	}
}
