package memnet

import (
	"net"
	"net/netip"
	"sync"
)

// backlog is how many dialed connections may wait to be accepted, as in listen(2).
const backlog = 128

type listener struct {
	network *Network
	addr    netip.AddrPort
	accepts chan net.Conn
	once    sync.Once
	done    chan struct{}
}

// Accept waits for the next connection; net.ErrClosed after Close.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepts:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "memory", Addr: tcpAddr(l.addr), Err: net.ErrClosed}
	}
}

// Close frees the address and cuts the connections that nobody accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.forget(l)
		close(l.done)
	})
	for {
		select {
		case c := <-l.accepts:
			if err := c.Close(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// Addr is where the listener can be dialed.
func (l *listener) Addr() net.Addr { return tcpAddr(l.addr) }
