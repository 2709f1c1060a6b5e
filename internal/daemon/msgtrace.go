package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/msgtrace"
	"github.com/streamd/streamd/internal/telemetry"
	"github.com/streamd/streamd/runtime"
)

// msgtraces write RocketMQ's own message trace, one tracer a cluster, when the config wants it. Safe for concurrent use.
type msgtraces struct {
	on    bool
	topic string
	log   *slog.Logger

	mu      sync.RWMutex
	tracers map[string]*msgtrace.Tracer // by broker
}

func newMsgtraces(c *config.Telemetry, log *slog.Logger) *msgtraces {
	return &msgtraces{on: c.RocketMQTrace, topic: c.RocketMQTraceTopic, log: log, tracers: map[string]*msgtrace.Tracer{}}
}

// open makes the tracer of a broker; nil when no trace is wanted.
func (m *msgtraces) open(broker string) *msgtrace.Tracer {
	if !m.on {
		return nil
	}
	t := msgtrace.New(msgtrace.Config{Topic: m.topic, Logger: m.log.With("broker", broker)})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracers[broker] = t
	return t
}

// of is the tracer of a broker, nil when it has none.
func (m *msgtraces) of(broker string) *msgtrace.Tracer {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tracers[broker]
}

// close writes what is queued, before the broker's client ends.
func (m *msgtraces) close(ctx context.Context, broker string) {
	m.mu.Lock()
	t := m.tracers[broker]
	delete(m.tracers, broker)
	m.mu.Unlock()
	if t == nil {
		return
	}
	if err := t.Close(ctx); err != nil {
		m.log.Warn("the end of RocketMQ's message trace is lost", "broker", broker, "error", err) // no message is worse off for it
	}
}

// counts tell what became of the records, by broker.
func (m *msgtraces) counts() map[string]msgtrace.Counts {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[string]msgtrace.Counts, len(m.tracers))
	for broker, t := range m.tracers {
		out[broker] = t.Counts()
	}
	return out
}

// observe lets the tracers see what the engine tells.
func (m *msgtraces) observe(t *telemetry.Telemetry) runtime.Observer {
	if !m.on {
		return t
	}
	return msgtrace.Observe(t, m.of)
}

// watch adds the counts to /metrics.
func (m *msgtraces) watch(t *telemetry.Telemetry) error {
	if !m.on {
		return nil
	}
	if err := t.WatchMessageTrace(m.counts); err != nil {
		return fmt.Errorf("watching RocketMQ's message trace: %w", err)
	}
	return nil
}
