// Command counter is a plugin on the raw contract that acks everything and counts, by a gRPC stats handler, what crosses
// the border. Its argument is the file that holds the counts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// counts is what crossed. RPCs and Frames are the stats handler's view: it sees what gRPC carries, whatever this program
// makes of it.
type counts struct {
	mu      sync.Mutex
	path    string
	RPCs    map[string]int `json:"rpcs"`    // begun, by method
	Frames  map[string]int `json:"frames"`  // received, by method
	Batches int            `json:"batches"` // of the frames of lanes
	Records int            `json:"records"`
}

type method struct{}

// TagRPC implements stats.Handler.
func (c *counts) TagRPC(ctx context.Context, i *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, method{}, i.FullMethodName)
}

// HandleRPC implements stats.Handler.
func (c *counts) HandleRPC(ctx context.Context, s stats.RPCStats) {
	name, _ := ctx.Value(method{}).(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.Begin:
		c.RPCs[name]++
	case *stats.InPayload:
		c.Frames[name]++
	}
}

// TagConn implements stats.Handler.
func (*counts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*counts) HandleConn(context.Context, stats.ConnStats) {}

// add counts a batch, and writes the file now and then: readers see whole files only.
func (c *counts) add(records int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.Records
	c.Batches++
	c.Records += records
	if c.Records/1000 == before/1000 {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(c.path+".new", c.path)
}

type server struct {
	pluginv1.UnimplementedPluginServer
	counts *counts
}

// Describe implements the contract.
func (*server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{
		Name: "counter", Version: "1.0.0", Features: []string{border.FeatureLanes}, MaxMessageBytes: 32 << 20,
		Components: []*pluginv1.Component{{Name: "main", Kind: pluginv1.Component_KIND_HANDLER}},
	}, nil
}

// Configure implements the contract.
func (*server) Configure(context.Context, *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	return &pluginv1.ConfigureResponse{}, nil
}

// Health implements the contract.
func (*server) Health(context.Context, *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	return &pluginv1.HealthResponse{}, nil
}

// Lane implements the contract.
func (s *server) Lane(stream pluginv1.Plugin_LaneServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	opened := &pluginv1.Opened{Credits: first.GetOpen().GetCredits()}
	if err := stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Opened{Opened: opened}}); err != nil {
		return err
	}
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		switch f := f.GetF().(type) {
		case *pluginv1.HostFrame_Batch:
			err = s.ack(stream, f.Batch)
		case *pluginv1.HostFrame_Drain:
			return stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Drained{Drained: &pluginv1.Drained{}}})
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) ack(stream pluginv1.Plugin_LaneServer, b *pluginv1.Batch) error {
	n := uint32(len(b.GetRecords().GetEnd()) / 4)
	results := &pluginv1.Results{Seq: b.GetSeq(), AckRuns: []uint32{0, n}}
	if err := stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Results{Results: results}}); err != nil {
		return err
	}
	if err := stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Records{Records: &pluginv1.Credit{N: uint64(n)}}}); err != nil {
		return err
	}
	return s.counts.add(int(n))
}

type adapter struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (a *adapter) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // the interface is go-plugin's
	pluginv1.RegisterPluginServer(s, a.server)
	return nil
}

func (*adapter) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func main() {
	link, err := border.NewLink()
	if err != nil || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: counter FILE", err)
		os.Exit(1)
	}
	c := &counts{path: os.Args[1], RPCs: map[string]int{}, Frames: map[string]int{}}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: border.CookieKey, MagicCookieValue: border.CookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{border.ProtocolVersion: {border.PluginName: &adapter{server: &server{counts: c}}}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(append(options, link.ServerOptions()...), grpc.StatsHandler(c))...)
		},
	})
}
