package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// forgetAfter is how long name servers must deny a topic, without a break, before its last known route is dropped. A name
	// server that was just started denies every topic until the brokers register again, which they do every 30 s.
	forgetAfter = 2 * time.Minute
	// deniedInterval is how often a topic is asked for that name servers deny although its route is known: its brokers are
	// down, or name servers were restarted, and both shall be over as soon as they are.
	deniedInterval = 2 * time.Second
	// freshFor is how old a route may be that is not asked for again although another member may know a newer one.
	freshFor = 2 * time.Second
	// expediteGap keeps a storm of errors from becoming a storm of route queries.
	expediteGap = time.Second
	// routeFetches is how many route queries run at once.
	routeFetches = 8
)

// routes knows the routes of the topics that were asked for. The last known route of a topic stays while no name server
// answers.
type routes struct {
	fetch     func(ctx context.Context, topic string) (*route, error) // ErrTopicNotFound, ErrNoNameServer
	onBrokers func(addrs map[string]bool)                             // the addresses in all routes, after a change
	onBack    func(*route)                                            // a denied topic is served again
	trouble   func() error                                            // why no name server can be asked at present
	log       *slog.Logger
	interval  time.Duration
	kick      chan struct{}
	ctx       context.Context //nolint:containedctx // ends with the client: fetches are shared by callers, none of which may end them
	wg        *sync.WaitGroup

	mu      sync.Mutex
	topics  map[string]*topicRoute
	brokers map[string][]BrokerAddr // over all routes, the newest word on each broker; master first
	closed  bool                    // no goroutine is started any more
}

type topicRoute struct {
	route    *route        // last known
	err      error         // of the last fetch
	asked    time.Time     // when the last fetch began
	told     time.Time     // when the fetch began that brought the route
	denied   time.Time     // since when name servers deny a topic whose route is known, without a break
	stale    bool          // to be fetched out of turn
	fetching chan struct{} // closed when the fetch under way ends
	watchers map[*watcher]struct{}
}

func newRoutes(interval time.Duration, log *slog.Logger, wg *sync.WaitGroup) *routes {
	return &routes{
		log: log, interval: interval, wg: wg, kick: make(chan struct{}, 1),
		topics: map[string]*topicRoute{}, brokers: map[string][]BrokerAddr{},
	}
}

// get returns the last known route, fetching it when there is none.
func (r *routes) get(ctx context.Context, topic string) (*route, error) {
	r.mu.Lock()
	entry := r.entry(topic)
	if entry.route != nil {
		defer r.mu.Unlock()
		return entry.route, nil
	}
	done := r.startFetch(topic, entry)
	r.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		err := context.Cause(ctx)
		if why := r.trouble(); why != nil { // The fetch would have told; it goes on for others.
			err = fmt.Errorf("%w: %w; the last attempt: %w", ErrNoNameServer, err, why)
		}
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.route == nil {
		return nil, entry.err
	}
	return entry.route, nil
}

// known returns the last known route, nil when there is none.
func (r *routes) known(topic string) *route {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.topics[topic]; entry != nil {
		return entry.route
	}
	return nil
}

// renew fetches the route now and waits for it.
func (r *routes) renew(ctx context.Context, topic string) {
	r.mu.Lock()
	done := r.startFetch(topic, r.entry(topic))
	r.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// broker lists the known addresses of a broker, master first. The list is not to be changed.
func (r *routes) broker(name string) []BrokerAddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.brokers[name]
}

// nameOf is the name of the broker at an address, empty when no route has it.
func (r *routes) nameOf(addr string) string {
	for _, to := range r.all() {
		if to.Addr == addr {
			return to.Name
		}
	}
	return ""
}

// knows tells that an address is one of a known broker.
func (r *routes) knows(addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.brokers {
		for i := range list {
			if list[i].Addr == addr {
				return true
			}
		}
	}
	return false
}

// all lists the addresses of all known brokers, by name and master first.
func (r *routes) all() []BrokerAddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []BrokerAddr
	for _, name := range slices.Sorted(maps.Keys(r.brokers)) {
		list = append(list, r.brokers[name]...)
	}
	return list
}

// expedite has the route of a topic fetched soon; lost those of all topics that an address serves.
func (r *routes) expedite(topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.topics[topic]; entry != nil {
		r.mark(entry)
	}
}

// recheck has the routes that somebody follows fetched soon, unless they are fresh.
func (r *routes) recheck() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.topics {
		if len(entry.watchers) > 0 && time.Since(entry.asked) >= freshFor {
			r.mark(entry)
		}
	}
}

func (r *routes) lost(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.topics {
		if entry.route != nil && entry.route.serves(addr) && time.Since(entry.asked) >= deniedInterval { // while it is away this comes once a second
			r.mark(entry)
		}
	}
}

func (r *route) serves(addr string) bool {
	for _, addrs := range r.brokers {
		for _, a := range addrs {
			if a == addr {
				return true
			}
		}
	}
	return false
}

// mark has an entry fetched out of turn. The caller holds mu.
func (r *routes) mark(entry *topicRoute) {
	entry.stale = true
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// entry finds or makes a topic's entry. The caller holds mu.
func (r *routes) entry(topic string) *topicRoute {
	entry := r.topics[topic]
	if entry == nil {
		entry = &topicRoute{watchers: map[*watcher]struct{}{}}
		r.topics[topic] = entry
	}
	return entry
}

// close has no goroutine be started any more: from then on somebody waits for those that were.
func (r *routes) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// startFetch begins a fetch unless one is under way. The caller holds mu.
func (r *routes) startFetch(topic string, entry *topicRoute) <-chan struct{} {
	if entry.fetching == nil {
		if r.closed {
			entry.err = ErrNotRunning
			none := make(chan struct{})
			close(none)
			return none
		}
		done := make(chan struct{})
		entry.fetching, entry.stale, entry.asked = done, false, time.Now()
		r.wg.Go(func() {
			fetched, err := r.fetch(r.ctx, topic)
			r.conclude(topic, entry, fetched, err)
			close(done)
		})
	}
	return entry.fetching
}

// conclude takes in what a fetch brought.
func (r *routes) conclude(topic string, entry *topicRoute, fetched *route, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := entry.route == nil && entry.err == nil
	before := entry.route
	entry.fetching, entry.err = nil, err
	if entry.stale { // somebody saw an error meanwhile: what has been fetched may be older than that
		r.mark(entry)
	}
	switch {
	case err == nil:
		if !entry.denied.IsZero() {
			r.onBack(fetched)
		}
		entry.route, entry.told, entry.denied = fetched, entry.asked, time.Time{}
	case errors.Is(err, ErrTopicNotFound) && before != nil:
		entry.deny(time.Now())
	case !entry.denied.IsZero():
		entry.denied = time.Now() // nobody denies it now: who does so afterwards may just have been started
	}
	if err != nil && r.ctx.Err() == nil {
		r.log.Debug("fetching a route", "topic", topic, "error", err, "known", entry.route != nil)
	}
	if entry.route == nil && len(entry.watchers) == 0 {
		delete(r.topics, topic) // asked for once, and not there: not worth asking for again
	}
	if same(before, entry.route) {
		return
	}
	r.rebuild()
	if !first {
		r.log.Info("route changed", "topic", topic, "known", entry.route != nil)
		for w := range entry.watchers {
			w.notify()
		}
	}
}

// deny notes that no name server knows the topic, and gives its route up after forgetAfter of that.
func (e *topicRoute) deny(now time.Time) {
	if e.denied.IsZero() {
		e.denied = now
	}
	if now.Sub(e.denied) >= forgetAfter {
		e.route, e.denied = nil, time.Time{}
	}
}

func same(a, b *route) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.equal(b)
}

// rebuild sums up the brokers of all routes; of two words on a broker the one asked for later counts. A route that is only
// kept, since name servers deny its topic or do not answer, is a word of when it was told. The caller holds mu.
func (r *routes) rebuild() {
	entries := slices.SortedFunc(maps.Values(r.topics), func(a, b *topicRoute) int { return a.told.Compare(b.told) })
	r.brokers = map[string][]BrokerAddr{}
	for _, entry := range entries {
		if entry.route != nil {
			for name, addrs := range entry.route.brokers {
				r.brokers[name] = replicas(name, addrs)
			}
		}
	}
	addrs := map[string]bool{}
	for _, list := range r.brokers {
		for _, one := range list {
			addrs[one.Addr] = true
		}
	}
	r.onBrokers(addrs)
}
