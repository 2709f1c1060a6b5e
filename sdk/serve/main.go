package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	goruntime "runtime"
	"sync"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/sdk"
)

// Main serves a plugin until the host ends it, and then returns. Started by hand it says how it is meant to be run and
// exits with status 1; with a mistake in the plugin itself it says what is wrong and exits with status 1.
func Main(info sdk.Info, specs ...sdk.Spec) {
	if err := run(info, specs); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // Main is the body of the plugin's main
	}
}

// byHand is what a person sees who runs the binary.
func byHand(info sdk.Info) error {
	return fmt.Errorf("%s %s is a streamd plugin and is started by streamd, not by hand.\n"+
		"Name it under plugins: in streamd's config, or look at it with:\n"+
		"  streamd plugin describe %s", info.Name, info.Version, os.Args[0])
}

func run(info sdk.Info, specs []sdk.Spec) error {
	if os.Getenv(border.CookieKey) != border.CookieValue {
		return byHand(info)
	}
	host := os.Getppid() // before the handshake: a host that dies right after it has died, and is not what took the plugin over
	// The variables as they are now: go-plugin replaces them by pipes that nobody has to read.
	stdout, stderr := os.Stdout, os.Stderr
	logger := NewLogger(stderr, levelOf(os.Getenv(border.EnvLogLevel)))
	slog.SetDefault(logger)
	page, err := openPage()
	if err != nil {
		return fmt.Errorf("starting plugin %s: %w", info.Name, err)
	}
	var restore sync.Once
	server, err := NewServer(info, specs, logger, page, func() {
		restore.Do(func() { os.Stdout, os.Stderr = stdout, stderr })
	})
	if err != nil {
		return fmt.Errorf("starting plugin %s: %w", info.Name, err)
	}
	link, err := border.NewLink()
	if err != nil {
		return fmt.Errorf("starting plugin %s: %w", info.Name, err)
	}
	if err := server.takeSockets(link); err != nil {
		return fmt.Errorf("starting plugin %s: %w", info.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := make(chan string, 1)
	go watchParent(ctx, host, os.Getppid, time.Second/5, gone)
	go exitWhenGone(ctx, gone, logger)

	heap := ballast()
	os.Stdout = handshakeOut
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: border.ProtocolVersion, MagicCookieKey: border.CookieKey, MagicCookieValue: border.CookieValue,
		},
		VersionedPlugins: map[int]goplugin.PluginSet{border.ProtocolVersion: {border.PluginName: &service{server: server}}},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			options = append(options, link.ServerOptions()...)
			return grpc.NewServer(append(options, grpc.ChainStreamInterceptor(watchConnection(gone)))...)
		},
	})
	os.Stdout, os.Stderr = stdout, stderr
	server.Close()
	goruntime.KeepAlive(heap)
	return nil
}

func levelOf(name string) slog.Level {
	level := slog.LevelInfo
	if name != "" && level.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return level
}

// service is the one plugin of the set.
type service struct {
	goplugin.NetRPCUnsupportedPlugin
	server *Server
}

// GRPCServer registers the contract.
func (s *service) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error {
	s.server.Register(g)
	return nil
}

// GRPCClient is for hosts; this is a plugin.
func (*service) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin does not dispense clients")
}
