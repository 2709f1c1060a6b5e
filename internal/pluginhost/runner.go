package pluginhost

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/pluginhost/plog"
	"github.com/streamd/streamd/internal/pluginhost/process"
)

// pipeGrace is how long more is waited for on the pipes of an ended process: a grandchild outside its group may hold them.
const pipeGrace = 250 * time.Millisecond

// runner is go-plugin's view of a process. go-plugin gets the handshake line and nothing else: its own readers stop at a
// line of 64 KiB and panic on a log line whose @message is not text.
type runner struct {
	name    string // the plugin's
	spawner *process.Spawner
	spec    process.Spec
	tls     bool
	dir     string      // where the socket must be
	doomed  func() bool // its end is decided already
	pump    *plog.Pump

	process atomic.Pointer[process.Process] // set by Start
	readers sync.WaitGroup
	drained chan struct{} // the process is gone and its pipes are read

	lineOut *io.PipeReader // what go-plugin reads
	lineIn  *io.PipeWriter

	mu  sync.Mutex
	err error // why the handshake failed, in words for the operator
}

func newRunner(name string, s *process.Spawner, spec process.Spec, tls bool, pump *plog.Pump, doomed func() bool) *runner {
	r := &runner{name: name, spawner: s, spec: spec, tls: tls, pump: pump, doomed: doomed, drained: make(chan struct{})}
	r.lineOut, r.lineIn = io.Pipe()
	return r
}

// prepare takes what go-plugin decided: the environment that carries the handshake, and the socket's directory.
func (r *runner) prepare(cmd *exec.Cmd, dir string) {
	r.spec.Env = process.MergeEnv(r.spec.Env, cmd.Env)
	r.dir = dir
}

// Start executes the process and its readers.
func (r *runner) Start(context.Context) error {
	if r.doomed() {
		r.fail(errUnwanted)
		return errUnwanted
	}
	p, err := r.spawner.Start(&r.spec)
	if err != nil {
		r.fail(explainStart(err))
		return err
	}
	r.process.Store(p)
	r.readers.Go(func() { _ = r.pump.Stderr(&pipe{file: p.Stderr}) }) // ends with the pipe; nothing can be done about its error
	r.readers.Go(func() { r.readStdout(p) })
	go r.closePipes(p)
	if r.doomed() { // whoever decided it saw no process; from here on it sees this one
		return r.Kill(context.Background()) //nolint:contextcheck // a signal
	}
	return nil
}

// errUnwanted is the error of a start that was taken back before there was a process.
var errUnwanted = errors.New("it is not wanted any more")

// explainStart adds what to do about the few errors that fork and exec have.
func explainStart(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: the limit of processes is reached (ulimit -u, pids.max)", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("%w: no memory to start it", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: the limit of open files is reached (ulimit -n)", err)
	}
	return err
}

// closePipes frees the readers when the process is gone, whoever else holds the other end.
func (r *runner) closePipes(p *process.Process) {
	<-p.Exited()
	deadline := time.Now().Add(pipeGrace)
	_ = p.Stdout.SetReadDeadline(deadline) // pipes take deadlines; on failure EOF ends the readers
	_ = p.Stderr.SetReadDeadline(deadline)
	r.readers.Wait()
	_ = r.lineIn.Close() // in memory: never fails
	_ = p.Stdout.Close()
	_ = p.Stderr.Close()
	close(r.drained)
}

// readStdout forwards the handshake line and treats all that follows as log lines.
func (r *runner) readStdout(p *process.Process) {
	in := bufio.NewReaderSize(&pipe{file: p.Stdout}, plog.MaxLine)
	line, err := in.ReadSlice('\n')
	if err == nil || len(line) > 0 {
		r.judge(string(bytes.TrimSpace(line)), in)
	}
	_ = r.lineIn.Close() // in memory: never fails
	_ = r.pump.Stdout(in)
}

func (r *runner) judge(line string, in *bufio.Reader) {
	h, ok, err := parseHandshake(line)
	if !ok {
		more, _ := in.Peek(min(in.Buffered(), 512))
		r.fail(strayOutput(line, string(more)))
		return
	}
	if err == nil {
		err = h.check(r.tls, r.dir)
	}
	if err != nil {
		r.fail(err)
		return
	}
	_, _ = io.WriteString(r.lineIn, line+"\n") // fails only when go-plugin has stopped reading
}

// strayOutput shows what came instead of the handshake.
func strayOutput(line, more string) error {
	const most = 300
	shown := []string{}
	for _, l := range append([]string{line}, strings.Split(strings.TrimSpace(more), "\n")...) {
		if l == "" || len(shown) == 4 {
			continue
		}
		if len(l) > most {
			l = l[:most] + "..."
		}
		shown = append(shown, strconv.Quote(l))
	}
	return fmt.Errorf("it wrote to stdout before its handshake: %s; stdout must stay silent until then: print to stderr, or start it with sdk/serve, which redirects prints; if this is not a plugin at all, correct its command", strings.Join(shown, " "))
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// failure returns why the handshake failed, nil when the runner does not know.
func (r *runner) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stdout gives go-plugin the handshake line, then the end.
func (r *runner) Stdout() io.ReadCloser { return r.lineOut }

// Stderr gives go-plugin nothing.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

// Name is for go-plugin's own log lines.
func (r *runner) Name() string { return r.name }

// Diagnose adds nothing: failure has the words.
func (r *runner) Diagnose(context.Context) string { return "" }

// Wait returns when the process has ended, whoever holds its pipes.
func (r *runner) Wait(ctx context.Context) error {
	select {
	case <-r.process.Load().Exited():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the process group.
func (r *runner) Kill(context.Context) error {
	if p := r.process.Load(); p != nil {
		return p.SignalGroup(syscall.SIGKILL)
	}
	return nil
}

// ID is the pid.
func (r *runner) ID() string {
	if p := r.process.Load(); p != nil {
		return strconv.Itoa(p.PID)
	}
	return ""
}

// PluginToHost changes nothing: both live on one machine.
func (*runner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (*runner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
