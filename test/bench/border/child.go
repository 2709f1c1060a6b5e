package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	goruntime "runtime"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/serve"
)

var errUnseen = errors.New("the body is not what was sent")

// doNothing looks at one byte of every cache line, as a handler at least would.
func doNothing(_ context.Context, m *sdk.Message) error { return touch(m.Body()) }

func touch(body []byte) error {
	sum := byte(0)
	for i := 0; i < len(body); i += 64 {
		sum |= body[i]
	}
	if sum != 0 {
		return errUnseen
	}
	return nil
}

// runChild is the plugin's end of one way.
func runChild(way string) error {
	if way == "socketpair" {
		return serveSocketpair(os.NewFile(3, "host"))
	}
	link, err := border.NewLink()
	if err != nil {
		return err
	}
	options := link.ServerOptions()
	if strings.HasSuffix(way, ", TLS") {
		config, err := identityFromEnv()
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	g := grpc.NewServer(options...)
	switch {
	case strings.HasPrefix(way, "sdk"):
		server, err := serve.NewServer(sdk.Info{Name: "bench"}, []sdk.Spec{sdk.Component("nothing",
			func(context.Context, struct{}, sdk.Env) (sdk.Handler, error) { return sdk.HandlerFunc(doNothing), nil })},
			slog.New(slog.DiscardHandler), nil, nil)
		if err != nil {
			return err
		}
		server.Register(g)
	case strings.HasPrefix(way, "opaque"):
		pluginv1.RegisterPluginServer(g, &opaque{})
	default:
		pluginv1.RegisterPluginServer(g, &standard{})
	}
	listener, err := net.Listen("unix", os.Getenv(socketEnv)) //nolint:noctx // a unix socket is there at once
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
		return fmt.Errorf("telling the host: %w", err)
	}
	ballast := make([]byte, 24<<20) // as serve.Main has it
	err = g.Serve(listener)
	goruntime.KeepAlive(ballast)
	return err
}

func serveSocketpair(f *os.File) error {
	header, answer := make([]byte, 8), make([]byte, 4)
	var payload []byte
	for {
		if _, err := io.ReadFull(f, header); err != nil {
			return nil //nolint:nilerr // the host has ended the run
		}
		size, n := int(binary.LittleEndian.Uint32(header)), int(binary.LittleEndian.Uint32(header[4:]))
		if cap(payload) < size {
			payload = make([]byte, size)
		}
		payload = payload[:size]
		if _, err := io.ReadFull(f, payload); err != nil {
			return fmt.Errorf("reading a batch: %w", err)
		}
		for each := size / n; len(payload) >= each; payload = payload[each:] {
			if err := touch(payload[each-bodySize : each]); err != nil {
				return err
			}
		}
		payload = payload[:0]
		binary.LittleEndian.PutUint32(answer, uint32(n))
		if _, err := f.Write(answer); err != nil {
			return nil //nolint:nilerr // the host has ended the run
		}
	}
}

// opaque is the hand-written codec without the SDK's runtime: what the codec alone costs.
type opaque struct {
	pluginv1.UnimplementedPluginServer
}

// Lane answers every batch.
func (*opaque) Lane(stream grpc.BidiStreamingServer[pluginv1.HostFrame, pluginv1.PluginFrame]) error {
	in := border.HostFrames()
	var batch frame.Batch
	results := frame.Results{AckRuns: []uint32{0, 0}}
	for {
		if err := stream.RecvMsg(in); err != nil {
			return err
		}
		if in.Number != frame.HostBatch {
			continue
		}
		if err := frame.DecodeBatch(in.Message, &batch); err != nil {
			return err
		}
		for i := range batch.Records.Len() {
			if err := touch(batch.Records.Body(i)); err != nil {
				return err
			}
		}
		results.Seq, results.AckRuns[1] = batch.Seq, uint32(batch.Records.Len())
		e := frame.EncodeResults(&results)
		if err := stream.SendMsg(&e); err != nil {
			return err
		}
	}
}

// standard is the same through generated code.
type standard struct {
	pluginv1.UnimplementedPluginServer
}

// Lane answers every batch.
func (*standard) Lane(stream grpc.BidiStreamingServer[pluginv1.HostFrame, pluginv1.PluginFrame]) error {
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		b := f.GetBatch()
		if b == nil {
			continue
		}
		r := b.GetRecords()
		for i := 3; i < len(r.GetEnd()); i += 4 {
			if err := touch(r.GetPayload()[r.GetEnd()[i-1]:r.GetEnd()[i]]); err != nil {
				return err
			}
		}
		err = stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Results{Results: &pluginv1.Results{
			Seq: b.GetSeq(), AckRuns: []uint32{0, uint32(len(r.GetEnd()) / 4)},
		}}})
		if err != nil {
			return err
		}
	}
}
