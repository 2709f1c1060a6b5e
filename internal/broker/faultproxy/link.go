package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// link is one client's connection with the one to the target.
type link struct {
	proxy          *Proxy
	client, server *end
	once           sync.Once
	done           chan struct{}

	mu       sync.Mutex
	requests map[opaqueKey]wire.RequestCode // asked and not answered yet
}

// opaqueKey tells requests apart: both ends number theirs on their own.
type opaqueKey struct {
	from   Direction
	opaque int32
}

// end is one socket. A refusal is written to it by the other direction's goroutine, hence the mutex.
type end struct {
	conn net.Conn
	mu   sync.Mutex
}

func (e *end) write(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.conn.Write(b)
	return err
}

// finish ends the direction to the peer, or the socket where halves cannot be closed.
func (e *end) finish() error {
	if half, ok := e.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return e.conn.Close()
}

func newLink(p *Proxy, client, server net.Conn) *link {
	l := &link{proxy: p, client: &end{conn: client}, done: make(chan struct{}), requests: make(map[opaqueKey]wire.RequestCode)}
	if server != nil {
		l.server = &end{conn: server}
	}
	return l
}

func (l *link) run() {
	defer l.close()
	var both sync.WaitGroup
	both.Go(func() { l.pump(ToBroker, l.client, l.server) })
	both.Go(func() { l.pump(ToClient, l.server, l.client) })
	both.Wait()
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		ends := []*end{l.client, l.server}
		for _, e := range ends {
			if e == nil {
				continue
			}
			if err := e.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				l.proxy.config.Logger.Debug("closing a connection", "error", err.Error())
			}
		}
	})
}

// errEnded ends a pump on purpose.
var errEnded = errors.New("ended by a rule")

// pump forwards one direction. An end of stream is passed on as such; anything else ends the connection.
func (l *link) pump(d Direction, from, to *end) {
	err := l.forward(d, from, to)
	switch {
	case errors.Is(err, io.EOF):
		if to.finish() != nil {
			l.close()
		}
	default:
		l.close()
	}
}

func (l *link) forward(d Direction, from, to *end) error {
	in := bufio.NewReader(from.conn)
	var prefix [wire.PrefixSize]byte
	for {
		if n, err := io.ReadFull(in, prefix[:]); err != nil {
			if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) { // Less than a prefix, then the end: it passes as it is.
				return errors.Join(to.write(prefix[:n]), io.EOF)
			}
			return err
		}
		length, err := wire.FrameLength(prefix[:])
		if err != nil {
			return l.passThrough(in, to, prefix[:])
		}
		frame := make([]byte, wire.PrefixSize+length)
		copy(frame, prefix[:])
		n, err := io.ReadFull(in, frame[wire.PrefixSize:])
		if err != nil { // Half a frame, then the end: it passes as it is.
			return errors.Join(to.write(frame[:wire.PrefixSize+n]), io.EOF)
		}
		if !l.proxy.gate.wait(l.done) {
			return net.ErrClosed
		}
		if err := l.pass(d, frame, from, to); err != nil {
			return err
		}
	}
}

// passThrough forwards what is not made of frames.
func (l *link) passThrough(in io.Reader, to *end, first []byte) error {
	if err := to.write(first); err != nil {
		return err
	}
	if _, err := io.Copy(to.conn, in); err != nil {
		return err
	}
	return io.EOF
}

// pass forwards one frame, or lets the first rule that it matches act on it.
func (l *link) pass(d Direction, frame []byte, from, to *end) error {
	f := l.describe(d, frame)
	if i := l.proxy.rules.find(f); i != nil {
		return i.rule.Do(&passage{link: l, frame: f, from: from, to: to})
	}
	return to.write(frame)
}

// describe reads a frame's header and finds out which request an answer belongs to.
func (l *link) describe(d Direction, raw []byte) Frame {
	f := Frame{Direction: d, Raw: raw}
	if f.Command.Decode(raw[wire.PrefixSize:]) != nil {
		return f
	}
	f.Readable = true
	l.mu.Lock()
	defer l.mu.Unlock()
	if !f.Command.IsResponse() {
		f.Code = f.Command.RequestCode()
		if !f.Command.IsOneway() {
			l.requests[opaqueKey{d, f.Command.Opaque}] = f.Code
		}
		return f
	}
	k := opaqueKey{d.reverse(), f.Command.Opaque}
	f.Code = l.requests[k]
	delete(l.requests, k)
	return f
}
