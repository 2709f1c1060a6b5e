package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
)

// maxFrame is the longest frame Java ends exchange, remoting-protocol.md 1.1.
const maxFrame = 16 << 20

// maxPending is how many bytes may wait for one client before it is no longer read from.
const maxPending = 32 << 20

// What may wait for all clients together before the slow ones are no longer read from, and what may have arrived of large
// frames that are not whole.
const (
	maxTotal   = 128 << 20
	maxReading = 256 << 20
)

// Broker is one broker with its name server. Its methods are safe for concurrent use.
type Broker struct {
	config      Config
	server      *remote.Server
	names       *NameServer
	faults      *Faults
	storage     *storage
	topics      *topicTable
	groups      *groupTable
	members     *memberTable
	offsets     *offsetTable
	locks       *lockTable
	holds       *holdTable
	delays      *schedule
	halves      *halfTable
	ids         *idMaker
	expressions *expressionTable
	forbidden   *forbiddenTable
	counters    *counters
	tuned       *tuned
	changes     *changes
	handle      map[code]handler
	sends       lender            // of batches, until they are stored
	pulls       lender            // of answers, until they are written
	configured  map[string]string // settings by their names, as the config has them

	startErr error // of a store in memory; Start says it

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
		storage:     newStorage(c),
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
	own := b.names == nil
	if own {
		b.names = NewNameServer(NameServerConfig{})
	}
	b.configured = b.settingValues()
	b.wireTables(own)
	b.members.expired = b.onExpired
	b.delays = newSchedule(b.storage, b.deliver, c.Logger)
	b.halves.immune = b.immunity
	b.halves.check = func(offset int64, times int) { b.quietly(func() { b.checkTransaction(offset, times) }) }
	b.halves.giveUp = func(offset int64) { b.quietly(func() { b.abandonTransaction(offset) }) }
	b.server = remote.NewServer(remote.Options{
		Listen: c.Listen, Address: c.Address, Handle: b.serve, Gone: b.gone, MaxFrame: maxFrame, MaxPending: maxPending,
		MaxTotal: maxTotal, MaxReading: maxReading,
		IdleTimeout: c.IdleTimeout, Version: c.Version, TLS: c.TLS, Logger: c.Logger,
	})
	b.storage.options.Reopened, b.storage.options.Resumed = b.reopened, b.resumed
	if b.storage.inMemory() {
		b.startErr = b.openStorage()
	}
	return b
}

// Start listens, opens the data folder unless it is open, and registers the broker with its name server. After Stop it
// listens where it did before.
func (b *Broker) Start() error {
	if b.startErr != nil {
		return fmt.Errorf("starting broker %s: %w", b.config.Name, b.startErr)
	}
	// The address first: a data folder must not be made by a broker that cannot run.
	if err := b.server.Listen(); err != nil {
		return fmt.Errorf("starting broker %s: %w", b.config.Name, err)
	}
	err := b.announce()
	if err == nil {
		err = b.openStorage()
	}
	if err == nil {
		err = b.server.Start()
	}
	if err != nil {
		return fmt.Errorf("starting broker %s: %w", b.config.Name, errors.Join(err, b.server.Close()))
	}
	b.names.add(b.config.Name, b)
	b.delays.start()
	b.halves.start()
	return nil
}

// openStorage opens the store and reads the tables, unless it is open.
func (b *Broker) openStorage() error {
	opened, err := b.storage.open()
	if err != nil || !opened {
		return err
	}
	if err := b.load(); err != nil {
		return errors.Join(err, b.storage.close())
	}
	return nil
}

// announce settles what clients are told that the broker's address is.
func (b *Broker) announce() error {
	address := b.config.Advertise
	if address == "" {
		address = b.server.Address()
	}
	host, err := hostOf(address)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.address, b.host, b.since = address, host, time.Now()
	return nil
}

// Stop cuts all connections and stops listening, as a broker does that is killed: members, locks and held pulls are
// forgotten, what is stored stays. Start brings it back.
func (b *Broker) Stop() error {
	b.names.remove(b.config.Name)
	b.delays.stop()
	b.halves.stop()
	err := b.server.Close()
	b.holds.clear()
	b.locks.clear()
	b.members.clear()
	b.offsets.forgetResets()
	return err
}

// Close is Stop, and closes the data folder: another process may have it then. Start opens it again. A broker that was made
// must be closed, also when it was not started.
func (b *Broker) Close() error { return errors.Join(b.Stop(), b.storage.close()) }

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
