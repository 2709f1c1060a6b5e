package pluginhost

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/border"
)

// laneSockets passes a process a socket for each lane, over one that it inherits.
type laneSockets struct {
	control *net.UnixConn
	child   *os.File // the process's end
	once    sync.Once
}

func newLaneSockets() (*laneSockets, error) {
	ours, theirs, err := socketPair(true)
	if err != nil {
		return nil, fmt.Errorf("making the socket that lanes' sockets are passed over: %w", err)
	}
	control, err := connOf(ours)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the socket that lanes' sockets are passed over: %w", err), theirs.Close())
	}
	return &laneSockets{control: control, child: theirs}, nil
}

// open makes a lane's socket, passes one end to the process under the lane's epoch, and returns the other.
func (s *laneSockets) open(epoch uint64) (_ net.Conn, err error) {
	ours, theirs, err := socketPair(false)
	if err != nil {
		return nil, fmt.Errorf("making a lane's socket: %w", err)
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	conn, err := connOf(ours)
	if err != nil {
		return nil, fmt.Errorf("making a lane's socket: %w", err)
	}
	err = border.Widen(conn)
	if err == nil {
		err = s.pass(epoch, theirs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("passing a lane's socket to the plugin: %w", err), conn.Close())
	}
	return conn, nil
}

func (s *laneSockets) pass(epoch uint64, socket *os.File) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(openTimeout)); err != nil {
		return err
	}
	_, _, err := s.control.WriteMsgUnix(binary.BigEndian.AppendUint64(nil, epoch), rights(socket), nil)
	return err
}

// close may be called more than once, and on none.
func (s *laneSockets) close() (err error) {
	if s == nil {
		return nil
	}
	s.once.Do(func() { err = errors.Join(s.control.Close(), s.child.Close()) })
	return err
}

// connOf takes a socket's file over.
func connOf(f *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a socket is a %T", conn), conn.Close())
	}
	return unix, nil
}

// takesSockets tells whether the process takes lanes over sockets of their own.
func (g *generation) takesSockets() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sockets != nil && slices.Contains(g.about.GetFeatures(), border.FeatureSockets)
}

// attach gives the lane a socket for its frames. It is closed when the lane ends.
func (l *Lane) attach(ctx context.Context) error {
	conn, err := l.gen.sockets.open(l.epoch)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // nobody uses it any more
	l.frames, l.socket = l.gen.host.link.Pipe(conn), true
	return nil
}
