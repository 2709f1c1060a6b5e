package process

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
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

func fork(spec *Spec, stdout, stderr *os.File) (*os.Process, int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, -1, err
	}
	defer null.Close() //nolint:errcheck // read-only; nothing can be lost
	files := append([]*os.File{null, stdout, stderr}, spec.ExtraFiles...)
	path, release, err := spec.Executable.execPath(&files)
	if err != nil {
		return nil, -1, err
	}
	defer release()
	pidfd := -1
	proc, err := os.StartProcess(path, spec.Args, &os.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: files,
		Sys: &syscall.SysProcAttr{
			Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd,
			UseCgroupFD: spec.CgroupFD != 0, CgroupFD: spec.CgroupFD,
		},
	})
	if err != nil {
		// The path in the error is a /proc name that tells an operator nothing.
		if wrapped, ok := errors.AsType[*os.PathError](err); ok {
			err = wrapped.Err
		}
		return nil, -1, err
	}
	return proc, pidfd, nil
}

// execPath names the opened file for exec. A program goes by a high descriptor that closes on exec, so the child
// keeps nothing. A script's interpreter has to open the file again, so its descriptor stays open in the child: the
// script sees /dev/fd/N as its own name.
func (e *Executable) execPath(files *[]*os.File) (string, func(), error) {
	if e.Script {
		*files = append(*files, e.file)
		return fmt.Sprintf("/proc/self/fd/%d", len(*files)-1), func() {}, nil
	}
	fd, err := unix.FcntlInt(e.file.Fd(), unix.F_DUPFD_CLOEXEC, 100)
	if err != nil {
		return "", nil, fmt.Errorf("duplicating the binary's descriptor: %w", err)
	}
	high := os.NewFile(uintptr(fd), e.Path)
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { _ = high.Close() }, nil
}
