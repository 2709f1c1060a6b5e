package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

const (
	childEnv  = "BORDER_BENCH_CHILD"
	socketEnv = "BORDER_BENCH_SOCKET"
	warmUp    = 200 * time.Millisecond
)

// inFlight is how many records are out: 64 of single ones, 8 batches of large ones.
func inFlight(batch int) int { return max(64, min(8*batch, 2048)) }

// sampleRecords are a batch as the engine would fill it.
func sampleRecords(n int) *frame.Records {
	var b frame.Builder
	for i := range n {
		b.Append(&frame.Record{
			Topic: "Orders", Broker: "broker-a", QueueID: uint32(i % 8), Offset: uint64(1_000_000 + i),
			BornMillis: 1_700_000_000_000, StoreMillis: 1_700_000_000_001, Attempt: 1,
			ID: "7F00000100002A9F00000000000493E0", Keys: "order-1042", Properties: []byte("KEYS\x01order-1042\x02WAIT\x01true\x02"),
			Body: make([]byte, bodySize),
		})
	}
	return b.Records()
}

// window bounds what is out, and counts what came back.
type window struct {
	mu       sync.Mutex
	room     *sync.Cond
	out, max int
	stopped  bool
	answered atomic.Int64
}

func newWindow(limit int) *window {
	w := &window{max: limit}
	w.room = sync.NewCond(&w.mu)
	return w
}

func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.out+n > w.max && !w.stopped {
		w.room.Wait()
	}
	w.out += n
	return !w.stopped
}

func (w *window) give(n int) {
	w.answered.Add(int64(n))
	w.mu.Lock()
	w.out -= n
	w.mu.Unlock()
	w.room.Signal()
}

func (w *window) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.room.Broadcast()
}

// connection is one way of getting batches across.
type connection struct {
	send    func(seq uint64) error
	receive func() (n int, err error) // records answered by the next frame
	close   func()
	pid     int // 0 = in process
}

func measure(ctx context.Context, way string, size int, length time.Duration) (sample, error) {
	c, err := connect(ctx, way, size)
	if err != nil {
		return sample{}, err
	}
	w := newWindow(inFlight(size))
	failed := make(chan error, 2)
	var both sync.WaitGroup
	both.Go(func() {
		for seq := uint64(1); w.take(size); seq++ {
			if err := c.send(seq); err != nil {
				failed <- err
				return
			}
		}
	})
	both.Go(func() {
		for {
			n, err := c.receive()
			if err != nil {
				failed <- err
				return
			}
			w.give(n)
		}
	})
	s, err := observe(ctx, c, w, length, failed)
	w.stop()
	c.close()
	both.Wait()
	return s, err
}

// observe takes the figures over the measured time.
func observe(ctx context.Context, c *connection, w *window, length time.Duration, failed <-chan error) (sample, error) {
	if err := pause(ctx, warmUp, failed); err != nil {
		return sample{}, err
	}
	host, plugin, err := cpu(c.pid)
	if err != nil {
		return sample{}, err
	}
	n, start := w.answered.Load(), time.Now()
	if err := pause(ctx, length, failed); err != nil {
		return sample{}, err
	}
	elapsed, records := time.Since(start), float64(w.answered.Load()-n)
	hostAfter, pluginAfter, err := cpu(c.pid)
	if err != nil {
		return sample{}, err
	}
	if records == 0 {
		return sample{}, errors.New("nothing was answered")
	}
	return sample{
		rate: records / elapsed.Seconds(), host: (hostAfter - host).Seconds() * 1e6 / records,
		plugin: (pluginAfter - plugin).Seconds() * 1e6 / records,
	}, nil
}

func pause(ctx context.Context, d time.Duration, failed <-chan error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cpu returns user and system time of this process and of the plugin.
func cpu(pid int) (host, plugin time.Duration, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, fmt.Errorf("reading the own CPU time: %w", err)
	}
	host = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if pid == 0 {
		return host, 0, nil
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the plugin's CPU time: %w", err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading the plugin's CPU time: %w", err)
		}
		ticks += n
	}
	return host, time.Duration(ticks) * 10 * time.Millisecond, nil
}

func connect(ctx context.Context, way string, size int) (*connection, error) {
	switch way {
	case "in process":
		return inProcess(ctx, size), nil
	case "socketpair":
		return socketpair(ctx, size)
	default:
		return overGRPC(ctx, way, size)
	}
}

// inProcess calls the handler directly.
func inProcess(ctx context.Context, size int) *connection {
	records := sampleRecords(size)
	answers := make(chan int, 1)
	closed := make(chan struct{})
	return &connection{
		send: func(uint64) error {
			messages := sdk.NewMessages(records, size)
			for i := range messages {
				if err := doNothing(ctx, &messages[i]); err != nil {
					return err
				}
			}
			select {
			case answers <- size:
			case <-closed:
			}
			return nil
		},
		receive: func() (int, error) {
			select {
			case n := <-answers:
				return n, nil
			case <-closed:
				return 0, io.EOF
			}
		},
		close: func() { close(closed) },
	}
}

// child starts this binary as the plugin's end.
func child(ctx context.Context, way string, env []string, files ...*os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEnv+"="+way)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, files
	return cmd, nil
}

// socketpair writes the same payload with a header, and reads one word a batch: what two processes can do without gRPC.
func socketpair(ctx context.Context, size int) (*connection, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socketpair: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "plugin")
	cmd, err := child(ctx, "socketpair", nil, theirs)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the plugin: %w", err)
	}
	_ = theirs.Close()
	payload := make([]byte, 8, 8+1<<20)
	payload = append(payload, sampleRecords(size).Payload...)
	binary.LittleEndian.PutUint32(payload, uint32(len(payload)-8))
	binary.LittleEndian.PutUint32(payload[4:], uint32(size))
	answer := make([]byte, 4)
	return &connection{
		send: func(uint64) error { _, err := mine.Write(payload); return err },
		receive: func() (int, error) {
			_, err := io.ReadFull(mine, answer)
			return int(binary.LittleEndian.Uint32(answer)), err
		},
		close: func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = mine.Close() },
		pid:   cmd.Process.Pid,
	}, nil
}

func overGRPC(ctx context.Context, way string, size int) (*connection, error) {
	dir, err := os.MkdirTemp("", "border")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the socket: %w", err)
	}
	socket := filepath.Join(dir, "s")
	env := []string{socketEnv + "=" + socket}
	transport := insecure.NewCredentials()
	if strings.HasSuffix(way, ", TLS") {
		pair, err := newIdentity()
		if err != nil {
			return nil, err
		}
		env = append(env, pair.env()...)
		config, err := pair.config()
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(config)
	}
	cmd, err := child(ctx, way, env)
	if err != nil {
		return nil, err
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the plugin: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the plugin: %w", err)
	}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = os.RemoveAll(dir) }
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		end()
		return nil, fmt.Errorf("waiting for the plugin: %w", err)
	}
	c, err := dial(ctx, socket, transport, way, size)
	if err != nil {
		end()
		return nil, err
	}
	closeStream := c.close
	c.close, c.pid = func() { closeStream(); end() }, cmd.Process.Pid
	return c, nil
}

func dial(ctx context.Context, socket string, transport credentials.TransportCredentials, way string, size int) (*connection, error) {
	link, err := border.NewLink()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix:"+socket, append(link.DialOptions(), grpc.WithTransportCredentials(transport), grpc.WithAuthority("localhost"))...)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	client := pluginv1.NewPluginClient(conn)
	ctx, cancel := context.WithCancel(ctx)
	c := &connection{close: func() { cancel(); _ = conn.Close() }}
	if strings.HasPrefix(way, "sdk") {
		r, err := client.Configure(ctx, &pluginv1.ConfigureRequest{Instance: "bench", Component: "nothing"})
		if err != nil || len(r.GetDiagnostics()) > 0 {
			c.close()
			return nil, fmt.Errorf("configuring: %v, %w", r.GetDiagnostics(), err)
		}
	}
	stream, err := client.Lane(ctx)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("opening a lane: %w", err)
	}
	err = stream.Send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Open{Open: &pluginv1.Open{
		Instance: "bench", Concurrency: 20, Credits: uint32(inFlight(size)),
	}}})
	if err != nil {
		c.close()
		return nil, fmt.Errorf("opening a lane: %w", err)
	}
	if strings.HasPrefix(way, "protobuf") {
		c.useProtobuf(stream, size)
	} else {
		c.useFrames(stream, size)
	}
	return c, nil
}

// useFrames is the product's path: frames written and read by internal/frame.
func (c *connection) useFrames(stream grpc.ClientStream, size int) {
	batch := frame.Batch{Budget: time.Minute, Records: *sampleRecords(size)}
	in := border.PluginFrames()
	var results frame.Results
	c.send = func(seq uint64) error {
		batch.Seq = seq
		e := frame.EncodeBatch(&batch)
		return stream.SendMsg(&e)
	}
	c.receive = func() (int, error) {
		if err := stream.RecvMsg(in); err != nil {
			return 0, err
		}
		if in.Number != frame.PluginResults {
			return 0, nil // Opened, credits
		}
		if err := frame.DecodeResults(in.Message, &results, size); err != nil {
			return 0, err
		}
		return answers(results.AckRuns), nil
	}
}

// useProtobuf is the alternative: the same columns through generated code and gRPC's standard codec.
func (c *connection) useProtobuf(stream grpc.BidiStreamingClient[pluginv1.HostFrame, pluginv1.PluginFrame], size int) {
	r := sampleRecords(size)
	records := &pluginv1.Records{
		Dict: r.Dict, Topic: r.Topic, Broker: r.Broker, Tag: r.Tag, QueueId: r.QueueID, Offset: r.Offset,
		BornMs: r.BornMillis, StoreMs: r.StoreMillis, Attempt: r.Attempt, End: r.End, Payload: r.Payload,
	}
	c.send = func(seq uint64) error {
		return stream.Send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Batch{Batch: &pluginv1.Batch{
			Seq: seq, BudgetMs: 60_000, Records: records,
		}}})
	}
	c.receive = func() (int, error) {
		f, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		return answers(f.GetResults().GetAckRuns()), nil
	}
}

func answers(runs []uint32) (n int) {
	for i := 1; i < len(runs); i += 2 {
		n += int(runs[i])
	}
	return n
}
