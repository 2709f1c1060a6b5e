package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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
