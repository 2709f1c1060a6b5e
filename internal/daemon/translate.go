package daemon

import (
	"path/filepath"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/telemetry"
	"github.com/streamd/streamd/runtime"
)

// pluginSpec is an entry under plugins: as the host wants it.
func pluginSpec(p *config.Plugin) pluginhost.PluginSpec {
	return pluginhost.PluginSpec{
		Name: p.Name, Command: p.Command, Checksum: p.Checksum, Instances: p.Instances, Env: p.Env,
		TLSOff: p.TLS == "off", Datapath: datapath(p.Datapath), Memory: int64(p.Limits.Memory), StartTimeout: p.StartTimeout,
	}
}

func datapath(name string) pluginhost.Datapath {
	switch name {
	case "grpc":
		return pluginhost.DatapathGRPC
	case "socketpair":
		return pluginhost.DatapathSocketPair
	default:
		return pluginhost.DatapathAuto
	}
}

// streamConfigs are the entries under streams: as the engine wants them.
func streamConfigs(c *config.Config) []runtime.StreamConfig {
	plugins := map[string]string{} // by handler
	instances := map[string]int{}  // by plugin
	for _, h := range c.Handlers {
		plugins[h.Name] = h.Plugin + "/" + h.Use
	}
	for _, p := range c.Plugins {
		instances[p.Name] = p.Instances
	}
	namespaces := map[string]string{} // by broker
	for i := range c.Brokers {
		namespaces[c.Brokers[i].Name] = c.Brokers[i].Namespace
	}
	out := make([]runtime.StreamConfig, len(c.Streams))
	for i := range c.Streams {
		plugin, _, _ := strings.Cut(plugins[c.Streams[i].Handler], "/")
		out[i] = streamConfig(&c.Streams[i])
		// The host drains lanes by itself when a binary or a config changes; another component is another handler.
		out[i].HandlerVersion = plugins[c.Streams[i].Handler]
		out[i].Shards = max(instances[plugin], 1)
		out[i].Namespace = namespaces[out[i].Broker]
	}
	return out
}

func streamConfig(s *config.Stream) runtime.StreamConfig {
	out := runtime.StreamConfig{
		Name: s.Name, Broker: s.Broker, Group: s.Group, Broadcasting: s.Broadcasts(),
		StartFrom:      runtime.StartFrom{First: s.StartFrom.Position == config.StartFirst, At: s.StartFrom.Timestamp},
		AllowUncovered: s.Allocation.AllowUncovered, Fallback: s.Allocation.Fallback,
		Strategy: runtime.StrategySpec{Stream: s.Name, Name: s.Allocation.Strategy, Plugin: s.Allocation.Plugin, Use: s.Allocation.Use, Config: s.Allocation.Config.JSON()},
		Handler:  s.Handler, Concurrency: s.Concurrency, Deadline: s.Deadline,
		Pull:        runtime.Pull{Messages: s.Pull.Max, Bytes: int(s.Pull.Bytes)},
		Batch:       runtime.Batch{Max: s.Batch.Max, Bytes: int(s.Batch.Bytes), Linger: s.Batch.Linger},
		Window:      runtime.Window{Messages: s.Window.Messages, Bytes: int64(s.Window.Bytes), Span: int64(s.Window.Span), StreamBytes: int64(s.Window.StreamBytes)},
		Retry:       runtime.Retry{MaxRetries: s.Retry.MaxRetries, Levels: s.Retry.Levels, Backoff: runtime.Backoff{First: s.Retry.Backoff.First, Most: s.Retry.Backoff.Max}},
		Order:       runtime.Order(s.Order),
		OnExhausted: runtime.OnExhausted(s.OnExhausted), OutputTopic: s.Outputs.Topic, FailureTopic: s.FailureTopic,
		HandlerDown: runtime.HandlerDown{Hold: s.HandlerDown.Hold, Stay: s.HandlerDown.Then == "hold"},
	}
	if s.Batch.Linger == 0 {
		out.Batch.Linger = -1 // to the engine zero is the default, and here somebody wrote 0s
	}
	for _, sub := range s.Subscribe {
		out.Subscriptions = append(out.Subscriptions, runtime.Subscription{Topic: sub.Topic, Tags: sub.Tags, SQL: sub.SQL})
	}
	return out
}

func telemetryConfig(c *config.Config, version string) telemetry.Config {
	t := telemetry.Config{
		ServiceName: c.Telemetry.ServiceName, ServiceVersion: version, InstanceID: c.Member, Protocol: c.Telemetry.Traces.Protocol,
		Endpoint: c.Telemetry.Traces.Endpoint, SampleRatio: c.Telemetry.Traces.SampleRatio, NoParent: c.Telemetry.Traces.Roots,
		StateDir: filepath.Join(c.StateDir, telemetryDir),
	}
	if e := c.Telemetry.Traces.Exporter; e != "none" {
		t.Exporters = []string{e}
	}
	if t.InstanceID == "" {
		t.InstanceID = telemetry.HostInstance()
	}
	return t
}

// failureFile is where a stream's failure records go when their topic takes none. The stream's name is a file name here.
func failureFile(stateDir string) func(string) string {
	return func(stream string) string {
		safe := strings.Map(func(r rune) rune {
			if r == '/' || r == 0 {
				return '_'
			}
			return r
		}, stream)
		return filepath.Join(stateDir, failuresDir, safe+".jsonl")
	}
}
