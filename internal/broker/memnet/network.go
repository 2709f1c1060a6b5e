package memnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// firstPort is where the numbering of ports that nobody asked for starts, apart from the usual well-known ones.
const firstPort = 40000

// Network holds the listeners of one world. The zero value is ready. Two Networks know nothing of each other.
type Network struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	lastPort  uint16
}

// Listen opens a listener on address ("host:port", numeric; port 0 takes a free one). An address that is taken is
// refused with EADDRINUSE.
func (n *Network) Listen(address string) (net.Listener, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("listening in memory on %q: %w", address, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), n.nextPortLocked())
	}
	if _, taken := n.listeners[addr]; taken {
		return nil, &net.OpError{Op: "listen", Net: "memory", Addr: tcpAddr(addr), Err: syscall.EADDRINUSE}
	}
	if n.listeners == nil {
		n.listeners = make(map[netip.AddrPort]*listener)
	}
	l := &listener{network: n, addr: addr, accepts: make(chan net.Conn, backlog), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to the listener at address. Nobody listening there is ECONNREFUSED, as with TCP.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dialing %q in memory: %w", address, err)
	}
	n.mu.Lock()
	l := n.listeners[addr]
	local := netip.AddrPortFrom(addr.Addr(), n.nextPortLocked())
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: tcpAddr(addr), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	client, server := Pipe(local, addr)
	select {
	case l.accepts <- server:
		return client, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: tcpAddr(addr), Err: ctx.Err()}
	}
}

// DialContext is Dial in the form that net.Dialer has; network is not looked at.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	return n.Dial(ctx, address)
}

func (n *Network) nextPortLocked() uint16 {
	if n.lastPort < firstPort {
		n.lastPort = firstPort
	}
	n.lastPort++
	return n.lastPort
}

func (n *Network) forget(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[l.addr] == l {
		delete(n.listeners, l.addr)
	}
}

func tcpAddr(addr netip.AddrPort) net.Addr { return net.TCPAddrFromAddrPort(addr) }
