package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one child with its output kept and followed.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}
	err   error

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line
}

// spawn starts cmd; it dies with this process. Lines of stdout and stderr are kept.
func spawn(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{}), more: make(chan struct{})}
	// The signal comes when the thread ends that started the child: Go keeps its threads, so that is this process's end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	_ = w.Close() // the child has its own copy
	read := make(chan struct{})
	go func() {
		defer close(read)
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), 4<<20)
		for s.Scan() {
			p.add(s.Text())
		}
		_ = r.Close()
	}()
	go func() {
		p.err = cmd.Wait()
		<-read
		close(p.done)
	}()
	return p, nil
}

func (p *Process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	close(p.more)
	p.more = make(chan struct{})
}

// Lines returns what the process printed so far.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// WaitLine waits for a line that ok accepts, looking from the first one on.
func (p *Process) WaitLine(ctx context.Context, ok func(string) bool) (string, error) {
	for from := 0; ; {
		p.mu.Lock()
		lines, more := p.lines[from:], p.more
		p.mu.Unlock()
		for _, l := range lines {
			if ok(l) {
				return l, nil
			}
		}
		from += len(lines)
		select {
		case <-more:
		case <-p.done:
			if p.count() == from {
				return "", fmt.Errorf("%s ended (%v) before the line was printed; last lines:\n%s", p.Name, p.err, p.tail()) //nolint:errorlint // nil when it ended well
			}
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for a line of %s: %w; last lines:\n%s", p.Name, ctx.Err(), p.tail())
		}
	}
}

func (p *Process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

func (p *Process) tail() string {
	lines := p.Lines()
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends sig to the process alone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill ends the process group at once (SIGKILL) and waits for it.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // gone already is as good
	<-p.done
}

// Stop asks the process to end (SIGTERM), kills it after grace, and returns how it ended.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %s after SIGTERM; last lines:\n%s", p.Name, grace, p.tail())
	}
	return p.err
}

// Done is closed when the process has ended and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended; valid after Done.
func (p *Process) Err() error { return p.err }

// Write sends a line to the process's standard input.
func (p *Process) Write(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// CPU returns user plus system time of an ended process.
func (p *Process) CPU() time.Duration {
	s := p.cmd.ProcessState
	return s.UserTime() + s.SystemTime()
}

// Start runs any command with its output kept, for peers and for streamd itself.
func Start(name string, cmd *exec.Cmd) (*Process, error) { return spawn(name, cmd) }

func writeFile(dir, name, content string) (string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}
