package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
)

// portTries is how many ports after the wanted one are tried.
const portTries = 100

// listenNear listens on address, or when its port is taken on the next free one.
func listenNear(ctx context.Context, address string) (net.Listener, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	var lc net.ListenConfig
	for try := range portTries {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port+try)))
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE) || port == 0:
			return nil, exitcode.With(exitcode.Environment, err)
		}
	}
	return nil, exitcode.With(exitcode.Environment, fmt.Errorf("listening on %s: it and the %d ports after it are taken", address, portTries-1))
}

// server is one HTTP listener. Its goroutine ends with Close.
type server struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
}

func serveHTTP(l net.Listener, h http.Handler, log *slog.Logger) *server {
	s := &server{
		http: &http.Server{
			Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, WriteTimeout: time.Minute,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		listener: l, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("an HTTP listener ended", "address", l.Addr().String(), "error", err)
		}
	}()
	return s
}

// closeTimeout bounds the wait for requests under way at the end.
const closeTimeout = time.Second

// Close lets requests end for a moment, and cuts off what is left.
func (s *server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.done
	return err //nolint:wrapcheck // the daemon says what it closed
}

// recordAddress writes the admin address where tools find it. Written aside and renamed, so that nobody reads half.
func recordAddress(stateDir, address string) error {
	path := filepath.Join(stateDir, "admin.addr")
	if err := os.WriteFile(path+".new", []byte(address+"\n"), 0o600); err != nil {
		return fmt.Errorf("recording the admin address: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("recording the admin address: %w", err)
	}
	return nil
}
