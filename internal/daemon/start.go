package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/admin"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/telemetry"
	"github.com/streamd/streamd/runtime"
)

// daemon is one run. What start sets is read by others only after up is set.
type daemon struct {
	state
	options Options
	logging *logging
	log     *slog.Logger
	started time.Time

	// asks are reloads that the admin API wants; each has room for one answer.
	asks chan chan<- error

	telemetry *telemetry.Telemetry
	host      *pluginhost.Host
	plugins   *pluginSet
	brokers   *brokers
	engine    *runtime.Runtime

	releases []release // in the order taken; released in reverse
}

// release gives one thing back. What must be bounded uses ctx.
type release struct {
	what string
	do   func(ctx context.Context) error
}

func (d *daemon) later(what string, do func(ctx context.Context) error) {
	d.releases = append(d.releases, release{what, do})
}

// release gives everything back, the last taken first, and goes on after errors.
func (d *daemon) release(ctx context.Context) error {
	var errs []error
	for _, r := range slices.Backward(d.releases) {
		if err := r.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.what, err))
		}
		d.log.Debug("released", "what", r.what)
	}
	d.releases = nil
	return errors.Join(errs...)
}

// start brings everything up, in the order in which parts need each other.
func (d *daemon) start(ctx context.Context) error {
	c := d.loaded.Load().Config
	if err := check(c); err != nil {
		return err
	}
	lock, err := lockState(c.StateDir)
	if err != nil {
		return c.Written.Place(err, "state_dir") //nolint:wrapcheck // it is the lock's own
	}
	d.later("unlocking state_dir", func(context.Context) error { return lock.Close() })
	if err := d.startTelemetry(ctx, c); err != nil {
		return err
	}
	if err := d.startHost(); err != nil { //nolint:contextcheck // what it makes lives until it is released
		return err
	}
	if err := d.listen(ctx, c); err != nil {
		return err
	}
	if err := d.plugins.startOwn(ctx, d.options.Executable); err != nil {
		return err
	}
	if err := d.plugins.start(ctx, c); err != nil {
		return err
	}
	d.brokers = &brokers{
		log: d.log, tel: d.telemetry, clients: map[string]*rocketmq.Client{}, trusts: map[string]*trust{}, here: map[string]*embedded{},
		plugins: func() []groupview.Plugin { return pluginsOf(d.host) }, traces: newMsgtraces(&c.Telemetry, d.log),
	}
	if err := d.brokers.traces.watch(d.telemetry); err != nil {
		return err
	}
	d.later("closing the clients and embedded brokers", func(ctx context.Context) error { return d.brokers.keep(atLeast(ctx), &config.Config{}) })
	d.tellDev()
	if err := d.brokers.add(ctx, c); err != nil {
		return err
	}
	return d.startEngine(ctx, c)
}

func (d *daemon) startTelemetry(ctx context.Context, c *config.Config) error {
	tc, err := telemetry.WithEnv(telemetryConfig(c, d.options.Version), os.Getenv)
	if err != nil {
		return exitcode.With(exitcode.Usage, fmt.Errorf("setting up telemetry: %w", err))
	}
	d.telemetry, err = telemetry.New(ctx, tc, d.log, d.options.Log)
	if err != nil {
		return fmt.Errorf("setting up telemetry: %w", err)
	}
	d.later("flushing telemetry", func(context.Context) error {
		if err := d.telemetry.Shutdown(); err != nil { //nolint:contextcheck // has its own limit
			d.log.Warn("not all telemetry was exported", "error", err) // no message is worse off for it
		}
		return nil
	})
	return nil
}

func (d *daemon) startHost() error {
	set := &pluginSet{log: d.log, patience: judgeReload, keeper: keeper{learn: d.logging.learn}}
	host, err := pluginhost.New(pluginhost.Config{
		Logger: d.log, Version: d.options.Version, Traces: d.telemetry.Sink(), Described: set.described, Redact: d.logging.clean, Written: set.written,
	})
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	set.host = host
	d.host, d.plugins = host, set
	d.later("stopping the plugins", func(context.Context) error { return host.Close() })
	return nil
}

// listen opens the listeners before anything slow happens, so that a start can be watched.
func (d *daemon) listen(ctx context.Context, c *config.Config) error {
	if c.Admin.Listen != "" {
		l, err := listenNear(ctx, c.Admin.Listen)
		if err != nil {
			return c.Written.Place(advised(fmt.Errorf("opening the admin listener: %w", err), aboutPort(err, "admin.listen", c.Admin.Listen)), "admin", "listen")
		}
		s := serveHTTP(l, admin.Handler(d.adminSources(c)), d.log)
		d.later("closing the admin listener", func(context.Context) error { return s.Close() }) //nolint:contextcheck // has its own limit
		address := l.Addr().String()
		d.address.Store(&address)
		if address != c.Admin.Listen {
			d.log.Info("the admin listener is at another address", "wanted", c.Admin.Listen, "address", address)
		}
		if err := recordAddress(c.StateDir, address); err != nil {
			return c.Written.Place(err, "state_dir") //nolint:wrapcheck // says what it recorded
		}
	}
	if c.Health.Listen == "" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Health.Listen)
	if err != nil {
		err = advised(fmt.Errorf("opening the health listener: %w", err), aboutPort(err, "health.listen", c.Health.Listen))
		return exitcode.With(exitcode.Environment, c.Written.Place(err, "health", "listen"))
	}
	s := serveHTTP(l, admin.HealthHandler(admin.Health{Alive: d.aliveErr, Ready: d.unready}), d.log)
	d.later("closing the health listener", func(context.Context) error { return s.Close() }) //nolint:contextcheck // as above
	return nil
}

func (d *daemon) startEngine(ctx context.Context, c *config.Config) error {
	engine, err := runtime.New(d.engineConfig(c))
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	if err := engine.Start(ctx); err != nil {
		return err //nolint:wrapcheck // the engine says which stream, and why
	}
	d.engine = engine
	d.later("draining", engine.Stop)
	return d.telemetry.Watch(engine.Status, d.host.Status) //nolint:wrapcheck // says what it registers
}

func (d *daemon) engineConfig(c *config.Config) runtime.Config {
	return runtime.Config{
		Streams: streamConfigs(c), Brokers: d.brokers.seams(), Handlers: lanes{d.host},
		Strategies: firstparty.NewStrategies(strategies{d.host}, d.log), Observer: d.brokers.traces.observe(d.telemetry),
		Memory: memoryBudget(c, memoryLimit()), Version: d.options.Version, FailureFile: failureFile(c.StateDir), Offsets: offsets(c, d.log), Logger: d.log,
	}
}

// prepare does what a reload needs before the engine changes: clients of new brokers, plugins and handlers as c says; undo
// takes the plugins' part back. After an error everything is as old says.
func (d *daemon) prepare(ctx context.Context, old, c *config.Config) (next runtime.Config, undo func(context.Context), err error) {
	if err := d.brokers.add(ctx, c); err != nil {
		return next, nil, errors.Join(err, d.brokers.keep(context.WithoutCancel(ctx), old))
	}
	if undo, err = d.plugins.change(ctx, c, old); err != nil {
		return next, nil, errors.Join(err, d.brokers.keep(context.WithoutCancel(ctx), old))
	}
	return d.engineConfig(c), undo, nil
}

// leaveTimeout is what leaving the groups may take even when the drain has used up its time.
const leaveTimeout = 2 * time.Second

// atLeast gives a step at the end of a stop a moment of its own.
func atLeast(ctx context.Context) context.Context {
	if ctx.Err() == nil {
		return ctx
	}
	bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), leaveTimeout, pluginhost.Waited(leaveTimeout))
	context.AfterFunc(bounded, cancel)
	return bounded
}
