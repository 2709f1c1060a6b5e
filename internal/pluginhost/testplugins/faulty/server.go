package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

func quiet() hclog.Logger { return hclog.New(&hclog.LoggerOptions{Level: hclog.Off}) }

type server struct {
	pluginv1.UnimplementedPluginServer
	mode string
	page *frame.Page
	hoax sync.Once
	held [][]byte
}

// openPage maps the shared page that the host passes.
func (s *server) openPage() error {
	text := os.Getenv(border.EnvPageFD)
	if text == "" {
		return nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	info, err := os.NewFile(uintptr(fd), "page").Stat()
	if err != nil {
		return err
	}
	mem, err := syscall.Mmap(fd, 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	s.page, err = frame.OpenPage(mem)
	return err
}

func (s *server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	unordered := ""
	if s.mode == "unordered" {
		unordered = "acknowledges before its workers are done"
	}
	return &pluginv1.DescribeResponse{
		Name: "faulty", Version: "0.1.0", Features: []string{border.FeatureLanes, border.FeaturePage},
		MaxMessageBytes: 32 << 20,
		Components: []*pluginv1.Component{
			{Name: "main", Kind: pluginv1.Component_KIND_HANDLER, Unordered: unordered},
			{Name: "rule", Kind: pluginv1.Component_KIND_STRATEGY},
		},
	}, nil
}

// Configure refuses {"bad": ...} with a pointer to it; a later version, mode "wants-bad", refuses a config without it. It never
// answers {"hang": ...}.
func (s *server) Configure(ctx context.Context, r *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	var config map[string]any
	if err := json.Unmarshal(r.GetConfigJson(), &config); err != nil {
		return nil, err
	}
	if _, hang := config["hang"]; hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, bad := config["bad"]; bad != (s.mode == "wants-bad") {
		return &pluginv1.ConfigureResponse{Diagnostics: []*pluginv1.Diagnostic{{
			Severity: pluginv1.Diagnostic_SEVERITY_ERROR, Pointer: "/bad", Text: "is not known", Hint: "remove it",
		}}}, nil
	}
	if s.mode == "eats" {
		go s.eat()
	}
	s.hoax.Do(func() { go noise(s.mode) })
	return &pluginv1.ConfigureResponse{}, nil
}

// eat holds ever more memory, touched so that it is real.
func (s *server) eat() {
	for range 64 {
		block := make([]byte, 16<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		s.held = append(s.held, block)
	}
}

func (s *server) Health(context.Context, *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	return &pluginv1.HealthResponse{}, nil
}

func (s *server) Lane(stream pluginv1.Plugin_LaneServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if s.mode == "never-opens" {
		<-stream.Context().Done()
		return nil
	}
	open := first.GetOpen()
	credits := open.GetCredits()
	if s.mode == "no-credit" {
		credits = 0
	}
	row, _ := s.page.Row(open.GetLane())
	row.Begin(open.GetGeneration())
	if err := stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Opened{Opened: &pluginv1.Opened{Credits: credits}}}); err != nil {
		return err
	}
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		switch f := f.GetF().(type) {
		case *pluginv1.HostFrame_Batch:
			err = s.batch(stream, row, f.Batch)
		case *pluginv1.HostFrame_Drain:
			return stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Drained{Drained: &pluginv1.Drained{}}})
		}
		if err != nil {
			return err
		}
	}
}

// batch answers one batch, record by record.
func (s *server) batch(stream pluginv1.Plugin_LaneServer, row frame.Row, b *pluginv1.Batch) error {
	ends := b.GetRecords().GetEnd()
	for i := range len(ends) / 4 {
		row.Mark(0, b.GetSeq(), uint32(i), 1)
		body := string(b.GetRecords().GetPayload()[ends[4*i+2]:ends[4*i+3]])
		if err := s.record(stream, b.GetSeq(), uint32(i), body); err != nil {
			return err
		}
		row.Clear(0, 1)
	}
	return nil
}

func (s *server) record(stream pluginv1.Plugin_LaneServer, seq uint64, i uint32, body string) error {
	switch body {
	case "exit":
		os.Exit(7)
	case "panic":
		done := make(chan struct{})
		go panic(fmt.Sprintf("record %d of batch %d", i, seq))
		<-done
	case "hang":
		<-stream.Context().Done()
	case "unknown":
		f := &pluginv1.PluginFrame{}
		f.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 50, protowire.VarintType), 1))
		return stream.Send(f)
	case "opened":
		return stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Opened{Opened: &pluginv1.Opened{}}})
	case "drained":
		return stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Drained{Drained: &pluginv1.Drained{}}})
	case "leaves":
		return errors.New("tired")
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-stream.Context().Done() // the signal takes a moment
	}
	results := []*pluginv1.Results{{Seq: seq, AckRuns: []uint32{i, 1}}}
	switch body {
	case "twice":
		results = append(results, results[0])
	case "foreign":
		results[0].Seq = seq + 1000
	case "outside":
		results[0].AckRuns[0] = 5000
	case "retry":
		results[0] = &pluginv1.Results{Seq: seq, Verdicts: []*pluginv1.Verdict{{Index: i, V: &pluginv1.Verdict_Retry{
			Retry: &pluginv1.Retry{DelayMs: 1500, Class: "busy", Text: "try later"},
		}}}}
	}
	for _, r := range results {
		if err := stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Results{Results: r}}); err != nil {
			return err
		}
	}
	return stream.Send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Records{Records: &pluginv1.Credit{N: 1}}})
}
