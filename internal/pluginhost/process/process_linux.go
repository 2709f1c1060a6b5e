package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pollable makes a file of a pidfd; nil when the kernel gave none.
func pollable(pidfd int) *os.File {
	if pidfd < 0 || unix.SetNonblock(pidfd, true) != nil {
		return nil
	}
	return os.NewFile(uintptr(pidfd), "pidfd")
}

// kill sends sig; that nobody is there any more is no error.
func kill(target int, sig syscall.Signal) error {
	if err := unix.Kill(target, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err //nolint:wrapcheck // the caller says to whom
	}
	return nil
}

// awaitEnd returns when the process is a zombie. The pidfd is polled by the runtime, so no thread is held.
func (p *Process) awaitEnd() {
	if p.pidfd != nil {
		if raw, err := p.pidfd.SyscallConn(); err == nil {
			err = raw.Read(func(fd uintptr) bool { return ended(unix.P_PIDFD, int(fd), unix.WNOHANG) })
			if err == nil {
				return
			}
		}
	}
	ended(unix.P_PID, p.PID, 0) // kernels without pollable pidfds: one blocked thread
}

// ended tells whether a child has ended, without releasing its pid.
func ended(kind, id, flags int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || info.Signo != 0
	}
}

// reapGroup collects grandchildren whose parent we have become (as pid 1 of a container); otherwise there are none.
func (p *Process) reapGroup() {
	for {
		_, err := unix.Wait4(-p.PID, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
