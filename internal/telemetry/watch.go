package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/runtime"
)

// Watch adds what the engine and the plugin host can tell of themselves to /metrics; both are read at each scrape, so
// that nothing is counted twice. Call it once.
func (t *Telemetry) Watch(engine func() runtime.Status, plugins func() []pluginhost.PluginStatus) error {
	w := &watcher{engine: engine, plugins: plugins, streams: append(streamGauges(), streamCounters()...)}
	if err := t.registry.Register(w); err != nil {
		return fmt.Errorf("registering the engine's metrics: %w", err)
	}
	return nil
}

// watcher reads statuses when Prometheus scrapes.
type watcher struct {
	engine  func() runtime.Status
	plugins func() []pluginhost.PluginStatus
	streams []streamMetric
}

// streamMetric is one number of a stream.
type streamMetric struct {
	name, help string
	kind       prometheus.ValueType
	read       func(*runtime.StreamStatus) float64
}

func streamGauges() []streamMetric {
	gauge := func(name, help string, read func(*runtime.StreamStatus) float64) streamMetric {
		return streamMetric{"streamd_" + name, help, prometheus.GaugeValue, read}
	}
	return []streamMetric{
		gauge("consumer_lag", "Messages from the safe offsets to the ends of the queues this member owns.", func(s *runtime.StreamStatus) float64 {
			return sum(s, func(q *runtime.QueueStatus) float64 { return float64(max(0, q.Lag)) })
		}),
		gauge("consumer_lag_time_seconds", "Age of the oldest message that holds an offset.", func(s *runtime.StreamStatus) float64 {
			oldest := 0.0
			for i := range s.Queues {
				oldest = max(oldest, s.Queues[i].Oldest.Seconds())
			}
			return oldest
		}),
		gauge("consumer_assigned_queues", "Queues this member owns.", func(s *runtime.StreamStatus) float64 {
			return sum(s, func(q *runtime.QueueStatus) float64 { return oneIf(q.State == "owned") })
		}),
		gauge("consumer_held_queues", "Queues that something holds; the status tells what.", func(s *runtime.StreamStatus) float64 {
			return sum(s, func(q *runtime.QueueStatus) float64 { return oneIf(q.Hold.Held()) })
		}),
		gauge("inflight_messages", "Messages at handlers or being settled.", func(s *runtime.StreamStatus) float64 {
			return sum(s, func(q *runtime.QueueStatus) float64 { return float64(q.InFlight) })
		}),
		gauge("window_messages", "Messages pulled and not settled.", func(s *runtime.StreamStatus) float64 {
			return sum(s, func(q *runtime.QueueStatus) float64 { return float64(q.Messages) })
		}),
		gauge("window_bytes", "Memory of the windows.", func(s *runtime.StreamStatus) float64 { return float64(s.BytesUsed) }),
		gauge("group_members", "Members of the group as last listed; 0 = not known.", func(s *runtime.StreamStatus) float64 { return float64(len(s.Members)) }),
		gauge("unlike_subscriptions", "Differences between what other members of the group subscribe to and what this one does; the status names them.", func(s *runtime.StreamStatus) float64 { return float64(len(s.Unlike)) }),
		gauge("unread_queues", "Queues that fall to members which do not subscribe to their topic, so that nobody reads them.", func(s *runtime.StreamStatus) float64 {
			n := 0
			for _, a := range s.Assignments {
				n += len(a.Unread)
			}
			return float64(n)
		}),
		gauge("handler_lanes", "Open lanes to the handler.", func(s *runtime.StreamStatus) float64 { return float64(s.Lanes) }),
		gauge("handler_suspects", "Messages that wait to be tried alone after a crash.", func(s *runtime.StreamStatus) float64 { return float64(s.Suspects) }),
		gauge("stream_held", "1 while something holds the stream as a whole.", func(s *runtime.StreamStatus) float64 { return oneIf(len(s.Holds) > 0) }),
	}
}

func streamCounters() []streamMetric {
	counter := func(name, help string, read func(*runtime.Counters) uint64) streamMetric {
		return streamMetric{"streamd_" + name + "_total", help, prometheus.CounterValue, func(s *runtime.StreamStatus) float64 { return float64(read(&s.Counters)) }}
	}
	return []streamMetric{
		counter("pulled_messages", "Messages pulled.", func(c *runtime.Counters) uint64 { return c.Queues.Pulled }),
		counter("filtered_messages", "Messages the broker let through and the subscription does not want.", func(c *runtime.Counters) uint64 { return c.Queues.Filtered }),
		counter("settled_messages", "Messages settled.", func(c *runtime.Counters) uint64 { return c.Queues.Settled }),
		counter("expired_messages", "Messages the broker dropped before they were read.", func(c *runtime.Counters) uint64 { return c.Queues.Expired }),
		counter("garbage_answers", "Answers of brokers that did not decode.", func(c *runtime.Counters) uint64 { return c.Queues.Garbage }),
		counter("pulls", "Pull requests.", func(c *runtime.Counters) uint64 { return c.Queues.Pulls }),
		counter("pull_errors", "Pull requests that failed.", func(c *runtime.Counters) uint64 { return c.Queues.PullErrors }),
		counter("commits", "Offset commits.", func(c *runtime.Counters) uint64 { return c.Queues.Commits }),
		counter("commit_errors", "Offset commits that failed.", func(c *runtime.Counters) uint64 { return c.Queues.CommitErrors }),
		counter("resets", "Offset resets carried out.", func(c *runtime.Counters) uint64 { return c.Queues.Resets }),
		counter("rebalances", "Rebalance rounds.", func(c *runtime.Counters) uint64 { return c.Group.Rounds }),
		counter("ownership_overlaps", "Queues taken though another member still listed them.", func(c *runtime.Counters) uint64 { return c.Group.Overlaps }),
		counter("handler_acks", "Records acknowledged.", func(c *runtime.Counters) uint64 { return c.Dispatch.Acks }),
		counter("handler_retries", "Records to be delivered again.", func(c *runtime.Counters) uint64 { return c.Dispatch.Retries }),
		counter("handler_rejects", "Records rejected.", func(c *runtime.Counters) uint64 { return c.Dispatch.Rejects }),
		counter("handler_deadlines", "Records that were not answered in time.", func(c *runtime.Counters) uint64 { return c.Dispatch.Deadlines }),
		counter("late_answers", "Answers that came too late or twice, and changed nothing.", func(c *runtime.Counters) uint64 { return c.Dispatch.Late + c.Queues.Late + c.Settle.Late }),
		counter("lanes_lost", "Lanes that ended with records unanswered.", func(c *runtime.Counters) uint64 { return c.Dispatch.LanesLost }),
		counter("poisoned_messages", "Messages rejected because they crashed the handler twice, alone.", func(c *runtime.Counters) uint64 { return c.Dispatch.Poisoned }),
		counter("redelivered_messages", "Records sent again after a lost lane, without an attempt.", func(c *runtime.Counters) uint64 { return c.Dispatch.Redelivered }),
		counter("sent_back_messages", "Messages the broker stored again for a retry.", func(c *runtime.Counters) uint64 { return c.Settle.SentBack }),
		counter("dead_letters", "Messages the broker stored as dead letters.", func(c *runtime.Counters) uint64 { return c.Settle.DeadLettered }),
		counter("skipped_messages", "Messages given up because the config accepts loss.", func(c *runtime.Counters) uint64 { return c.Settle.Skipped }),
		counter("outputs_stored", "Outputs of handlers that were stored.", func(c *runtime.Counters) uint64 { return c.Settle.OutputsStored }),
		counter("settle_refusals", "Send-backs, dead letters and outputs that failed and are tried again.", func(c *runtime.Counters) uint64 { return c.Settle.Refusals }),
		counter("failure_records_lost", "Failure records that could be written nowhere.", func(c *runtime.Counters) uint64 { return c.FailuresNotRecorded }),
	}
}

func sum(s *runtime.StreamStatus, f func(*runtime.QueueStatus) float64) float64 {
	total := 0.0
	for i := range s.Queues {
		total += f(&s.Queues[i])
	}
	return total
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector. Nothing is described: which streams and plugins there are changes with a
// reload.
func (w *watcher) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(out chan<- prometheus.Metric) {
	st := w.engine()
	emit := func(name, help string, kind prometheus.ValueType, v float64, labels []string, values ...string) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, labels, nil), kind, v, values...)
	}
	emit("streamd_memory_bytes", "Memory of all windows.", prometheus.GaugeValue, float64(st.MemoryUsed), nil)
	emit("streamd_memory_limit_bytes", "What all windows together may take.", prometheus.GaugeValue, float64(st.MemoryLimit), nil)
	labels := []string{"stream", "messaging_consumer_group_name"}
	for i := range st.Streams {
		s := &st.Streams[i]
		for _, m := range w.streams {
			emit(m.name, m.help, m.kind, m.read(s), labels, s.Name, s.Group)
		}
	}
	for _, p := range w.plugins() {
		up, restarts, memory, lines, dropped := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, process := range p.Processes {
			up += oneIf(process.State == "ready")
			restarts += float64(process.Restarts)
			memory += float64(process.Memory)
			lines += float64(process.LogLines)
			dropped += float64(process.LogDropped)
		}
		emit("streamd_plugin_up", "Processes of the plugin that are ready.", prometheus.GaugeValue, up, []string{"plugin"}, p.Name)
		emit("streamd_plugin_restarts_total", "Starts after the first.", prometheus.CounterValue, restarts, []string{"plugin"}, p.Name)
		emit("streamd_plugin_memory_bytes", "Resident memory of the plugin's processes.", prometheus.GaugeValue, memory, []string{"plugin"}, p.Name)
		emit("streamd_plugin_log_lines_total", "Lines the plugin logged.", prometheus.CounterValue, lines, []string{"plugin"}, p.Name)
		emit("streamd_plugin_log_dropped_total", "Lines the rate limit left out.", prometheus.CounterValue, dropped, []string{"plugin"}, p.Name)
	}
}
