package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamd/streamd/internal/msgtrace"
)

// WatchMessageTrace adds what became of the records of RocketMQ's own message trace to /metrics, by broker of the config.
// Call it once.
func (t *Telemetry) WatchMessageTrace(counts func() map[string]msgtrace.Counts) error {
	if err := t.registry.Register(traceWatcher(counts)); err != nil {
		return fmt.Errorf("registering the metrics of the message trace: %w", err)
	}
	return nil
}

type traceWatcher func() map[string]msgtrace.Counts

// Describe implements prometheus.Collector. Nothing is described: brokers come and go with reloads.
func (traceWatcher) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w traceWatcher) Collect(out chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("streamd_rocketmq_trace_records_total",
		"Records of RocketMQ's message trace: written, dropped because the queue was full, failed because no broker stored them.", []string{"broker", "outcome"}, nil)
	for broker, c := range w() {
		for outcome, n := range map[string]uint64{"written": c.Written, "dropped": c.Dropped, "failed": c.Failed} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), broker, outcome)
		}
	}
}
