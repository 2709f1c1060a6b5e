package telemetry

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/msgtrace"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
)

// TestDocs_nameEveryMetric holds docs/reference/metrics.md against a scrape, in both directions.
func TestDocs_nameEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	r := newRig(t, Config{})
	if err := r.Watch(
		func() runtime.Status { return runtime.Status{Streams: []runtime.StreamStatus{{Name: "orders"}}} },
		func() []pluginhost.PluginStatus { return []pluginhost.PluginStatus{{Name: "acme"}} },
	); err != nil {
		t.Fatal(err)
	}
	if err := r.WatchMessageTrace(func() map[string]msgtrace.Counts { return map[string]msgtrace.Counts{"main": {}} }); err != nil {
		t.Fatal(err)
	}
	var sc [frame.TraceSize]byte
	a := attempt(1, "")
	r.Begun(a, 1)
	r.Attempt(a, &sc)
	r.Acked(a, 1, 0)
	if _, err := r.Broker(storing{}).Send(t.Context(), &rocketmq.OutgoingMessage{Topic: "T"}); err != nil {
		t.Fatal(err)
	}
	exported := scrape(t, r.Telemetry)
	exported["streamd_telemetry_dropped_total"] = 0 // only with an OTLP exporter
	for name := range exported {
		if !documented[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("docs/reference/metrics.md does not name %s", name)
		}
	}
	for name := range documented {
		if _, ok := exported[name]; !ok {
			t.Errorf("docs/reference/metrics.md names %s, which nothing exports", name)
		}
	}
}

// storing is a broker that stores what it is sent.
type storing struct{ runtime.Broker }

func (storing) Send(context.Context, *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	return rocketmq.SendResult{}, nil
}
