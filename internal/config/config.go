package config

import "time"

// Config lists every key. Load fills it whole: what nobody wrote holds its default. It is immutable after Load.
//
// Tags: yaml is the key; doc explains it (schema, reference page); default is written as in a file; enum lists the words
// allowed and later those of a later version; min and max bound numbers, durations and sizes; required and secret speak
// for themselves.
type Config struct {
	Brokers         []Broker          `yaml:"brokers" doc:"RocketMQ clusters. Without any, the environment variable NAMESRV_ADDR names the one."`
	Plugins         []Plugin          `yaml:"plugins" doc:"Binaries that offer handlers and strategies."`
	Handlers        []Handler         `yaml:"handlers" doc:"Configured uses of what plugins offer. Several handlers may share one plugin and so one process."`
	Streams         []Stream          `yaml:"streams" required:"true" doc:"What is consumed: group, subscriptions, strategy, handler and policies."`
	Defaults        Policies          `yaml:"defaults" doc:"What a stream leaves out is taken from here, then from the built-in default."`
	StateDir        string            `yaml:"state_dir" default:"./state" doc:"Folder for what must outlive a restart. One streamd at a time uses it."`
	StateEphemeral  bool              `yaml:"state_ephemeral" default:"false" doc:"Says that state_dir may be lost with the container or at a reboot. Streams with model: broadcasting keep their offsets there and refuse such a folder without it."`
	Member          string            `yaml:"member" doc:"Name of this member in client ids; a random part is added. Empty: ip@pid#random. Streams with model: broadcasting need one that stays the same over restarts."`
	Attributes      map[string]string `yaml:"attributes" doc:"What strategies may read of this member, for instance {zone: a, weight: '2'}: appended to its client ids, which is how it travels to other members."`
	ShutdownTimeout time.Duration     `yaml:"shutdown_timeout" default:"25s" min:"0s" doc:"How long work in flight may take to finish after the first SIGTERM."`
	Admin           Admin             `yaml:"admin" doc:"The admin listener: /metrics and /api/v1."`
	Health          Health            `yaml:"health" doc:"The listener for probes: /livez and /readyz."`
	Log             Log               `yaml:"log" doc:"Logs on standard error."`
	Telemetry       Telemetry         `yaml:"telemetry" doc:"Traces, and the name that streamd gives itself in them. The OTEL_ environment variables win over these keys."`

	Written Entry `yaml:"-"`
}

// Admin is the listener for people and scrapers on this machine.
type Admin struct {
	Listen string `yaml:"listen" default:"127.0.0.1:8420" doc:"Address of the listener; when it is taken, the next free port, recorded in state_dir/admin.addr. Empty: no listener."`
	Token  string `yaml:"token" secret:"true" doc:"What requests must show that change something (POST /api/v1/reload), as 'Authorization: Bearer TOKEN'; for instance ${file:/run/secrets/admin}. Left out: there are no such requests."`
}

// Health is the listener for probes.
type Health struct {
	Listen string `yaml:"listen" doc:"Address of the listener, for instance :8421. Empty: no listener."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" default:"info" enum:"debug,info,warn,error" doc:"Least level that is logged."`
	Format string `yaml:"format" default:"auto" enum:"auto,text,json" doc:"auto is text on a terminal and JSON when piped."`
}

// Telemetry is traces and metrics. The OTEL_ environment variables win over it, as for every OpenTelemetry program.
type Telemetry struct {
	ServiceName string `yaml:"service_name" default:"streamd" doc:"service.name of spans and metrics; OTEL_SERVICE_NAME wins."`
	Traces      Traces `yaml:"traces" doc:"Where spans go and how many."`

	RocketMQTrace      bool   `yaml:"rocketmq_trace" default:"false" doc:"Writes each attempt, and each output that is stored, to RocketMQ's own message trace, for mqadmin queryMsgTraceById and the dashboard. The brokers need traceTopicEnable=true, or the topic made by hand. It never holds up a message: records that cannot be written are counted."`
	RocketMQTraceTopic string `yaml:"rocketmq_trace_topic" default:"RMQ_SYS_TRACE_TOPIC" doc:"Topic of RocketMQ's message trace: the brokers' msgTraceTopicName."`
}

// Traces says where spans go and how many.
type Traces struct {
	Exporter    string  `yaml:"exporter" default:"none" enum:"none,otlp,console" doc:"otlp sends to a collector, console writes to standard error. OTEL_TRACES_EXPORTER wins; OTEL_EXPORTER_OTLP_ENDPOINT alone switches otlp on."`
	Endpoint    string  `yaml:"endpoint" doc:"URL of the collector, for instance http://127.0.0.1:4317. Left out: the exporter's default. OTEL_EXPORTER_OTLP_ENDPOINT wins."`
	Protocol    string  `yaml:"protocol" default:"grpc" enum:"grpc,http/protobuf" doc:"How spans travel. OTEL_EXPORTER_OTLP_PROTOCOL wins."`
	SampleRatio float64 `yaml:"sample_ratio" default:"0.01" min:"0" max:"1" doc:"Share of messages without a trace of their own that start one. A message's own trace context decides for itself."`
	Roots       bool    `yaml:"roots" default:"false" doc:"Makes each attempt a trace of its own that links to the producer's, for backends that cannot show traces of days."`
}

// Broker is one RocketMQ cluster.
type Broker struct {
	Name        string      `yaml:"name" required:"true" doc:"How streams call it."`
	NameServers NameServers `yaml:"name_servers" doc:"host:port of each name server, as a list or separated by ';' or ','; or one http:// address that lists them. Left out: NAMESRV_ADDR."`
	AccessKey   string      `yaml:"access_key" doc:"Signs each request for RocketMQ's access control. Needs secret_key. See docs/security.md for the rights that it needs."`
	SecretKey   string      `yaml:"secret_key" secret:"true" doc:"The access key's secret, for instance ${file:/run/secrets/mq}. A reload takes another one."`
	Namespace   string      `yaml:"namespace" pattern:"[a-zA-Z0-9_-]{1,64}" doc:"Namespace (letters, digits, - and _) of all topics and groups of this cluster, which on the wire become NAMESPACE%NAME, as with the namespace of Java's clients. Names here, in logs and in status are without it."`
	NamespaceV2 string      `yaml:"namespace_v2" pattern:"[a-zA-Z0-9_-]{1,64}" doc:"Namespace that travels in header fields of its own and leaves names as they are, as namespaceV2 of Java's clients (5.2). Excludes namespace."`
	HeartbeatV2 bool        `yaml:"heartbeat_v2" default:"false" doc:"Leaves the subscriptions out of heartbeats that only repeat them, where a broker says that it knows how (5.1.3), as useHeartbeatV2 of Java's clients. For groups of many topics."`
	TLS         *ClientTLS  `yaml:"tls" doc:"Speaks TLS to name servers and brokers. {} trusts the authorities of the system. The files are read at each connection, so renewed ones need no restart."`
	Embedded    *Embedded   `yaml:"embedded" doc:"Starts a broker with its name server in this process, in the place of name_servers. See docs/embedded-broker.md."`

	Written Entry `yaml:"-"`
}

// Plugin is a binary.
type Plugin struct {
	Name      string            `yaml:"name" required:"true" doc:"How handlers and strategies call it."`
	Command   []string          `yaml:"command" required:"true" doc:"Path of the binary and its arguments. No shell is involved."`
	Checksum  string            `yaml:"checksum" pattern:"sha256:[0-9a-f]{64}" doc:"sha256: and 64 hex digits of the file that is executed. Another file is refused."`
	Instances int               `yaml:"instances" default:"1" min:"1" max:"64" doc:"How many processes share the work."`
	TLS       string            `yaml:"tls" default:"auto" enum:"auto,off" doc:"auto is mutual TLS between streamd and the plugin; off relies on the private socket folder alone and is cheaper."`
	Datapath  string            `yaml:"datapath" default:"auto" enum:"auto,grpc,socketpair" doc:"What messages take between streamd and the plugin. auto gives each lane a socket that only these two processes have, which costs less CPU than gRPC and needs no encryption, where the plugin can take it (those of the Go SDK can), else gRPC. socketpair is auto with a warning where it cannot. grpc carries them in the gRPC connection, encrypted as tls says."`
	Env       map[string]string `yaml:"env" secret:"true" doc:"Environment of the process, besides PATH, HOME, TMPDIR, TZ, LANG and LC_*."`
	Limits    Limits            `yaml:"limits" doc:"What the process may use."`

	StartTimeout time.Duration `yaml:"start_timeout" default:"10s" min:"100ms" max:"10m" doc:"How long a process may take from its start to its handshake. A JVM may need a minute."`

	Written Entry `yaml:"-"`
}

// Limits bounds one plugin process.
type Limits struct {
	Memory Size `yaml:"memory" min:"16MiB" doc:"Memory of one process; above it the process is replaced. Left out: no limit."`
}

// Handler is one configured use of a plugin's component.
type Handler struct {
	Name   string `yaml:"name" required:"true" doc:"How streams call it."`
	Plugin string `yaml:"plugin" doc:"The plugin. May be left out when there is one, those that only divide queues (allocation.plugin) aside."`
	Use    string `yaml:"use" doc:"The component. May be left out when the plugin offers one handler."`
	Config Raw    `yaml:"config" doc:"Goes to the component as JSON, as written here. Checked by the component's own schema."`
}

// Stream is one consumer: a group's membership and what happens to its messages.
type Stream struct {
	Name         string         `yaml:"name" required:"true" doc:"Name in logs and metrics."`
	Broker       string         `yaml:"broker" doc:"The cluster. May be left out when there is one."`
	Group        string         `yaml:"group" required:"true" doc:"Consumer group."`
	Subscribe    []Subscription `yaml:"subscribe" required:"true" doc:"Topics and filters. Every member of the group must have the same."`
	Model        string         `yaml:"model" default:"clustering" enum:"clustering,broadcasting" doc:"clustering divides the queues among the members of the group. broadcasting gives every member all of them: each handles every message, and keeps its offsets in state_dir under its member's name."`
	StartFrom    StartFrom      `yaml:"start_from" default:"last" doc:"Where a new group starts: first, last, or {timestamp: 2026-11-01T00:00:00Z}. A group with stored offsets goes on from them."`
	Allocation   Allocation     `yaml:"allocation" doc:"How queues are divided."`
	Handler      string         `yaml:"handler" doc:"The handler. May be left out when there is one."`
	Order        string         `yaml:"order" default:"none" enum:"none,queue,key" doc:"none lets messages run in parallel and settle in any order. queue keeps the order of each queue, key that of each key: a message's sharding key, else the first of its keys, else all of the queue that have none. Ordered streams hold the brokers' queue locks and try failed messages again in place; see docs/order.md."`
	Outputs      Outputs        `yaml:"outputs" doc:"Where messages go that the handler emits."`
	OnExhausted  string         `yaml:"on_exhausted" default:"dead_letter" enum:"dead_letter,block,skip" doc:"What becomes of a message whose retries are used up. block holds the queue; skip drops the message and needs accept_loss."`
	AcceptLoss   bool           `yaml:"accept_loss" default:"false" doc:"Says that losing messages is meant; only with on_exhausted: skip."`
	FailureTopic string         `yaml:"failure_topic" default:"STREAMD_FAILURES" doc:"Topic of the failure records; where it takes none they go to state_dir/failures. '-' writes none."`
	Policies     `yaml:",inline"`

	Written Entry `yaml:"-"`
}

// Ordered tells whether the stream keeps an order.
func (s *Stream) Ordered() bool { return s.Order == "queue" || s.Order == "key" }

// Policies is what a stream may take from defaults.
type Policies struct {
	Concurrency int           `yaml:"concurrency" default:"20" min:"1" max:"4096" doc:"Messages that may run at once."`
	Deadline    time.Duration `yaml:"deadline" default:"60s" min:"1ms" doc:"Time one message may take, from its start. Later counts as a failed attempt."`
	Batch       Batch         `yaml:"batch" doc:"What crosses to the plugin at once."`
	Pull        Pull          `yaml:"pull" doc:"What one request to a broker asks for."`
	Window      Window        `yaml:"window" doc:"Messages of one queue that are pulled and not yet settled."`
	Retry       Retry         `yaml:"retry" doc:"What happens to a failed message."`
	HandlerDown HandlerDown   `yaml:"handler_down" doc:"What happens to the queues of this member while no process answers for its handler."`
}

// Batch bounds what crosses to the plugin at once.
type Batch struct {
	Max    int           `yaml:"max" default:"32" min:"1" max:"4096" doc:"Messages."`
	Bytes  Size          `yaml:"bytes" default:"256KiB" min:"1KiB" max:"64MiB" doc:"Size; one larger message still passes alone."`
	Linger time.Duration `yaml:"linger" default:"1ms" min:"0s" max:"10s" doc:"Longest wait for a fuller batch while others are running. An idle handler never waits."`
}

// Pull bounds one request to a broker.
type Pull struct {
	Max   int  `yaml:"max" default:"32" min:"1" max:"4096" doc:"Messages. A broker gives 32 from memory and 8 from disk, whatever is asked for, unless its maxTransfer… settings allow more."`
	Bytes Size `yaml:"bytes" default:"256KiB" min:"1KiB" max:"16MiB" doc:"Size; one larger message still passes alone. Frames of the protocol end at 16 MiB."`
}

// Window bounds what is pulled and not yet settled, per queue.
type Window struct {
	Messages    int  `yaml:"messages" default:"1000" min:"1" max:"1048576" doc:"Messages."`
	Bytes       Size `yaml:"bytes" default:"16MiB" min:"64KiB" doc:"Size; one larger message still passes alone."`
	Span        int  `yaml:"span" default:"2000" min:"1" max:"1048576" doc:"Distance of the newest from the oldest unsettled offset, at most: what a crash repeats when one message holds the commit back."`
	StreamBytes Size `yaml:"stream_bytes" default:"64MiB" min:"64KiB" doc:"Size over all queues of the stream on this member; those of one broker take three quarters of it at most when there are several. When more outputs than that wait to be stored, the handler gets no more messages."`
}

// Retry says how often and when a failed message comes again.
type Retry struct {
	MaxRetries int             `yaml:"max_retries" default:"16" min:"0" max:"1000" doc:"Retries after the first delivery; then the dead-letter topic."`
	Delays     string          `yaml:"delays" default:"broker" enum:"broker" doc:"broker: RocketMQ's own delay levels, longer with each attempt."`
	Backoff    Backoff         `yaml:"backoff" doc:"Pauses between the tries of a message in place: with order: queue or key, and with model: broadcasting, where nothing is sent back to the broker."`
	Levels     []time.Duration `yaml:"levels" doc:"The broker's messageDelayLevel, when it is not RocketMQ's default: what a handler's wish for a delay is matched against."`
}

// Backoff paces the tries of a message in place.
type Backoff struct {
	First time.Duration `yaml:"first" default:"1s" min:"10ms" max:"1h" doc:"Pause after the first failure; twice as long after each further one. A handler's own wish for a delay is kept to exactly."`
	Max   time.Duration `yaml:"max" default:"30s" min:"10ms" max:"24h" doc:"Longest pause."`
}

// HandlerDown says how long queues wait for a handler that is down.
type HandlerDown struct {
	Hold time.Duration `yaml:"hold" default:"60s" min:"1ms" max:"24h" doc:"How long the queues wait for the handler before this member does what then says."`
	Then string        `yaml:"then" default:"leave" enum:"leave,hold" doc:"leave gives the queues to the other members of the group, if there are any, until the handler has answered for a while; hold keeps them."`
}

// Subscription is one topic with its filter.
type Subscription struct {
	Topic string `yaml:"topic" required:"true" doc:"Topic, written as in RocketMQ."`
	Tags  string `yaml:"tags" doc:"Tags separated by ||. Left out, with no sql: every message. Excludes sql."`
	SQL   string `yaml:"sql" doc:"SQL92 expression over the properties of messages, such as amount > 100, which brokers evaluate; they need enablePropertyFilter=true. Excludes tags."`
}

// Allocation names a strategy: one of streamd's own, or a plugin's component.
type Allocation struct {
	Strategy       string `yaml:"strategy" doc:"One of streamd's own strategies. Left out with no plugin: averagely. Excludes plugin."`
	Plugin         string `yaml:"plugin" doc:"The plugin that offers the strategy."`
	Use            string `yaml:"use" doc:"The component. May be left out when the plugin offers one strategy."`
	Config         Raw    `yaml:"config" doc:"Goes to the strategy as JSON."`
	Fallback       string `yaml:"fallback" default:"averagely" doc:"The strategy of streamd's own that all members go over to when the one named is proved broken."`
	AllowUncovered bool   `yaml:"allow_uncovered" default:"false" doc:"Allows a strategy that leaves queues without an owner by design."`
}

// Outputs is where emitted messages go.
type Outputs struct {
	Topic string `yaml:"topic" doc:"Topic of an output that names none. Left out: such an output is an error of the handler."`
}
