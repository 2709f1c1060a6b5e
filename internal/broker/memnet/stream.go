package memnet

import (
	"io"
	"net"
	"os"
	"sync"
)

// capacity is how much one direction buffers, about what a socket pair on a loopback takes.
const capacity = 256 << 10

// stream is one direction of a connection: a bounded byte buffer. Whoever waits does so on changed, which is closed at
// the next change; no one ever waits while holding mu.
type stream struct {
	mu        sync.Mutex
	buf       []byte
	finished  bool // the writer is done: EOF after buf
	abandoned bool // the reader is gone: writes fail
	waiters   bool
	changed   chan struct{}
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) read(p []byte, passed func() <-chan struct{}) (int, error) {
	for {
		if isClosed(passed()) {
			return 0, os.ErrDeadlineExceeded
		}
		s.mu.Lock()
		switch {
		case s.abandoned:
			s.mu.Unlock()
			return 0, net.ErrClosed
		case len(p) == 0:
			s.mu.Unlock()
			return 0, nil
		case len(s.buf) > 0:
			n := copy(p, s.buf)
			s.buf = s.buf[n:]
			if len(s.buf) == 0 {
				s.buf = nil
			}
			s.changeLocked()
			s.mu.Unlock()
			return n, nil
		case s.finished:
			s.mu.Unlock()
			return 0, io.EOF
		}
		changed := s.waitLocked()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-passed():
		}
	}
}

func (s *stream) write(p []byte, passed func() <-chan struct{}) (int, error) {
	written := 0
	for {
		if isClosed(passed()) {
			return written, os.ErrDeadlineExceeded
		}
		s.mu.Lock()
		if s.finished || s.abandoned {
			s.mu.Unlock()
			return written, io.ErrClosedPipe
		}
		if room := capacity - len(s.buf); room > 0 && len(p) > 0 {
			n := min(room, len(p))
			s.buf = append(s.buf, p[:n]...)
			p, written = p[n:], written+n
			s.changeLocked()
		}
		if len(p) == 0 {
			s.mu.Unlock()
			return written, nil
		}
		changed := s.waitLocked()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-passed():
		}
	}
}

// finish is the writer's end of the stream.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.changeLocked()
}

// abandon is the reader's end of the stream: what it did not read is lost.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned, s.buf = true, nil
	s.changeLocked()
}

func (s *stream) waitLocked() <-chan struct{} {
	s.waiters = true
	return s.changed
}

func (s *stream) changeLocked() {
	if !s.waiters {
		return
	}
	close(s.changed)
	s.changed, s.waiters = make(chan struct{}), false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
