package process

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Process is a started child and its group. Safe for concurrent use.
type Process struct {
	Stdout *os.File // read ends; the reader closes them
	Stderr *os.File
	PID    int
	Since  time.Time

	proc   *os.Process
	pidfd  *os.File
	exited chan struct{}
	exit   Exit // set before exited is closed

	mu     sync.Mutex
	reaped bool // the pid may belong to somebody else
}

// Exit tells how a process ended.
type Exit struct {
	Code   int            // -1 when a signal ended it
	Signal syscall.Signal // 0 when it ended by itself
	At     time.Time
}

// String is for people: "exit status 2", "killed by signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

func newProcess(proc *os.Process, pidfd int, stdout, stderr *os.File) *Process {
	p := &Process{
		Stdout: stdout, Stderr: stderr, PID: proc.Pid, Since: time.Now(),
		proc: proc, exited: make(chan struct{}),
	}
	p.pidfd = pollable(pidfd)
	go p.wait()
	return p
}

// Exited is closed when the process has ended, its group has been killed and its pid has been released.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit tells how it ended; meaningful after Exited is closed.
func (p *Process) Exit() Exit { return p.exit }

// Signal sends sig to the process alone. A process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error { return p.signal(p.PID, sig) }

// SignalGroup sends sig to the process and what it has started. A process that has ended is no error.
func (p *Process) SignalGroup(sig syscall.Signal) error { return p.signal(-p.PID, sig) }

func (p *Process) signal(target int, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := kill(target, sig); err != nil {
		return fmt.Errorf("sending %s to process %d: %w", sig, p.PID, err)
	}
	return nil
}

// wait sees the end before the pid is released, so that the group can be killed safely in between.
func (p *Process) wait() {
	p.awaitEnd()
	p.mu.Lock()
	_ = kill(-p.PID, syscall.SIGKILL) // what the process left behind; it is ours, so this cannot be refused
	state, err := p.proc.Wait()
	p.reaped = true
	p.mu.Unlock()
	p.exit = exitOf(state, err)
	if p.pidfd != nil {
		_ = p.pidfd.Close() // nothing was written to it
	}
	close(p.exited)
	p.reapGroup()
}

func exitOf(state *os.ProcessState, err error) Exit {
	e := Exit{Code: -1, At: time.Now()}
	if err != nil {
		return e
	}
	e.Code = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	return e
}
