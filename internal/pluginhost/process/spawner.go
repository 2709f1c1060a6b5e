package process

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
)

// ErrClosed says that the Spawner was closed.
var ErrClosed = errors.New("the host is stopping: no process is started any more")

// Spec says what to start.
type Spec struct {
	Executable *Executable
	Args       []string // argv; [0] is what the process sees as its name
	Env        []string
	Dir        string     // "" = the host's
	ExtraFiles []*os.File // descriptors 3, 4, ... of the child
	// CgroupFD is the open directory of the cgroup to start in; 0 = the host's own.
	CgroupFD int
}

// Spawner forks children from one OS thread that it keeps. Safe for concurrent use.
type Spawner struct {
	requests chan request
	quit     chan struct{}
	once     sync.Once
	done     chan struct{}
}

type request struct {
	spec  *Spec
	reply chan<- reply
}

type reply struct {
	process *Process
	err     error
}

// NewSpawner starts the thread. Close it when all its processes are gone.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request), quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// Close releases the thread. A process that still ran would get the parent-death signal when the thread ends.
func (s *Spawner) Close() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}

// Start forks and executes. The process has its own group and dies with the host.
func (s *Spawner) Start(spec *Spec) (*Process, error) {
	answer := make(chan reply, 1)
	select {
	case s.requests <- request{spec, answer}:
		r := <-answer
		return r.process, r.err
	case <-s.done:
		return nil, ErrClosed
	}
}

// run never unlocks its thread, so the thread ends with it and is never handed to other goroutines.
func (s *Spawner) run() {
	defer close(s.done)
	goruntime.LockOSThread()
	for {
		select {
		case r := <-s.requests:
			p, err := start(r.spec)
			r.reply <- reply{p, err}
		case <-s.quit:
			return
		}
	}
}

func start(spec *Spec) (*Process, error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the output pipe: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the log pipe: %w", err), outR.Close(), outW.Close())
	}
	proc, pidfd, err := fork(spec, outW, errW)
	closed := errors.Join(outW.Close(), errW.Close())
	if err = errors.Join(err, closed); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", spec.Executable.Path, err), outR.Close(), errR.Close())
	}
	return newProcess(proc, pidfd, outR, errR), nil
}
