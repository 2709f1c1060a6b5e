package daemon

import (
	"os"
	"time"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/msgtrace"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/runtime"
)

// Status is /api/v1/status.
type Status struct {
	Version    buildinfo.Info `json:"version"`
	PID        int            `json:"pid"`
	Started    time.Time      `json:"started"`
	State      string         `json:"state"` // starting, running, stopping
	Ready      bool           `json:"ready"`
	NotReady   string         `json:"not_ready,omitempty"` // why
	Admin      string         `json:"admin,omitempty"`
	Files      []string       `json:"config_files"`
	LastReload *reloadResult  `json:"last_reload,omitempty"`
	Memory     Memory         `json:"memory"`
	Brokers    []BrokerStatus `json:"brokers"`
	Streams    []StreamStatus `json:"streams"`
	Plugins    []PluginStatus `json:"plugins"`
}

// Memory is what the windows of all streams hold, in bytes.
type Memory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// BrokerStatus is one cluster, as it is used.
type BrokerStatus struct {
	Name        string          `json:"name"`
	NameServers []string        `json:"name_servers"`
	Embedded    *EmbeddedStatus `json:"embedded,omitempty"` // of one in this process

	MessageTrace *msgtrace.Counts `json:"rocketmq_trace,omitempty"` // records of RocketMQ's own trace, when it is written
}

// EmbeddedStatus is a broker in this process.
type EmbeddedStatus struct {
	Address     string   `json:"address"` // what clients are told
	Listen      string   `json:"listen"`
	Data        string   `json:"data"`
	Access      string   `json:"access"`                 // who is let in
	Dev         bool     `json:"dev,omitempty"`          // made by run --dev
	DelayLevels []string `json:"delay_levels,omitempty"` // when they are not RocketMQ's
	Topics      int      `json:"topics"`                 // RocketMQ's own included
	Connections int      `json:"connections"`
	HeldPulls   int      `json:"held_pulls"`
	Delayed     int      `json:"delayed"` // messages whose time has not come
}

// StreamStatus is one stream.
type StreamStatus struct {
	Name       string                        `json:"name"`
	Group      string                        `json:"group"`
	Broker     string                        `json:"broker"`
	Handler    string                        `json:"handler"`
	ClientID   string                        `json:"client_id"`
	Joined     bool                          `json:"joined"`
	Members    []string                      `json:"members"` // null = not known
	Assigned   map[string]runtime.Assignment `json:"assigned"`
	Lanes      int                           `json:"lanes"`
	PluginPID  int                           `json:"plugin_pid,omitempty"`
	Waiting    int                           `json:"waiting"`  // messages without a lane
	Suspects   int                           `json:"suspects"` // messages that are tried alone
	Settling   int                           `json:"settling"`
	BytesUsed  int64                         `json:"bytes_used"`
	BytesLimit int64                         `json:"bytes_limit"`
	Holds      []runtime.Hold                `json:"holds"`
	Unlike     []runtime.Unlike              `json:"unlike,omitempty"` // members that subscribe to something else
	Order      runtime.Order                 `json:"order"`
	LocksHeld  int                           `json:"locks_held"`
	Heads      []runtime.Head                `json:"heads,omitempty"` // failed messages that are tried in place
	Queues     []QueueStatus                 `json:"queues"`
	Counters   map[string]uint64             `json:"counters"`
}

// QueueStatus is one queue of a stream.
type QueueStatus struct {
	Topic     string        `json:"topic"`
	Broker    string        `json:"broker"`
	ID        int32         `json:"id"`
	State     string        `json:"state"`
	Phase     string        `json:"phase"`
	Epoch     uint64        `json:"epoch"`
	Committed int64         `json:"committed"` // -1 = not known, as all offsets here
	Safe      int64         `json:"safe"`
	Next      int64         `json:"next"`
	Max       int64         `json:"max"`
	Lag       int64         `json:"lag"`
	InFlight  int           `json:"in_flight"`
	Messages  int           `json:"messages"`
	Bytes     int64         `json:"bytes"`
	Span      int64         `json:"span"`
	OldestMS  int64         `json:"oldest_ms"`
	Holder    string        `json:"holder,omitempty"` // the message that holds the offset
	Hold      *runtime.Hold `json:"hold,omitempty"`
}

// PluginStatus is one plugin.
type PluginStatus struct {
	Name      string          `json:"name"`
	Version   string          `json:"version,omitempty"`
	Checksum  string          `json:"checksum,omitempty"`
	SwapError string          `json:"swap_error,omitempty"`
	Processes []ProcessStatus `json:"processes"`
	Handlers  []HandlerStatus `json:"handlers"`
}

// ProcessStatus is one process of a plugin.
type ProcessStatus struct {
	State       string    `json:"state"`
	Since       time.Time `json:"since"`
	PID         int       `json:"pid,omitempty"`
	Generation  uint64    `json:"generation"`
	Solo        bool      `json:"solo,omitempty"`
	Restarts    int       `json:"restarts"`
	BreakerOpen bool      `json:"breaker_open"`
	NextTry     time.Time `json:"next_try,omitzero"`
	LastError   string    `json:"last_error,omitempty"`
	Memory      int64     `json:"memory"`
	MemoryLimit int64     `json:"memory_limit,omitempty"`
	MemoryBy    string    `json:"memory_by,omitempty"` // the mechanism that holds it
	Lanes       int       `json:"lanes"`
	InFlight    int       `json:"in_flight"`
}

// HandlerStatus is one handler's config in a plugin.
type HandlerStatus struct {
	Name       string `json:"name"`
	Use        string `json:"use,omitempty"`
	ConfigHash string `json:"config_hash"`
	Error      string `json:"error,omitempty"` // why it is not in force
}

func (d *daemon) status() Status {
	s := Status{
		Version: buildinfo.Read(), PID: os.Getpid(), Started: d.started, State: "running", Admin: d.adminAddress(),
		Files: d.loaded.Load().Files, LastReload: d.lastReload.Load(), Brokers: []BrokerStatus{}, Streams: []StreamStatus{}, Plugins: []PluginStatus{},
	}
	s.NotReady = d.unready()
	s.Ready = s.NotReady == ""
	switch {
	case d.stopping.Load():
		s.State = "stopping"
	case !d.up.Load():
		s.State = "starting"
		return s
	}
	if !d.up.Load() {
		return s
	}
	s.Brokers = d.brokers.status(d.loaded.Load().Config)
	for _, p := range d.host.Status() {
		s.Plugins = append(s.Plugins, pluginStatus(&p))
	}
	st := d.engine.Status()
	s.Memory = Memory{st.MemoryUsed, st.MemoryLimit}
	for i := range st.Streams {
		s.Streams = append(s.Streams, streamStatus(&st.Streams[i]))
	}
	return s
}

func streamStatus(s *runtime.StreamStatus) StreamStatus {
	out := StreamStatus{
		Name: s.Name, Group: s.Group, Broker: s.Broker, Handler: s.Handler, ClientID: s.ClientID, Joined: s.Joined,
		Members: s.Members, Assigned: s.Assignments, Lanes: s.Lanes, PluginPID: s.Plugin.PID, Waiting: s.Ready, Suspects: s.Suspects,
		Settling: s.Settling, BytesUsed: s.BytesUsed, BytesLimit: s.BytesLimit, Holds: s.Holds, Unlike: s.Unlike, Queues: []QueueStatus{},
		Order: s.Order, LocksHeld: s.LocksHeld, Heads: s.Heads,
		Counters: map[string]uint64{
			"pulled": s.Counters.Queues.Pulled, "settled": s.Counters.Queues.Settled, "acks": s.Counters.Dispatch.Acks,
			"retries": s.Counters.Dispatch.Retries, "rejects": s.Counters.Dispatch.Rejects,
			"late":    s.Counters.Dispatch.Late + s.Counters.Queues.Late + s.Counters.Settle.Late,
			"expired": s.Counters.Queues.Expired, "filtered": s.Counters.Queues.Filtered, "overlaps": s.Counters.Group.Overlaps,
			"pull_errors": s.Counters.Queues.PullErrors, "commit_errors": s.Counters.Queues.CommitErrors, "commits": s.Counters.Queues.Commits,
			"failures_stored": s.Counters.FailuresStored, "failures_in_file": s.Counters.FailuresInFile, "failures_not_recorded": s.Counters.FailuresNotRecorded,
		},
	}
	if out.Holds == nil {
		out.Holds = []runtime.Hold{}
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		v := QueueStatus{
			Topic: q.Queue.Topic, Broker: q.Queue.Broker, ID: q.Queue.ID, State: q.State, Phase: string(q.Phase), Epoch: q.Epoch,
			Committed: q.Committed, Safe: q.Safe, Next: q.Next, Max: q.Max, Lag: q.Lag, InFlight: q.InFlight, Messages: q.Messages,
			Bytes: q.Bytes, Span: q.Span, OldestMS: q.Oldest.Milliseconds(), Holder: q.Holder,
		}
		if q.Hold.Held() {
			v.Hold = &q.Hold
		}
		out.Queues = append(out.Queues, v)
	}
	return out
}

func pluginStatus(p *pluginhost.PluginStatus) PluginStatus {
	out := PluginStatus{Name: p.Name, Version: p.Version, Checksum: p.Checksum, SwapError: p.SwapError, Processes: []ProcessStatus{}, Handlers: []HandlerStatus{}}
	for i := range p.Processes {
		r := &p.Processes[i]
		v := ProcessStatus{
			State: r.State, Since: r.Since, PID: r.PID, Generation: r.Generation, Solo: r.Solo, Restarts: r.Restarts, BreakerOpen: r.BreakerOpen,
			NextTry: r.NextTry, LastError: r.LastError, Memory: r.Memory, MemoryLimit: r.MemoryLimit, MemoryBy: r.MemoryMechanism, Lanes: len(r.Lanes),
		}
		for _, l := range r.Lanes {
			v.InFlight += l.InFlight
		}
		out.Processes = append(out.Processes, v)
	}
	for _, h := range p.Handlers {
		out.Handlers = append(out.Handlers, HandlerStatus{h.Name, h.Use, h.ConfigHash, h.Error})
	}
	return out
}

// firstHold is the first reason that holds something, as the end of a sentence.
func firstHold(holds []runtime.Hold) string {
	if len(holds) == 0 {
		return ""
	}
	return ": " + holds[0].Text
}
