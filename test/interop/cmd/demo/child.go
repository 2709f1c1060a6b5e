package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is a process whose lines are followed. It dies with the demo.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when it has ended and its output is read
	err   error         // how it ended; valid after done
}

// start runs a command in a process group of its own, so that Ctrl-C reaches the demo alone. line gets each line of its
// output, on one goroutine.
func start(name string, line func(string), command string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(command, args...), done: make(chan struct{})} //nolint:noctx // ended by stop and kill
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.cmd.Stdout, c.cmd.Stderr = w, w
	if c.stdin, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
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

// stop asks the child to end and waits for it; after grace it is killed, which is an error.
func (c *child) stop(grace time.Duration) error {
	if c.cmd.Process.Signal(syscall.SIGTERM) != nil { // it has ended already
		<-c.done
		return c.err
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.done:
		return c.err
	case <-t.C:
		c.kill()
		return fmt.Errorf("%s did not end within %s", c.name, grace)
	}
}

// kill ends the child's process group at once and waits.
func (c *child) kill() {
	select {
	case <-c.done: // its number may be another's by now
		return
	default:
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
	<-c.done
}
