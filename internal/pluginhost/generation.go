package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
	"github.com/streamd/streamd/internal/pluginhost/plog"
	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// generation is one start of a plugin process, from fork to the last byte of its pipes. It is never used again after its
// end: a new start is a new generation, with a new go-plugin client.
type generation struct {
	host     *Host
	fleet    *fleet
	name     string
	spec     PluginSpec
	id       uint64
	solo     bool
	logger   *slog.Logger
	checksum string
	dir      string // private: sockets live here

	pump    *plog.Pump
	runner  *runner
	stdio   stdio
	shared  *sharedPage
	page    *frame.Page
	sockets *laneSockets // nil: lanes go over gRPC
	client  *goplugin.Client
	address net.Addr // that it listens at; set before the first connection
	conn    *grpc.ClientConn
	api     pluginv1.PluginClient
	limit   memlimit.Group
	about   *pluginv1.DescribeResponse

	lastFrame  atomic.Int64 // Unix nanoseconds
	rss        atomic.Int64
	violations atomic.Uint64

	mu      sync.Mutex
	lanes   map[*Lane]struct{}
	rows    [maxLanes]bool
	configs map[string]*configured

	instances map[string]*sync.Mutex // one configures an instance at a time; by handler
	fate      *frame.Lost            // why the host ends it, when it does
	blame     *blame                 // with a fate of CauseHang: the lane that waited too long, when it was one
	leaving   bool                   // it takes no lanes any more
	text      frame.Lost             // what its lanes are told; set before dead is closed

	dead chan struct{} // the process has ended and its last words are known
	work sync.WaitGroup
}

// blame names the lane whose records made the host replace a process, and those of them that ran too long; none when only
// the shared page can tell.
type blame struct {
	lane *Lane
	refs []frame.Ref
}

// errGone is what a call to a process that ended by itself returns.
var errGone = errors.New("the process is gone")

// What a lane is refused for that was being opened meanwhile.
var (
	errLeaving = errors.New("the process is being replaced")
	errStale   = errors.New("the handler's config has changed")
)

func (h *Host) newGeneration(f *fleet, id uint64, solo bool, exe *process.Executable) (*generation, error) {
	spec := f.spec
	g := &generation{
		host: h, fleet: f, name: spec.Name, spec: spec, id: id, solo: solo, checksum: exe.Checksum,
		dir:   filepath.Join(h.run.Path, fmt.Sprintf("g%d", h.births.Add(1))), // short, as paths of sockets must be
		lanes: map[*Lane]struct{}{}, configs: map[string]*configured{}, instances: map[string]*sync.Mutex{}, dead: make(chan struct{}),
	}
	g.logger = h.logger.With("plugin", spec.Name, "generation", id)
	g.pump = plog.NewPump(h.lines.With("plugin", spec.Name, "generation", id), h.now)
	if err := os.Mkdir(g.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the private directory of plugin %s: %w", spec.Name, err)
	}
	var err error
	if g.shared, err = newSharedPage(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	g.page = g.shared.page
	if spec.Datapath != DatapathGRPC {
		if g.sockets, err = newLaneSockets(); err != nil {
			return nil, errors.Join(err, g.shared.close(), os.RemoveAll(g.dir))
		}
	}
	if g.limit, err = h.limiter.Group(fmt.Sprintf("%s-%d", spec.Name, id), spec.Memory); err != nil {
		return nil, errors.Join(err, g.shared.close(), g.sockets.close(), os.RemoveAll(g.dir))
	}
	g.stdio = g.newStdio()
	g.runner = newRunner(spec.Name, h.spawner, g.processSpec(exe), !spec.TLSOff, g.pump, g.doomed)
	return g, nil
}

// clientConfig tells go-plugin to do the handshake, TLS and the connection, and nothing else.
func (g *generation) clientConfig() *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: border.CookieKey, MagicCookieValue: border.CookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{border.ProtocolVersion: {}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		RunnerFunc:       g.runnerFunc(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: g.dir},
		AutoMTLS:         !g.spec.TLSOff,
		SkipHostEnv:      true,
		SyncStdout:       g.stdio.stdout,
		SyncStderr:       g.stdio.stderr,
		StartTimeout:     g.spec.StartTimeout + time.Second, // ours comes first, with better words
		Logger:           silentLogger(),
		GRPCDialOptions:  append(g.host.link.DialOptions(), grpc.WithContextDialer(g.dial)),
	}
}

// dial connects to the address that the process told in its handshake, in the place of go-plugin's own dialer, whose socket
// has too little room for a batch.
func (g *generation) dial(ctx context.Context, _ string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, g.address.Network(), g.address.String())
	if err != nil {
		return nil, fmt.Errorf("connecting to plugin %s: %w", g.name, err)
	}
	if err := border.Widen(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to plugin %s: %w", g.name, err), conn.Close())
	}
	return conn, nil
}

// defaultFrame is what a plugin that says nothing takes, in bytes: gRPC's default.
const defaultFrame = 4 << 20

func (g *generation) pid() int {
	if p := g.process(); p != nil {
		return p.PID
	}
	return 0
}

func (g *generation) process() *process.Process {
	return g.runner.process.Load()
}

func (g *generation) heard() { g.lastFrame.Store(g.host.now().UnixNano()) }

func (g *generation) laneInfo(handler string) frame.LaneInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	info := frame.LaneInfo{
		Plugin: g.name, Version: g.about.GetVersion(), Checksum: g.checksum, Generation: g.id, PID: g.pid(), MaxBytes: defaultFrame,
	}
	if n := g.about.GetMaxMessageBytes(); n > 0 {
		info.MaxBytes = int(min(n, border.MaxMessage))
	}
	if c := g.configs[handler]; c != nil {
		info.ConfigHash = c.hash
	}
	return info
}

// takeRow takes a row of the shared page for a lane that is to be opened, and keeps the page in place until work.Done is
// called. A solo process has one lane at a time, whoever has suspects: what runs beside a message that kills it would be
// taken for a killer too.
func (g *generation) takeRow() (uint32, frame.Row, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.over(); err != nil {
		return 0, frame.Row{}, err
	}
	rows, full := g.rows[:], fmt.Errorf("plugin %s has %d lanes already, which is the limit of one process; raise instances", g.name, maxLanes)
	if g.solo {
		rows, full = g.rows[:1], fmt.Errorf("plugin %s has a message of another lane alone in its solo process", g.name)
	}
	i := slices.Index(rows, false)
	if i < 0 {
		return 0, frame.Row{}, full
	}
	row, ok := g.page.Row(uint32(i))
	if !ok {
		return 0, frame.Row{}, fmt.Errorf("the shared page of plugin %s has no row %d", g.name, i)
	}
	g.rows[i] = true
	g.work.Add(1)
	return uint32(i), row, nil
}

// over tells why the generation takes no lane any more; mu is held.
func (g *generation) over() error {
	if g.fate != nil {
		return errGone
	}
	select {
	case <-g.dead:
		return errGone
	default:
	}
	if g.leaving {
		return errLeaving
	}
	return nil
}

// leave has the generation take no lanes any more: what drains it must know of all of them.
func (g *generation) leave() {
	g.mu.Lock()
	g.leaving = true
	g.mu.Unlock()
}

func (g *generation) freeRow(number uint32) {
	g.mu.Lock()
	g.rows[number] = false
	g.mu.Unlock()
}

// addLane refuses lanes of a generation that is on its way out, and one whose handler got another config while it was opened:
// nobody would drain it.
func (g *generation) addLane(l *Lane) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.over(); err != nil {
		return err
	}
	if c := g.configs[l.spec.Handler]; c != nil && c.err == nil && c.hash != l.info.ConfigHash {
		return errStale
	}
	g.lanes[l] = struct{}{}
	g.work.Add(2) // its goroutines; see Lane.start
	return nil
}

func (g *generation) dropLane(l *Lane) {
	g.mu.Lock()
	delete(g.lanes, l)
	g.rows[l.number] = false
	g.mu.Unlock()
	g.host.laneGone(l)
}

func (g *generation) openLanes() []*Lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	lanes := make([]*Lane, 0, len(g.lanes))
	for l := range g.lanes {
		lanes = append(lanes, l)
	}
	return lanes
}

// drain lets lanes end in peace, and ends those that do not. The host's stop has its own limit; otherwise a record may
// take its deadline, so that a swap repeats nothing.
func (g *generation) drain(ctx context.Context, lanes []*Lane) {
	limit := g.host.timing.Drain
	for _, l := range lanes {
		if !g.host.stopping() {
			limit = max(limit, l.spec.Deadline+g.host.timing.Grace)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, l := range lanes {
		l.beginDrain(limit)
	}
	for _, l := range lanes {
		select {
		case <-l.done:
		case <-g.dead:
		case <-ctx.Done():
			l.end(frame.Lost{Cause: frame.CauseSwap, Text: fmt.Sprintf("plugin %s was replaced or stopped, and %d records were unanswered after %s", g.name, l.InFlight(), limit)})
		}
	}
}

// explain turns the transport's word into the process's fate, when there is one.
func (g *generation) explain(err error) error {
	code := status.Code(err)
	if code != codes.Unavailable && code != codes.Canceled && !errors.Is(err, errGone) {
		return err
	}
	timer := time.NewTimer(obituaryWait)
	defer timer.Stop()
	select {
	case <-g.dead:
		return errors.New(g.death().Text)
	case <-timer.C:
		return err
	}
}

// death tells lanes why they are lost; meaningful after dead is closed.
func (g *generation) death() frame.Lost { return g.text }
