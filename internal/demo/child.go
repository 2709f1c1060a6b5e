package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// child is a process whose lines are followed. It dies with the demo.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output is read
	err  error         // how it ended; valid after done
}

// start runs a command in a process group of its own, so that Ctrl-C reaches the demo alone. line gets each line of its
// output, on one goroutine.
func start(name string, environ []string, line func(string), command string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(command, args...), done: make(chan struct{})} //nolint:noctx // ended by stop and kill
	c.cmd.Env = append(os.Environ(), environ...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.cmd.Stdout, c.cmd.Stderr = w, w
	err = c.cmd.Start()
	_ = w.Close() // the child has its own copy
	if err != nil {
		_ = r.Close() // nobody writes
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), 4<<20)
		for s.Scan() {
			line(s.Text())
		}
		_ = r.Close() // read to its end
	}()
	go func() {
		c.err = c.cmd.Wait()
		<-read
		close(c.done)
	}()
	return c, nil
}

// ended tells whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop asks the child to end and waits for it. When ctx ends first it is killed, which is an error.
func (c *child) stop(ctx context.Context) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", c.name, err)
	}
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("%s ended with %w", c.name, c.err)
		}
		return nil
	case <-ctx.Done():
		c.kill()
		return fmt.Errorf("stopping %s: %w", c.name, context.Cause(ctx))
	}
}

// kill ends the child's process group at once and waits.
func (c *child) kill() {
	if c.ended() { // its number may be another's by now
		return
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
	<-c.done
}
