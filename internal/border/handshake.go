package border

// The handshake of go-plugin, and the one plugin in its set.
const (
	ProtocolVersion = 1 // major version of the contract: the proto package and go-plugin's protocol version
	CookieKey       = "STREAMD_PLUGIN"
	CookieValue     = "b7f3c1d0-streamd-plugin-v1"
	PluginName      = "plugin"
)

// The environment that the host gives a plugin process beside go-plugin's own.
const (
	// EnvPageFD is the number of the inherited file descriptor of the shared page (internal/frame.Page). Absent = none.
	EnvPageFD = "STREAMD_PAGE_FD"
	// EnvLanesFD is the number of the inherited socket over which the host passes a socket for each lane. Absent = lanes go over
	// gRPC.
	EnvLanesFD = "STREAMD_LANES_FD"
	// EnvOTLPSocket is the path of a unix socket that takes OTLP over gRPC. Absent = the plugin exports no spans.
	EnvOTLPSocket = "STREAMD_OTLP_SOCKET"
	// EnvLogLevel is the least level of log lines that the host wants: debug, info, warn, error. Absent = info.
	EnvLogLevel = "STREAMD_LOG_LEVEL"
)

// Features of the contract's major version 1 that a plugin announces in Describe.
const (
	FeatureLanes   = "lanes"   // handlers
	FeatureOutputs = "outputs" // handlers may emit
	FeaturePage    = "page"    // marks running records in the shared page
	FeatureSolve   = "solve"   // strategies
	FeatureSockets = "sockets" // takes a lane's frames over a socket that the host passes
)
