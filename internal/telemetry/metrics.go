package telemetry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics holds the instruments of the messaging conventions, under the names a Prometheus exporter of OpenTelemetry
// gives them. They are Prometheus' own instruments: recording through the OpenTelemetry SDK costs half a microsecond a
// record, more than all else the engine does for it (docs/decisions/0004-metrics.md).
type metrics struct {
	process   *prometheus.HistogramVec
	operation *prometheus.HistogramVec
	consumed  *prometheus.CounterVec
	sent      *prometheus.CounterVec
	contexts  prometheus.Counter // traceparents that could not be read
	errors    prometheus.Counter // of OpenTelemetry's export

	handles sync.Map               // attemptKey → *attemptHandles
	last    atomic.Pointer[recent] // the handles used last: a stream's records come in runs
}

// attemptKey is low in number: neither queues nor messages are in it.
type attemptKey struct{ group, topic string }

// attemptHandles are the resolved instruments of one group and topic.
type attemptHandles struct {
	consumed prometheus.Counter
	acked    prometheus.Observer
}

type recent struct {
	key     attemptKey
	handles *attemptHandles
}

func newMetrics(r prometheus.Registerer, config Config) *metrics {
	fixed := prometheus.Labels{"messaging_system": "rocketmq"}
	m := &metrics{
		process: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricProcessDuration, ConstLabels: fixed, Buckets: durationBuckets(),
			Help: "Duration of one attempt, from handing a message to its handler until the verdict.",
		}, []string{"messaging_operation_name", "messaging_consumer_group_name", "messaging_destination_name", "error_type"}),
		operation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricOperation, ConstLabels: fixed, Buckets: durationBuckets(), Help: "Duration of a request to a broker.",
		}, []string{"messaging_operation_name", "messaging_operation_type", "messaging_consumer_group_name", "messaging_destination_name", "error_type"}),
		consumed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricConsumed, ConstLabels: fixed, Help: "Attempts begun.",
		}, []string{"messaging_operation_name", "messaging_consumer_group_name", "messaging_destination_name"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricSent, ConstLabels: fixed, Help: "Messages sent, stored or not.",
		}, []string{"messaging_operation_name", "messaging_destination_name", "error_type"}),
		contexts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "streamd_trace_context_errors_total", Help: "Messages whose traceparent cannot be read.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "streamd_telemetry_errors_total", Help: "Exports of traces that failed.",
		}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "streamd_build_info", Help: "Always 1; the labels tell what runs.",
		ConstLabels: prometheus.Labels{"version": config.ServiceVersion, "instance_id": config.InstanceID},
	})
	info.Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.process, m.operation, m.consumed, m.sent, m.contexts, m.errors, info)
	return m
}

// attempt returns the instruments of a group and topic. It runs twice for every batch.
func (m *metrics) attempt(group, topic string) *attemptHandles {
	k := attemptKey{group, topic}
	if r := m.last.Load(); r != nil && r.key == k {
		return r.handles
	}
	found, ok := m.handles.Load(k)
	if !ok {
		found, _ = m.handles.LoadOrStore(k, &attemptHandles{
			consumed: m.consumed.WithLabelValues(operationProcess, group, topic),
			acked:    m.process.WithLabelValues(operationProcess, group, topic, ""),
		})
	}
	h := found.(*attemptHandles)
	m.last.Store(&recent{k, h})
	return h
}

// request counts one request to a broker.
func (m *metrics) request(operation, kind, group, topic string, err error, took time.Duration) {
	m.operation.WithLabelValues(operation, kind, group, topic, errorType(err)).Observe(took.Seconds())
}
