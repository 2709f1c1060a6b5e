package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	gorunner "github.com/hashicorp/go-plugin/runner"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
	"github.com/streamd/streamd/internal/pluginhost/process"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// The extra descriptors of a plugin: the shared page, and the socket that lanes' sockets come over.
const (
	sharedPageFD = 3
	lanesFD      = 4
)

// lastLines is how many of a dead plugin's lines go into errors.
const lastLines = 20

func (g *generation) environment() []string {
	host := map[string]string{
		border.EnvPageFD:   strconv.Itoa(sharedPageFD),
		border.EnvLogLevel: g.host.logLevel,
	}
	if g.sockets != nil {
		host[border.EnvLanesFD] = strconv.Itoa(lanesFD)
	}
	if socket := g.host.traceSocket(g.name); socket != "" {
		host[border.EnvOTLPSocket] = socket
	}
	config := g.spec.Env
	if _, set := config["GOMEMLIMIT"]; g.spec.Memory > 0 && !set {
		// A soft limit below the hard one lets a Go plugin collect garbage before it is killed.
		host["GOMEMLIMIT"] = strconv.FormatInt(g.spec.Memory*8/10, 10)
	}
	return process.Environment(config, host)
}

// processSpec says what to execute.
func (g *generation) processSpec(exe *process.Executable) process.Spec {
	spec := process.Spec{
		Executable: exe, Args: g.spec.Command, Env: g.environment(), Dir: g.spec.Dir, ExtraFiles: []*os.File{g.shared.file},
	}
	if g.sockets != nil {
		spec.ExtraFiles = append(spec.ExtraFiles, g.sockets.child)
	}
	if dir := g.limit.Dir(); dir != nil {
		spec.CgroupFD = int(dir.Fd())
	}
	return spec
}

func (g *generation) runnerFunc() func(hclog.Logger, *exec.Cmd, string) (gorunner.Runner, error) {
	return func(_ hclog.Logger, cmd *exec.Cmd, dir string) (gorunner.Runner, error) {
		g.runner.prepare(cmd, dir)
		return g.runner, nil
	}
}

// start executes the process and connects. On an error nothing of it is left; crash tells whether it was the code's own
// doing: it ran, and ended or never came to its handshake.
func (g *generation) start() (crash bool, err error) {
	g.client = goplugin.NewClient(g.clientConfig())
	late := time.AfterFunc(g.spec.StartTimeout, g.startTimedOut)
	grpcClient, err := g.connect()
	late.Stop()
	if err == nil {
		err = g.runner.failure()
	}
	if err != nil {
		return g.stillborn(err)
	}
	g.mu.Lock()
	g.conn = grpcClient.Conn
	g.api = pluginv1.NewPluginClient(g.conn)
	g.mu.Unlock()
	g.heard()
	return false, nil
}

func (g *generation) connect() (*goplugin.GRPCClient, error) {
	address, err := g.client.Start()
	if err != nil {
		return nil, err //nolint:wrapcheck // stillborn says whose error it is
	}
	g.address = address
	protocol, err := g.client.Client()
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	grpcClient, ok := protocol.(*goplugin.GRPCClient)
	if !ok {
		return nil, fmt.Errorf("go-plugin made a %T", protocol)
	}
	return grpcClient, nil
}

func (g *generation) startTimedOut() {
	g.runner.fail(fmt.Errorf("it sent no handshake within %s; if it needs longer to start, raise %s", g.spec.StartTimeout, g.host.timeoutName))
	if p := g.process(); p != nil {
		g.quit(p)
	}
}

// stillborn cleans up after a failed start and puts the reason into words.
func (g *generation) stillborn(err error) (crash bool, _ error) {
	text, p := err, g.process()
	known := g.runner.failure()
	if known != nil {
		text = known
	}
	if p == nil {
		g.release()
		return false, fmt.Errorf("starting plugin %s: %w", g.name, text)
	}
	if known == nil && errors.Is(waitFor(p, exitWait), errGone) {
		text = fmt.Errorf("it ended before its handshake (%s); run %s by hand to see why", p.Exit(), strings.Join(g.spec.Command, " "))
		if p.Exit().Code == 0 {
			text = fmt.Errorf("%w; a plugin must stay and serve", text)
		}
	}
	// The group may hold processes that outlive their parent; the watch on the exit kills those.
	if err := p.SignalGroup(syscall.SIGKILL); err != nil {
		g.logger.Error("a process could not be killed", "error", err)
	}
	<-p.Exited()
	<-g.runner.drained
	if words := g.host.redact(g.pump.Tail().Account(lastLines)); words != "" {
		text = fmt.Errorf("%w; its last words: %s", text, words)
	}
	g.release()
	return !g.doomed(), fmt.Errorf("starting plugin %s (pid %d): %w", g.name, p.PID, text)
}

// waitFor returns errGone when the process ends within the limit.
func waitFor(p *process.Process, limit time.Duration) error {
	if endsWithin(p.Exited(), limit) {
		return errGone
	}
	return nil
}

// endsWithin waits for an end. Who had no turn until the limit was over finds the end and the limit at once: the end counts.
func endsWithin(end <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-end:
		return true
	case <-timer.C:
	}
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// describe asks what the plugin offers. It does so at each start: it takes less than a millisecond, and what an interpreted
// plugin offers can change without its command's file.
func (g *generation) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, g.host.timing.Describe, Waited(g.host.timing.Describe))
	defer cancel()
	about, err := g.api.Describe(ctx, &pluginv1.DescribeRequest{HostVersion: g.host.version})
	if err != nil {
		return fmt.Errorf("asking plugin %s what it offers: %w", g.name, g.unanswered(ctx, err))
	}
	g.mu.Lock()
	g.about = about
	g.mu.Unlock()
	if g.spec.Datapath == DatapathSocketPair && !g.takesSockets() {
		g.logger.Warn("the plugin takes no lanes over sockets; they go over gRPC", "datapath", "socketpair")
	}
	if told := g.host.described; told != nil {
		told(g.name, about)
	}
	return nil
}

// mechanism is what holds its memory limit.
func (g *generation) mechanism() memlimit.Mechanism { return g.limit.Mechanism() }
