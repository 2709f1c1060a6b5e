package sdktest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"testing"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/serve"
)

// callTimeout bounds every call of the harness: a plugin that hangs fails its test. A slow one, or a machine that has much
// else to do, does not.
const callTimeout = time.Minute

// Plugin is a plugin under test.
type Plugin struct {
	t      testing.TB
	client pluginv1.PluginClient
}

// Start serves components in this process.
func Start(tb testing.TB, specs ...sdk.Spec) *Plugin {
	tb.Helper()
	logger := slog.New(slog.NewTextHandler(tb.Output(), nil))
	server, err := serve.NewServer(sdk.Info{Name: "sdktest", Version: "0"}, specs, logger, nil, nil)
	if err != nil {
		tb.Fatalf("serving the components: %v", err)
	}
	link := newLink(tb)
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(link.ServerOptions()...)
	server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	options := append(link.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///plugin", options...)
	if err != nil {
		tb.Fatalf("connecting to the components: %v", err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		g.Stop()
		if err := <-served; err != nil {
			tb.Errorf("serving the components: %v", err)
		}
		server.Close()
	})
	return &Plugin{t: tb, client: pluginv1.NewPluginClient(conn)}
}

// StartBinary starts a plugin binary as streamd does, with AutoMTLS. env adds to an empty environment: NAME=value.
func StartBinary(tb testing.TB, path string, env ...string) *Plugin {
	tb.Helper()
	cmd := exec.Command(path) //nolint:noctx // go-plugin ends the process, with a deadline of its own
	cmd.Env = env
	link := newLink(tb)
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: border.ProtocolVersion, MagicCookieKey: border.CookieKey, MagicCookieValue: border.CookieValue,
		},
		VersionedPlugins: map[int]goplugin.PluginSet{border.ProtocolVersion: {border.PluginName: dispenser{}}},
		Cmd:              cmd,
		AutoMTLS:         true,
		SkipHostEnv:      true,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		GRPCDialOptions:  link.DialOptions(),
		StartTimeout:     callTimeout,
		Stderr:           tb.Output(),
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
	})
	tb.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		tb.Fatalf("starting %s: %v", path, err)
	}
	raw, err := protocol.Dispense(border.PluginName)
	if err != nil {
		tb.Fatalf("starting %s: %v", path, err)
	}
	return &Plugin{t: tb, client: raw.(pluginv1.PluginClient)}
}

func newLink(tb testing.TB) *border.Link {
	tb.Helper()
	link, err := border.NewLink()
	if err != nil {
		tb.Fatal(err)
	}
	return link
}

// dispenser is the host's side of the one plugin in the set.
type dispenser struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer is for plugins.
func (dispenser) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient returns the generated client.
func (dispenser) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pluginv1.NewPluginClient(conn), nil
}

// Describe returns what the plugin says of itself.
func (p *Plugin) Describe() *pluginv1.DescribeResponse {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), callTimeout)
	defer cancel()
	d, err := p.client.Describe(ctx, &pluginv1.DescribeRequest{HostVersion: "sdktest"})
	if err != nil {
		p.t.Fatalf("describing the plugin: %v", err)
	}
	return d
}

// Check configures a component and returns what it says of the config; nothing means that it is usable.
func (p *Plugin) Check(component, config string) []sdk.Diagnostic {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), callTimeout)
	defer cancel()
	r, err := p.client.Configure(ctx, &pluginv1.ConfigureRequest{Instance: component, Component: component, ConfigJson: []byte(config)})
	if err != nil {
		p.t.Fatalf("configuring component %s: %v", component, err)
	}
	var out []sdk.Diagnostic
	for _, d := range r.GetDiagnostics() {
		severity := sdk.SeverityError
		if d.GetSeverity() == pluginv1.Diagnostic_SEVERITY_WARNING {
			severity = sdk.SeverityWarning
		}
		out = append(out, sdk.Diagnostic{Severity: severity, Pointer: d.GetPointer(), Text: d.GetText(), Hint: d.GetHint()})
	}
	return out
}

// Configure is Check for a config that must be usable.
func (p *Plugin) Configure(component, config string) *Handler {
	p.t.Helper()
	for _, d := range p.Check(component, config) {
		if d.Severity == sdk.SeverityError {
			p.t.Fatalf("configuring component %s: %q %s (%s)", component, d.Pointer, d.Text, d.Hint)
		}
	}
	return &Handler{t: p.t, plugin: p, instance: component}
}
