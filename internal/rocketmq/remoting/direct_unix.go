//go:build unix

package remoting

import (
	"net"
	"syscall"
)

// directWriter writes to a plain TCP socket without ever waiting for it. Only whoever has claimed the outbox uses it.
type directWriter struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool // made once: it would be an allocation a write
	p    []byte
	n    int
}

// newDirectWriter returns nil for anything but a TCP socket of its own: TLS, and connections in memory, write their own way.
func newDirectWriter(nc net.Conn) *directWriter {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	w := &directWriter{raw: raw}
	w.once = func(fd uintptr) bool {
		w.n, _ = syscall.Write(int(fd), w.p) // the socket does not block; whatever went wrong, the writer meets it too
		return true
	}
	return w
}

// write returns how many bytes the socket took.
func (w *directWriter) write(p []byte) int {
	w.p, w.n = p, 0
	err := w.raw.Write(w.once)
	w.p = nil
	if err != nil {
		return 0
	}
	return max(0, w.n)
}
