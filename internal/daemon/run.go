package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	goruntime "runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/lifecycle"
	"github.com/streamd/streamd/internal/pluginhost"
)

// Options is what Run needs of its surroundings.
type Options struct {
	Load       func() (*config.Loaded, error) // called at the start and at each reload
	Log        io.Writer
	Version    string
	Executable string // streamd's own binary, which serves the built-in strategies
	// Signals brings SIGINT and SIGTERM (stop) and SIGHUP (reload).
	Signals <-chan os.Signal
}

// tick is how often the loop shows that it lives, looks for readiness, and tells the progress of a drain.
const tick = 250 * time.Millisecond

// errStopped is the cause that ends a start or a reload when a stop is asked for.
var errStopped = errors.New("streamd is stopping")

// Run starts streamd and returns when it has stopped: nil after a clean drain. Errors carry their exit code; a *LoggedError
// among them stands in the log already. The end of ctx is a first signal.
func Run(ctx context.Context, o Options) error {
	loaded, err := o.Load()
	if err != nil {
		return err
	}
	logging, err := newLogging(o.Log, loaded.Config.Log, loaded.Secrets)
	if err != nil {
		return err
	}
	heap := ballast()
	defer goruntime.KeepAlive(heap)
	d := &daemon{options: o, logging: logging, log: logging.Logger, started: time.Now(), asks: make(chan chan<- error)}
	d.loaded.Store(loaded)
	d.beat.Store(d.started.UnixNano())
	d.warnOf(loaded)
	return logging.cleanErr(d.run(ctx))
}

// warnOf tells what of a config only the brokers can judge.
func (d *daemon) warnOf(loaded *config.Loaded) {
	for _, w := range loaded.Warnings {
		d.log.Warn("the config may be wrong", "problem", w.String())
	}
}

// run is the loop: it starts, waits for signals, and stops.
func (d *daemon) run(ctx context.Context) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	starting := background(func() error { return d.start(work) })
	var reloading <-chan error
	again := false         // a SIGHUP came during a reload
	var asked chan<- error // who asked for the reload under way, other than by a signal
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case err := <-starting:
			if starting = nil; err != nil {
				return d.abandon(err) //nolint:contextcheck // what was taken is given back, whatever ended the start
			}
			d.up.Store(true) // before the log says so: whoever reads it may ask for the status at once
			d.log.Info("started", "pid", os.Getpid(), "version", d.options.Version, "admin", d.adminAddress())
		case err := <-reloading:
			reloading = nil
			d.reloaded(err)
			if asked != nil {
				asked <- err // has room
				asked = nil
			}
			if again {
				again, reloading = false, background(func() error { return d.reload(work) })
			}
		case s := <-d.options.Signals:
			switch {
			case s != syscall.SIGHUP:
				return d.stop(s, cancel, starting, reloading) //nolint:contextcheck // a stop has its own limit
			case starting != nil:
				d.log.Warn("reload is refused while streamd starts")
			case reloading != nil:
				again = true
			default:
				reloading = background(func() error { return d.reload(work) })
			}
		case answer := <-d.asks:
			if starting != nil || reloading != nil {
				answer <- errBusy
				continue
			}
			asked, reloading = answer, background(func() error { return d.reload(work) })
		case <-ctx.Done():
			return d.stop(syscall.SIGTERM, cancel, starting, reloading) //nolint:contextcheck // as above
		case <-ticker.C:
			d.alive()
		}
	}
}

func background(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// alive shows that the loop runs, and notes readiness once.
func (d *daemon) alive() {
	d.beat.Store(time.Now().UnixNano())
	if !d.up.Load() || d.ready.Load() {
		return
	}
	if st := d.engine.Status(); st.Ready() {
		d.ready.Store(true)
		d.log.Info("ready: every stream is assigned and its handler answers", "after", time.Since(d.started).Round(time.Millisecond).String())
	}
}

// reloaded remembers for the status how a reload went, and then tells it: whoever reads the log may ask for the status at once.
func (d *daemon) reloaded(err error) {
	result := &reloadResult{Time: time.Now()}
	unchanged := errors.Is(err, errUnchanged)
	if err != nil && !unchanged {
		result.Error = err.Error()
	}
	d.lastReload.Store(result)
	switch {
	case unchanged:
		d.log.Info("reload: the config is unchanged")
	case err != nil:
		d.log.Error("reload refused; the running config stays in force", "error", err)
	default:
		d.log.Info("reload applied")
	}
}

// abandon releases what a failed start took.
func (d *daemon) abandon(err error) error {
	return errors.Join(err, d.release(context.Background()))
}

// stop drains. A second signal ends at once: the caller exits, and plugins die with this process.
func (d *daemon) stop(s os.Signal, cancel context.CancelCauseFunc, starting, reloading <-chan error) error {
	timeout := d.loaded.Load().Config.ShutdownTimeout
	d.stopping.Store(true)
	d.log.Info("draining; a second signal stops at once", "signal", s.String(), "timeout", timeout.String())
	cancel(errStopped)
	begin := time.Now()
	asked := lifecycle.Begin(s, begin)
	stopped := background(func() error {
		for _, running := range []<-chan error{starting, reloading} {
			if running == nil {
				continue
			}
			if err := <-running; err != nil { // ends soon: its context has ended
				d.log.Debug("what was under way has ended", "error", err)
			}
		}
		ctx, end := context.WithTimeoutCause(context.Background(), timeout, pluginhost.Waited(timeout))
		defer end()
		return d.release(ctx)
	})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 1; ; {
		select {
		case err := <-stopped:
			return d.concluded(err, time.Since(begin))
		case again := <-d.options.Signals:
			if number, ok := asked.Second(again, time.Now()); ok {
				return exitcode.With(exitcode.Signaled(int(number)), fmt.Errorf("stopped at once by a second signal (%s); what was in flight is delivered again", again))
			}
		case <-ticker.C:
			d.beat.Store(time.Now().UnixNano())
			if n++; n%4 == 0 {
				d.progress()
			}
		}
	}
}

func (d *daemon) concluded(err error, took time.Duration) error {
	if err != nil {
		d.log.Error("stopped, not cleanly", "error", err, "after", took.Round(time.Millisecond).String())
		return &LoggedError{fmt.Errorf("stopping: %w", err)}
	}
	d.log.Info("stopped", "after", took.Round(time.Millisecond).String())
	return nil
}

// LoggedError is an error of Run that the log has told.
type LoggedError struct{ err error }

// Error says what the log does.
func (e *LoggedError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *LoggedError) Unwrap() error { return e.err }

// progress tells what a drain waits for.
func (d *daemon) progress() {
	if !d.up.Load() { // the start that is being given up may still set the engine
		return
	}
	st := d.engine.Status()
	for i := range st.Streams {
		s := &st.Streams[i]
		inFlight := 0
		for j := range s.Queues {
			inFlight += s.Queues[j].InFlight
		}
		d.log.Info("draining", "stream", s.Name, "in_flight", inFlight, "settling", s.Settling)
	}
}

// stuckAfter is how long the loop may be silent until livez fails.
const stuckAfter = 30 * time.Second

var errStuck = errors.New("the main loop has shown no sign of life for 30s")

func (d *daemon) aliveErr() error {
	if time.Since(time.Unix(0, d.beat.Load())) > stuckAfter {
		return errStuck
	}
	return nil
}

// unready is why streamd is not ready; "" = it is.
func (d *daemon) unready() string {
	switch {
	case d.stopping.Load():
		return "streamd is stopping"
	case d.ready.Load():
		return ""
	case !d.up.Load():
		return "streamd is starting"
	}
	st := d.engine.Status()
	for i := range st.Streams {
		s := &st.Streams[i]
		switch {
		case !s.Joined:
			return "stream " + s.Name + " has not joined its group" + firstHold(s.Holds)
		case s.Lanes == 0:
			return "stream " + s.Name + " waits for handler " + s.Handler + firstHold(s.Holds)
		case len(s.Assignments) == 0:
			return "stream " + s.Name + " has no assignment yet" + firstHold(s.Holds)
		}
	}
	return "streamd is starting"
}

// reloadResult is how the last reload went.
type reloadResult struct {
	Time  time.Time `json:"time"`
	Error string    `json:"error,omitempty"`
}

// state is what several goroutines read.
type state struct {
	loaded     atomic.Pointer[config.Loaded]
	lastReload atomic.Pointer[reloadResult]
	beat       atomic.Int64 // last sign of life of the loop, in Unix nanoseconds
	up         atomic.Bool  // the start has succeeded: the parts may be read
	ready      atomic.Bool
	stopping   atomic.Bool
	address    atomic.Pointer[string] // of the admin listener
}

func (s *state) adminAddress() string {
	if a := s.address.Load(); a != nil {
		return *a
	}
	return ""
}

var _ slog.Handler = redactor{}
