package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Client talks to one cluster. It is safe for concurrent use; several clients live side by side in one process.
type Client struct {
	cfg       Config
	log       *slog.Logger
	ns        *nameServers
	routes    *routes
	brokers   *pool
	groups    groups
	producers producers
	calls     callbacks
	suggested suggestions
	zeros     storedZeros
	ids       *wire.IDGenerator
	deflaters sync.Pool // of *wire.Deflater
	turns     turns
	avoided   avoided

	state  atomic.Int32
	ctx    context.Context //nolint:containedctx // the client's own life
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// The states of a client.
const (
	stateCreated int32 = iota
	stateRunning
	stateClosed
)

// New checks cfg and returns a client that has done no I/O yet; Start it before use.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configuring the RocketMQ client: %w", err)
	}
	loader := uint32(cfg.Rand() * (1 << 32)) // containers share address and pid; Java's class loader bytes tell them apart
	addr, _ := netip.AddrFromSlice(localIP())
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Client{cfg: cfg, log: cfg.Logger, ctx: ctx, cancel: cancel}
	c.ids = wire.NewIDGenerator(addr.Unmap(), os.Getpid(), loader)
	shared := remoting.Config{
		Dial: cfg.Dial, Buffers: &remoting.Buffers{}, Logger: cfg.Logger, Sign: cfg.finish(), MaxOutstanding: cfg.MaxOutstanding,
	}
	c.ns = &nameServers{
		known: make(chan struct{}), timeout: cfg.CallTimeout, log: cfg.Logger,
		pool: c.newPool(withProbe(shared, routeProbe), noHello, func(string, error) {}, func(string) bool { return false }),
	}
	c.nameServers()
	withCalls := withProbe(shared, c.brokerProbe)
	c.brokers = c.newPool(withCalls, c.hello, c.brokerLost, c.eager)
	c.brokers.handle = c.serve
	c.brokers.back = c.brokerBack
	c.routes = newRoutes(cfg.RouteInterval, cfg.Logger, &c.wg)
	c.routes.ctx, c.routes.fetch, c.routes.onBrokers, c.routes.onBack = ctx, c.fetchRoute, c.brokersKnown, c.brokersBack
	c.routes.trouble = c.ns.trouble
	return c, nil
}

// nameServers takes the configured addresses, or the list that tells them.
func (c *Client) nameServers() {
	first := c.cfg.NameServers[0]
	if !isList(first) {
		c.ns.set(c.cfg.NameServers, nil)
		return
	}
	c.ns.list = &addressList{
		url: first, http: c.cfg.HTTP, every: c.cfg.ListInterval,
		backoff: func(failures int) time.Duration {
			return backoff(failures, c.cfg.BackoffMin, c.cfg.BackoffMax, c.cfg.Rand)
		},
	}
}

// NameServers are the addresses in force: those configured, or those that the configured list told last.
func (c *Client) NameServers() []string { return slices.Clone(c.ns.addrs()) }

func (c *Client) newPool(rc remoting.Config, hello func(context.Context, *peer, *remoting.Conn) error,
	lost func(string, error), eager func(string) bool,
) *pool {
	return &pool{
		remoting: rc, log: c.log, hello: hello, lost: lost, eager: eager, peers: map[string]*peer{},
		backoff: func(failures int, err error) time.Duration {
			return backoff(failures, c.cfg.BackoffMin, backoffLimit(c.cfg.BackoffMax, err), c.cfg.Rand)
		},
	}
}

func withProbe(rc remoting.Config, probe func() *wire.Command) remoting.Config {
	rc.Probe = probe
	return rc
}

// routeProbe is what name servers of all versions answer (an unknown code gets no answer from 4.9's).
func routeProbe() *wire.Command {
	return wire.NewRequest(&wire.RouteRequest{Topic: wire.DefaultTopic}, nil)
}

func noHello(context.Context, *peer, *remoting.Conn) error { return nil }

// Start begins the work in the background: routes, heartbeats, connections. It needs no server to be there. It fails with
// ErrNotRunning after Close, and does nothing when the client runs already.
func (c *Client) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !c.state.CompareAndSwap(stateCreated, stateRunning) {
		return c.running()
	}
	if c.ns.list != nil {
		c.wg.Go(func() { c.ns.follow(c.ctx) })
	}
	c.wg.Go(c.routes.refreshLoop)
	c.wg.Go(c.heartbeatLoop)
	return nil
}

// Close unregisters what is still joined (35, awaited within ctx), ends all connections and waits within ctx for the
// client's goroutines, callbacks included. What waits for an answer fails. A closed client cannot be started again.
func (c *Client) Close(ctx context.Context) error {
	was := c.state.Swap(stateClosed)
	if was == stateClosed {
		return nil
	}
	var err error
	if was == stateRunning {
		err = errors.Join(c.leaveAll(ctx), c.leaveAllProducers(ctx))
	}
	c.cancel(ErrNotRunning)
	c.routes.close()
	c.brokers.close()
	c.ns.pool.close()
	return errors.Join(err, c.calls.drained(ctx), waitFor(ctx, &c.wg))
}

func waitFor(ctx context.Context, wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the client's goroutines: %w", context.Cause(ctx))
	}
}

func (c *Client) running() error {
	if c.state.Load() != stateRunning {
		return ErrNotRunning
	}
	return nil
}

// ClientID is the id under which brokers know this client.
func (c *Client) ClientID() string { return c.cfg.ClientID }

// Queues returns the readable queues of a topic, sorted. ErrTopicNotFound when no name server knows the topic,
// ErrNoNameServer when none answers and no earlier route is known.
func (c *Client) Queues(ctx context.Context, topic string) ([]sdk.Queue, error) {
	r, err := c.route(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("finding the queues of %s: %w", topic, err)
	}
	return append([]sdk.Queue(nil), r.readable...), nil
}

// WritableQueues returns the queues of a topic that take messages, sorted; a topic may have none. Errors as Queues.
func (c *Client) WritableQueues(ctx context.Context, topic string) ([]sdk.Queue, error) {
	r, err := c.route(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("finding the writable queues of %s: %w", topic, err)
	}
	return append([]sdk.Queue(nil), r.writable...), nil
}

func (c *Client) route(ctx context.Context, topic string) (*route, error) {
	if err := c.running(); err != nil {
		return nil, err
	}
	return c.routes.get(ctx, topic)
}

// RouteChanged calls f, on a goroutine of its own, after the route of topic changed, appeared or went, until stop is called
// or the client closes. Changes that come while f runs make one more call. stop does not wait for f.
func (c *Client) RouteChanged(topic string, f func()) (stop func()) { return c.routes.watch(topic, f) }

// Brokers lists the live addresses of all brokers in the routes known so far, by name and master first.
func (c *Client) Brokers() []BrokerAddr { return c.routes.all() }

// fetchRoute asks the name servers for a route (105).
func (c *Client) fetchRoute(ctx context.Context, topic string) (*route, error) {
	reply, err := c.ns.ask(ctx, wire.NewRequest(&wire.RouteRequest{Topic: topic, StandardJSON: wire.Some(true)}, nil))
	var resp *ResponseError
	if errors.As(err, &resp) && resp.Code == wire.RespTopicNotExist {
		return nil, fmt.Errorf("%w: %s", ErrTopicNotFound, topic)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the route of %s: %w", topic, err)
	}
	defer reply.Release()
	var data wire.TopicRoute
	if err := wire.DecodeBody(reply.Body, &data); err != nil {
		return nil, fmt.Errorf("%w: reading the route of %s: %w", ErrProtocol, topic, err)
	}
	if isStatic(&data) {
		return nil, fmt.Errorf("%w: the queues of %s are mapped onto those of several brokers, which this client does not read; use an ordinary topic", ErrStaticTopic, topic)
	}
	return newRoute(topic, &data), nil
}

// brokersKnown follows the routes: addresses that left are given up, new ones are connected when groups are joined.
func (c *Client) brokersKnown(addrs map[string]bool) {
	c.brokers.keep(addrs)
	if c.member() {
		for addr := range addrs {
			one, err := c.brokers.peer(addr)
			if err != nil {
				return // closing
			}
			one.wake() // it may have been known before it came into the routes
		}
	}
}

// eager keeps up the connections of a member to the brokers in its routes. One that is in none, and was asked something only
// because it stored a message, or by an operator's tool, is not worth looking for once it is gone.
func (c *Client) eager(addr string) bool { return c.member() && c.routes.knows(addr) }

func (c *Client) brokerLost(addr string, err error) {
	c.log.Debug("broker connection lost", "addr", addr, "error", err)
	c.routes.lost(addr)
}

// brokersBack hears that brokers registered again: they are tried at once, whatever the backoff says.
func (c *Client) brokersBack(r *route) {
	for _, addrs := range r.brokers {
		for _, addr := range addrs {
			if one := c.brokers.known(addr); one != nil {
				one.heard()
			}
		}
	}
}
