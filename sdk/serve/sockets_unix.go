//go:build unix

package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/streamd/streamd/internal/border"
)

// openSockets begins to take the sockets that the host passes, until the process ends; nil when it passes none, or when what
// started the plugin did not hand the descriptor on: lanes go over gRPC then.
func openSockets(logger *slog.Logger) (*sockets, error) {
	value := os.Getenv(border.EnvLanesFD)
	if value == "" {
		return nil, nil //nolint:nilnil // to pass none is usual
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, fmt.Errorf("reading %s=%q: %w", border.EnvLanesFD, value, err)
	}
	// The number may be another file's by now, so it is not touched before it is known to be the socket.
	if kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil || kind != syscall.SOCK_SEQPACKET {
		logger.Warn("the host's descriptor for lanes' sockets did not arrive, lanes go over gRPC: does something that starts the plugin close what it inherits?",
			"variable", border.EnvLanesFD, "descriptor", fd, "error", err)
		return nil, nil //nolint:nilnil // as when it passes none
	}
	control, err := socketOf(fd)
	if err != nil {
		return nil, fmt.Errorf("opening the socket that lanes' sockets come over: %w", err)
	}
	s := newSockets()
	go func() { s.end(s.receive(control, logger)) }()
	return s, nil
}

// socketOf takes a descriptor over.
func socketOf(fd int) (*net.UnixConn, error) {
	syscall.CloseOnExec(fd) // what the author starts must not hold it
	f := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("it is a %T", conn), conn.Close())
	}
	return unix, nil
}

// receive puts what comes until the host is gone.
func (s *sockets) receive(control *net.UnixConn, logger *slog.Logger) error {
	generation, rights := make([]byte, 8), make([]byte, syscall.CmsgSpace(4))
	for {
		n, extra, _, _, err := control.ReadMsgUnix(generation, rights)
		if err != nil {
			return err
		}
		if n == 0 && extra == 0 {
			return errors.New("the host is gone")
		}
		conn, err := passed(rights[:extra])
		if err != nil || n != len(generation) {
			logger.Error("a lane's socket cannot be used", "bytes", n, "error", err)
			continue
		}
		if err := s.put(binary.BigEndian.Uint64(generation), conn); err != nil {
			logger.Warn("closing a lane's socket that was not asked for", "error", err)
		}
	}
}

// passed is the one socket of a control message.
func passed(rights []byte) (net.Conn, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("reading what was passed: %w", err)
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("%d things were passed, want a socket", len(messages))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(fmt.Errorf("%d descriptors were passed, want one", len(fds)), err)
	}
	return socketOf(fds[0])
}
