package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/memstore"
	"github.com/streamd/streamd/internal/broker/remote"
)

// maxFrame is the longest frame Java ends exchange, remoting-protocol.md 1.1.
const maxFrame = 16 << 20

// maxPending is how many bytes may wait for one client before it is no longer read from.
const maxPending = 32 << 20

// Broker is one broker with its name server. Its methods are safe for concurrent use.
type Broker struct {
	config      Config
	server      *remote.Server
	names       *NameServer
	faults      *Faults
	store       *memstore.Store
	topics      *topicTable
	groups      *groupTable
	members     *memberTable
	offsets     *offsetTable
	locks       *lockTable
	holds       *holdTable
	delays      *schedule
	timers      *timers
	halves      *halfTable
	ids         *idMaker
	expressions *expressionTable
	forbidden   *forbiddenTable
	counters    *counters
	tuned       *tuned
	changes     *changes
	handle      map[code]handler

	mu      sync.Mutex
	address string         // advertised
	host    netip.AddrPort // the same, as messages carry it
	since   time.Time      // of the last start
}

// New makes a broker that does not listen yet.
func New(c Config) *Broker {
	c = c.withDefaults()
	b := &Broker{
		config:      c,
		names:       c.NameServer,
		faults:      newFaults(),
		store:       memstore.New(),
		topics:      newTopicTable(c),
		groups:      newGroupTable(c),
		members:     newMemberTable(c.MemberTTL),
		offsets:     newOffsetTable(),
		locks:       newLockTable(c.LockTTL),
		holds:       newHoldTable(),
		halves:      newHalfTable(c),
		ids:         newIDMaker(),
		expressions: newExpressionTable(),
		forbidden:   newForbiddenTable(),
		counters:    newCounters(),
		tuned:       newTuned(c),
		changes:     newChanges(),
		handle:      handlers(),
	}
	if b.names == nil {
		b.names = NewNameServer(NameServerConfig{})
	}
	b.members.expired = b.onExpired
	b.delays = newSchedule(c.DelayLevels, b.store, b.deliver)
	b.halves.check, b.halves.giveUp = b.checkTransaction, b.abandonTransaction
	b.timers = &timers{deliver: b.deliver}
	b.server = remote.NewServer(remote.Options{
		Listen: c.Listen, Address: c.Address, Handle: b.serve, Gone: b.gone, MaxFrame: maxFrame, MaxPending: maxPending,
		IdleTimeout: c.IdleTimeout, Version: c.Version, TLS: c.TLS, Logger: c.Logger,
	})
	return b
}

// Start listens and registers the broker with its name server. After Stop it listens where it did before.
func (b *Broker) Start() error {
	if err := b.server.Start(); err != nil {
		return fmt.Errorf("starting broker %s: %w", b.config.Name, err)
	}
	address := b.config.Advertise
	if address == "" {
		address = b.server.Address()
	}
	host, err := hostOf(address)
	if err != nil {
		return fmt.Errorf("starting broker %s: %w", b.config.Name, errors.Join(err, b.server.Close()))
	}
	b.mu.Lock()
	b.address, b.host, b.since = address, host, time.Now()
	b.mu.Unlock()
	b.names.add(b.config.Name, b)
	b.delays.start()
	b.timers.start()
	b.halves.start()
	return nil
}

// Stop cuts all connections and stops listening, as a broker does that is killed: members, locks and held pulls are
// forgotten, what is stored stays. Start brings it back.
func (b *Broker) Stop() error {
	b.names.remove(b.config.Name)
	b.delays.stop()
	b.timers.stop()
	b.halves.stop()
	err := b.server.Close()
	b.holds.clear()
	b.locks.clear()
	b.members.clear()
	b.offsets.forgetResets()
	return err
}

// Close ends the broker. It is Stop under the name that callers expect of a resource.
func (b *Broker) Close() error { return b.Stop() }

// Address is the address that clients use for the broker and for its name server: "ip:port".
func (b *Broker) Address() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.address
}

// Name is the broker's name, as queues carry it.
func (b *Broker) Name() string { return b.config.Name }

// NameServer returns the name server that the broker registers with.
func (b *Broker) NameServer() *NameServer { return b.names }

func (b *Broker) storeHost() netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host
}

func (b *Broker) started() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since
}

// gone is told of each connection that ended.
func (b *Broker) gone(c *remote.Conn) {
	b.names.gone(c)
	b.holds.drop(c)
	b.notify(b.members.leaveAll(c))
	b.changes.happened()
}
