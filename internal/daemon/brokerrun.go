package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/lifecycle"
)

// BrokerOptions is what RunBroker needs of its surroundings.
type BrokerOptions struct {
	Broker    *config.Embedded
	Log       io.Writer
	LogConfig config.Log
	Out       io.Writer // what a person is told at the start and the end
	Version   string
	// Signals brings SIGINT and SIGTERM. The first stops; a second one ends at once.
	Signals <-chan os.Signal
}

// RunBroker runs a broker alone and returns when it has stopped: nil after a clean end. Errors carry their exit code. The end
// of ctx is a first signal.
func RunBroker(ctx context.Context, o BrokerOptions) error {
	logging, err := newLogging(o.Log, o.LogConfig, nil)
	if err != nil {
		return err
	}
	b, err := startEmbedded(ctx, o.Broker, "", nil, logging.Logger)
	if err != nil {
		return fmt.Errorf("starting the broker: %w", err)
	}
	b.introduce(o.Out, o.Version)
	asked := waitForStop(ctx, o.Signals, func() { b.readAgain(logging.Logger) })
	stopped := background(b.Close)
	for {
		select {
		case err := <-stopped:
			if err != nil {
				return fmt.Errorf("stopping the broker: %w", err)
			}
			if o.Broker.DataDir == "" {
				fmt.Fprintln(o.Out, "stopped     what was in memory is gone")
			} else {
				fmt.Fprintln(o.Out, "stopped     all is stored in", o.Broker.DataDir)
			}
			return nil
		case s := <-o.Signals:
			if number, ok := asked.Second(s, time.Now()); ok {
				return exitcode.With(exitcode.Signaled(int(number)), fmt.Errorf("stopped at once by a second signal (%s)", s))
			}
		}
	}
}

// waitForStop waits for the signal that stops, and calls again for each SIGHUP.
func waitForStop(ctx context.Context, signals <-chan os.Signal, again func()) lifecycle.Stop {
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGHUP {
				return lifecycle.Begin(s, time.Now())
			}
			again()
		case <-ctx.Done():
			return lifecycle.Begin(syscall.SIGTERM, time.Now())
		}
	}
}

// readAgain reads who is let in, and tells how that went.
func (b *embedded) readAgain(log *slog.Logger) {
	if err := b.read(); err != nil {
		log.Error("reload refused; what was read before stays in force", "error", err)
		return
	}
	log.Info("reload applied", "access", b.describe())
}

// introduce tells a person where the broker is and what clients write.
func (b *embedded) introduce(out io.Writer, version string) {
	at := b.address()
	fmt.Fprintf(out, "streamd broker %s\n", strings.TrimPrefix(version, "streamd "))
	fmt.Fprintf(out, "listening   %s, name server and broker\n", b.listening())
	fmt.Fprintf(out, "data        %s\n", b.data())
	fmt.Fprintf(out, "access      %s\n", b.describe())
	fmt.Fprintf(out, "clients     name_servers: [%q]   or NAMESRV_ADDR=%s\n", at, at)
}
