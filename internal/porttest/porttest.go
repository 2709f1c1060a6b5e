package porttest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// Reserve returns an address of 127.0.0.1 that is the test's until it ends. Whoever names it may listen there, as often as it likes
// and in any process, as long as it allows the reuse of addresses, which Go does. Nobody else is given the port, for a listener or
// for a connection, and while nobody listens connections to it are refused.
func Reserve(tb testing.TB) string {
	tb.Helper()
	fd, port, err := bind()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			tb.Error(err)
		}
	})
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// bind makes a socket that has a port and does not listen. The kernel leaves it out when it chooses a port.
func bind() (fd, port int, err error) {
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("reserving a port: %w", os.NewSyscallError("socket", err))
	}
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	own, ok := at.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		_ = syscall.Close(fd) // the reservation has failed already
		return 0, 0, fmt.Errorf("reserving a port: %w", os.NewSyscallError("bind", err))
	}
	return fd, own.Port, nil
}
