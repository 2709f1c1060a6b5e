package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/daemon"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
)

// clusterFlags say which RocketMQ a command talks to: by address, or a broker of a config.
type clusterFlags struct {
	servers   []string
	paths     []string
	broker    string
	namespace string
	timeout   time.Duration
	verbose   bool

	once     bool   // nothing is sent a second time by the client itself
	msgtrace string // topic of RocketMQ's own trace of what is sent; empty = none is written
}

func (c *clusterFlags) bind(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	f.StringSliceVarP(&c.servers, "name-server", "n", nil, "name servers, host:port; default: the config's, then NAMESRV_ADDR")
	f.StringArrayVarP(&c.paths, "config", "c", nil, "config whose broker is meant")
	f.StringVar(&c.broker, "broker", "", "name of the broker in the config, or host:port of a name server")
	f.StringVar(&c.namespace, "namespace", "", "namespace of topics and groups, NAMESPACE%NAME on the wire; default: the config's")
	f.DurationVar(&c.timeout, "timeout", timeout, "give up after this time; 0 = never")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "log what the client does, on standard error")
}

var errNoCluster = errors.New("no RocketMQ is named; try -n HOST:9876, -c streamd.yaml, or the environment variable NAMESRV_ADDR")

// target finds the cluster. Addresses given by -n take the place of the config's, whose keys and certificates stay.
func (c *clusterFlags) target(log *slog.Logger) (t rocketmq.Config, err error) {
	t.Logger = log
	switch {
	case len(c.paths) > 0:
		if t, err = c.fromConfig(log); err != nil {
			return t, err
		}
	case c.broker != "":
		t.NameServers = []string{c.broker}
	case os.Getenv("NAMESRV_ADDR") != "":
		t.NameServers = []string{os.Getenv("NAMESRV_ADDR")}
	case len(c.servers) == 0:
		return t, exitcode.With(exitcode.Usage, errNoCluster)
	}
	if len(c.servers) > 0 {
		t.NameServers = c.servers
	}
	if c.namespace != "" {
		t.Namespace = c.namespace
	}
	if _, err := rocketmq.ParseNameServers(t.NameServers...); err != nil {
		return t, exitcode.With(exitcode.Usage, err)
	}
	return t, nil
}

func (c *clusterFlags) fromConfig(log *slog.Logger) (rocketmq.Config, error) {
	loaded, err := config.Load(config.Options{Paths: c.paths})
	if err != nil {
		return rocketmq.Config{}, err
	}
	brokers := loaded.Config.Brokers
	if c.broker == "" && len(brokers) == 1 {
		return daemon.ClientConfig(&brokers[0], log)
	}
	i := slices.IndexFunc(brokers, func(b config.Broker) bool { return b.Name == c.broker })
	if i < 0 {
		var names []string
		for _, b := range brokers {
			names = append(names, b.Name)
		}
		return rocketmq.Config{}, exitcode.With(exitcode.Usage, fmt.Errorf("--broker %q is none of the config's brokers %v", c.broker, names))
	}
	return daemon.ClientConfig(&brokers[i], log)
}

// with connects, calls f, and disconnects.
func (c *clusterFlags) with(cmd *cobra.Command, f func(ctx context.Context, client *rocketmq.Client) error) (err error) {
	target, err := c.target(c.logger(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	tracer := c.tracer(cmd.ErrOrStderr())
	if tracer != nil {
		target.Sent = tracer.Sent
	}
	if c.once {
		target.SendRetries = -1
	}
	client, err := rocketmq.New(target)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = limited(ctx, c.timeout)
		defer cancel()
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	if tracer != nil {
		tracer.Start(client)
	}
	defer func() {
		closing, cancel := limited(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, closeTrace(closing, tracer, cmd.ErrOrStderr()), client.Close(closing))
	}()
	err = f(ctx, client)
	if err != nil && ctx.Err() != nil && cmd.Context().Err() == nil {
		advice := cmp.Or(whatToLookAt(err), "look whether a name server runs there and can be reached from here; -v tells what was tried")
		return exitcode.With(exitcode.Environment, fmt.Errorf("no answer from %s within %s (--timeout): %w; %s", strings.Join(target.NameServers, ", "), c.timeout, err, advice))
	}
	return environment(err)
}

// limited gives a context a limit that says itself when it is over: contexts' own words tell people nothing.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, timeUpError{limit})
}

type timeUpError struct{ limit time.Duration }

func (e timeUpError) Error() string        { return "no more time after " + e.limit.String() }
func (e timeUpError) Is(target error) bool { return target == context.DeadlineExceeded }

func (c *clusterFlags) logger(w io.Writer) *slog.Logger {
	if !c.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// environment marks errors that say that nobody is there to talk to, and says what to look at.
func environment(err error) error {
	if !unreachable(err) {
		return err
	}
	if advice := whatToLookAt(err); advice != "" {
		err = fmt.Errorf("%w; %s", err, advice)
	}
	return exitcode.With(exitcode.Environment, err)
}

// whatToLookAt says of a connection that could not be made what may be wrong. The error of one that was made says it itself.
func whatToLookAt(err error) string {
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || dial.Op != "dial":
		return ""
	case errors.Is(err, rocketmq.ErrNoNameServer):
		return "look whether the address of the name server is right (-n, the config, or NAMESRV_ADDR; its usual port is 9876), whether it runs, and whether a firewall is between"
	}
	return "the name server gives this address for the broker: look whether the broker runs, and whether its address (brokerIP1 in its own config) can be reached from here"
}

func unreachable(err error) bool {
	var gone *rocketmq.UnreachableError
	return errors.As(err, &gone) || errors.Is(err, rocketmq.ErrNoNameServer)
}
