package interop

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/collector"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
)

// TestTrace follows one message from its producer over two attempts to the dead letters, through a real OTLP receiver.
func TestTrace(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic, group := p.topic(t, "Trace", 1), "trace"
	c, otlp := newClient(t, p.Addr), collector.New(t)
	context1 := map[string]string{"traceparent": "00-" + traceID + "-" + parentID + "-01", "tracestate": "vendor=1"}
	unsampled := map[string]string{"traceparent": "00-" + strings.Repeat("ab", 16) + "-" + parentID + "-00"}
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("fail traced"), Properties: context1})
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("reject unsampled"), Properties: unsampled})
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("reject untraced")})
	m := p.streamd(t, stream{
		group: group, topic: topic, handler: "spans: true", keys: strings.Replace(quickLevels, "max_retries: 2", "max_retries: 1", 1),
		env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + otlp.Endpoint, "OTEL_TRACES_SAMPLER=parentbased_always_on", "OTEL_BSP_SCHEDULE_DELAY=60000"},
	}).ready(t)
	dead := byText(t, readAll(t, c, "trace-dlq", wire.DLQTopic(group), 3))
	for k, v := range context1 {
		if dead["fail traced"].Props[k] != v {
			t.Errorf("the dead letter's %s is %q, the producer sent %q", k, dead["fail traced"].Props[k], v)
		}
	}
	checkMetrics(t, m, group, topic)
	m.stop(t) // what waits for a batch is exported now
	spans := otlp.Spans()
	checkOneTrace(t, spans, topic, group)
	checkUntraced(t, spans, topic)
	checkLogs(t, m)
}

func ofTrace(spans []collector.Span, id string) map[string][]collector.Span {
	byName := map[string][]collector.Span{}
	for _, s := range spans {
		if s.TraceID().String() == id {
			byName[s.Name()] = append(byName[s.Name()], s)
		}
	}
	for _, s := range byName {
		slices.SortFunc(s, func(a, b collector.Span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
	}
	return byName
}

func checkOneTrace(t *testing.T, spans []collector.Span, topic, group string) {
	t.Helper()
	got := ofTrace(spans, traceID)
	want := map[string]int{
		"process " + topic: 2, "ledger.handle": 2, "send_back " + wire.RetryTopic(group): 1, "dead_letter " + wire.DLQTopic(group): 1,
	}
	counts := map[string]int{}
	for name, s := range got {
		counts[name] = len(s)
	}
	if !maps.Equal(counts, want) {
		t.Fatalf("the trace has spans %v, want %v", counts, want)
	}
	attempts, own := got["process "+topic], got["ledger.handle"]
	for i, a := range attempts {
		if a.ParentSpanID().String() != parentID || a.Kind() != ptrace.SpanKindConsumer || a.Status().Code() != ptrace.StatusCodeError {
			t.Errorf("attempt %d: parent %s, kind %s, status %s", i+1, a.ParentSpanID(), a.Kind(), a.Status().Code())
		}
		if n, _ := a.Attributes().Get("streamd.delivery.attempt"); n.Int() != int64(i+1) {
			t.Errorf("attempt %d says that it is %d", i+1, n.Int())
		}
		if own[i].ParentSpanID() != a.SpanID() {
			t.Errorf("the plugin's span of attempt %d is the child of %s, want %s", i+1, own[i].ParentSpanID(), a.SpanID())
		}
	}
	for name, i := range map[string]int{"send_back " + wire.RetryTopic(group): 0, "dead_letter " + wire.DLQTopic(group): 1} {
		if s := got[name][0]; s.ParentSpanID() != attempts[i].SpanID() || s.Kind() != ptrace.SpanKindClient {
			t.Errorf("%s is the child of %s, want attempt %d; kind %s", name, s.ParentSpanID(), i+1, s.Kind())
		}
	}
	host, hasHost := attempts[0].Resource.Attributes().Get("process.pid")
	plugin, hasPlugin := own[0].Resource.Attributes().Get("process.pid")
	if !hasHost || !hasPlugin || host.Int() == plugin.Int() {
		t.Errorf("spans of process %v and plugin %v, want two processes", attempts[0].Resource.Attributes().AsRaw(), own[0].Resource.Attributes().AsRaw())
	}
	if name, _ := own[0].Resource.Attributes().Get("streamd.plugin"); name.Str() != "ledger" {
		t.Errorf("the plugin's spans do not carry its name: %v", own[0].Resource.Attributes().AsRaw())
	}
	checkLinks(t, attempts)
}

func checkLinks(t *testing.T, attempts []collector.Span) {
	t.Helper()
	for i, a := range attempts {
		linked := map[string]string{}
		for _, l := range a.Links().All() {
			kind, _ := l.Attributes().Get("streamd.link.type")
			linked[kind.Str()] = l.SpanID().String()
		}
		want := map[string]string{"creation": parentID}
		if i > 0 {
			want["previous_attempt"] = attempts[i-1].SpanID().String()
		}
		if !maps.Equal(linked, want) {
			t.Errorf("attempt %d is linked to %v, want %v", i+1, linked, want)
		}
	}
	first, _ := attempts[0].Attributes().Get("messaging.message.id")
	second, _ := attempts[1].Attributes().Get("messaging.message.id")
	if first.Str() == "" || first.Str() != second.Str() {
		t.Errorf("message ids %q and %q over the attempts", first.Str(), second.Str())
	}
}

// checkUntraced: an unsampled message has no span anywhere; one without a context has a trace of its own.
func checkUntraced(t *testing.T, spans []collector.Span, topic string) {
	t.Helper()
	if n := len(ofTrace(spans, strings.Repeat("ab", 16))); n != 0 {
		t.Errorf("%d spans of an unsampled message", n)
	}
	roots := 0
	for _, s := range spans {
		if s.Name() == "process "+topic && s.ParentSpanID().IsEmpty() {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d attempts that are the root of a trace, want the one of the message without a context", roots)
	}
}

// checkLogs: failures are logged with their trace id, sampled or not, by the host and by the plugin.
func checkLogs(t *testing.T, m *member) {
	t.Helper()
	count := map[string]int{}
	for _, l := range m.Lines() {
		var r struct {
			Msg, TraceID, SpanID string
			Trace                string `json:"trace_id"`
			Span                 string `json:"span_id"`
		}
		if json.Unmarshal([]byte(l), &r) != nil {
			continue
		}
		for _, id := range []string{traceID, strings.Repeat("ab", 16)} {
			if _, err := hex.DecodeString(r.Span); err == nil && r.Trace == id && len(r.Span) == 16 {
				count[r.Msg+" "+id[:2]]++
			}
		}
	}
	for _, want := range []string{"delivery failed 4b", "delivery failed ab", "ledger: failing 4b", "ledger: failing ab"} {
		if count[want] == 0 {
			t.Errorf("no log line %q with its trace: %v", want, count)
		}
	}
}

// checkMetrics waits until the member counts the attempts.
func checkMetrics(t *testing.T, m *member, group, topic string) {
	t.Helper()
	until(t, time.Minute, "4 attempts in the metrics", func() (bool, string) {
		consumed, families := consumedOf(t, m, group, topic)
		return consumed == 4, fmt.Sprintf("consumed messages %v; families: %s", consumed, families)
	})
}

func consumedOf(t *testing.T, m *member, group, topic string) (consumed float64, names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, err := m.get(ctx, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range families["messaging_client_consumed_messages_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range s.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["messaging_consumer_group_name"] == group && labels["messaging_destination_name"] == topic {
			consumed += s.GetCounter().GetValue()
		}
	}
	return consumed, slices.Sorted(maps.Keys(families))
}
