package pluginhost

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// socketPair makes two connected sockets, for whole messages or for a stream of bytes.
func socketPair(messages bool) (ours, theirs *os.File, err error) {
	kind := unix.SOCK_STREAM
	if messages {
		kind = unix.SOCK_SEQPACKET
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "plugin"), nil
}

func rights(f *os.File) []byte { return unix.UnixRights(int(f.Fd())) }
