package remote

import (
	"errors"
	"log/slog"
	"net"
	"time"
)

// acceptPause is how long to wait after a failed accept, which means that descriptors or memory have run out: the
// connection is lost, the listener is not.
const acceptPause = 50 * time.Millisecond

// Accept gives each connection of l to serve, which must not block, until l is closed. A pause after a failed accept ends
// when stopping is closed.
func Accept(l net.Listener, log *slog.Logger, stopping <-chan struct{}, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err == nil {
			serve(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		log.Warn("accepting a connection", "address", l.Addr().String(), "error", err.Error())
		pause := time.NewTimer(acceptPause)
		select {
		case <-pause.C:
		case <-stopping:
			pause.Stop()
			return
		}
	}
}
