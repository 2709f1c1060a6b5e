package telemetry

import (
	"testing"
	"time"

	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/runtime"
)

func TestWatch_readsStatusesAtEachScrape(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	engine := runtime.Status{MemoryUsed: 10, Streams: []runtime.StreamStatus{
		{Name: "orders", Group: "billing", Queues: []runtime.QueueStatus{{State: "owned", Lag: 7, Oldest: 3 * time.Second}, {State: "waiting", Lag: -1}}},
		{Name: "invoices", Group: "billing2"},
	}}
	engine.Streams[0].Counters.Settle.DeadLettered = 2
	plugins := []pluginhost.PluginStatus{{Name: "acme", Processes: []pluginhost.ProcessStatus{{State: "ready", Restarts: 4, Memory: 100}, {State: "backoff"}}}}
	if err := r.Watch(func() runtime.Status { return engine }, func() []pluginhost.PluginStatus { return plugins }); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, r.Telemetry)
	for name, want := range map[string]float64{
		"streamd_consumer_lag": 7, "streamd_consumer_lag_time_seconds": 3, "streamd_consumer_assigned_queues": 1,
		"streamd_dead_letters_total": 2, "streamd_plugin_up": 1, "streamd_plugin_restarts_total": 4, "streamd_memory_bytes": 10,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	engine.Streams = engine.Streams[:1] // a reload took a stream away
	engine.Streams[0].Counters.Settle.DeadLettered = 3
	if got := scrape(t, r.Telemetry); got["streamd_dead_letters_total"] != 3 {
		t.Errorf("after a change: %v", got["streamd_dead_letters_total"])
	}
}
