package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/streamd/streamd/internal/border"
)

// mostSockets bounds the sockets that came and were not asked for, as when the host gave up opening a lane.
const mostSockets = 64

var errNoSocket = errors.New("the host passes no sockets to this plugin")

// sockets are the lanes' sockets that the host passed and no lane has taken yet, by the lane's generation. A nil one has none.
// It is safe for concurrent use.
type sockets struct {
	mu      sync.Mutex
	came    map[uint64]net.Conn
	changed chan struct{} // closed at the next arrival, or at the end
	ended   error
}

func newSockets() *sockets {
	return &sockets{came: map[uint64]net.Conn{}, changed: make(chan struct{})}
}

// put takes a socket in. Those that nobody asked for are closed before they become many, the oldest first.
func (s *sockets) put(generation uint64, conn net.Conn) (dropped error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.came) >= mostSockets {
		oldest := generation
		for g := range s.came {
			oldest = min(oldest, g)
		}
		if old := s.came[oldest]; old != nil {
			dropped = old.Close()
		}
		delete(s.came, oldest)
	}
	s.came[generation] = conn
	close(s.changed)
	s.changed = make(chan struct{})
	return dropped
}

// end tells those that wait that nothing comes any more.
func (s *sockets) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = fmt.Errorf("the host passes no sockets any more: %w", err)
	close(s.changed)
	s.changed = make(chan struct{})
}

// take waits for the socket of a lane. Whoever takes it closes it.
func (s *sockets) take(ctx context.Context, generation uint64) (net.Conn, error) {
	if s == nil {
		return nil, errNoSocket
	}
	for {
		s.mu.Lock()
		conn, changed, ended := s.came[generation], s.changed, s.ended
		delete(s.came, generation)
		s.mu.Unlock()
		if conn != nil {
			return conn, border.Widen(conn)
		}
		if ended != nil {
			return nil, ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lane's socket: %w", ctx.Err())
		}
	}
}
