package broker

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Properties of half messages, remoting-protocol.md 5.1.
const (
	propCheckTimes = "TRANSACTION_CHECK_TIMES"
	propImmunity   = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	maxChecks      = 15
)

// half is a message whose transaction is open.
type half struct {
	logOffset int64
	checks    int
	timer     *time.Timer
}

func (h *half) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// halfTable is the open transactions. Unlike RocketMQ it does not store a half message again before each check, and a
// transaction that has ended cannot be committed a second time. The store has them too: an open transaction survives a
// restart, and how often its producers were asked.
type halfTable struct {
	first, every time.Duration
	immune       func(logOffset int64) time.Duration // for how long the producers are not to be asked yet
	check        func(logOffset int64, times int)
	giveUp       func(logOffset int64)
	save         saver

	mu      sync.Mutex
	running bool
	open    map[int64]*half
}

// load takes over the open transactions that the store has.
func (t *halfTable) load(s *storage) error {
	open, err := s.halves()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.open {
		h.stop()
	}
	clear(t.open)
	checks, err := s.table(tableChecks)
	if err != nil {
		return err
	}
	for _, logOffset := range open {
		h := &half{logOffset: logOffset}
		if n, err := strconv.Atoi(string(checks[checksKey(logOffset)])); err == nil {
			h.checks = n
		}
		t.open[h.logOffset] = h
		t.armLocked(h, t.first)
	}
	return nil
}

// checksKey is where it is stored how often the producers of a transaction were asked.
func checksKey(logOffset int64) string { return strconv.FormatInt(logOffset, 10) }

func newHalfTable(c Config) *halfTable {
	return &halfTable{first: c.TransactionTimeout, every: c.TransactionInterval, open: make(map[int64]*half)}
}

func (t *halfTable) add(logOffset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &half{logOffset: logOffset}
	t.open[logOffset] = h
	t.armLocked(h, t.first)
}

func (t *halfTable) armLocked(h *half, after time.Duration) {
	if t.running {
		h.timer = time.AfterFunc(after, func() { t.due(h) })
	}
}

// due asks the producer once more, or gives the transaction up.
func (t *halfTable) due(h *half) {
	left := t.immune(h.logOffset)
	t.mu.Lock()
	if t.open[h.logOffset] != h || !t.running {
		t.mu.Unlock()
		return
	}
	if left > 0 {
		t.armLocked(h, left)
		t.mu.Unlock()
		return
	}
	if h.checks++; h.checks > maxChecks {
		delete(t.open, h.logOffset)
		t.mu.Unlock()
		t.save(checksKey(h.logOffset), nil)
		t.giveUp(h.logOffset)
		return
	}
	times := h.checks
	t.armLocked(h, t.every)
	t.mu.Unlock()
	t.save(checksKey(h.logOffset), []byte(strconv.Itoa(times)))
	t.check(h.logOffset, times)
}

// end closes a transaction; false: it is not open.
func (t *halfTable) end(logOffset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.open[logOffset]
	if !ok {
		return false
	}
	if h.checks > 0 {
		t.save(checksKey(logOffset), nil)
	}
	h.stop()
	delete(t.open, logOffset)
	return true
}

func (t *halfTable) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = true
	for _, offset := range slices.Sorted(maps.Keys(t.open)) {
		t.armLocked(t.open[offset], t.first)
	}
}

func (t *halfTable) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	for _, h := range t.open {
		h.stop()
	}
}

// toHalf sends a half message by way of the half topic, where no consumer of its own topic sees it.
func (d *draft) toHalf() {
	d.properties.set(wire.PropTransactionID, d.properties.get(wire.PropUniqueKey))
	d.properties.set(wire.PropRealTopic, d.topic)
	d.properties.set(wire.PropRealQueueID, strconv.Itoa(int(d.queue)))
	d.properties.remove(wire.PropDelayLevel)
	d.topic, d.queue = wire.HalfTopic, 0
	d.sysFlag &^= wire.SysFlagTransaction
}

// fromHalf is the message as its consumers will see it.
func fromHalf(m *wire.Message) (*draft, error) {
	d := draftOf(m)
	queue, err := strconv.ParseInt(d.properties.get(wire.PropRealQueueID), 10, 32)
	if err != nil {
		return nil, err
	}
	d.topic, d.queue = d.properties.get(wire.PropRealTopic), int32(queue)
	return d, nil
}

// immunity is how much is left of the time for which a half message asks not to have its producers asked. It counts from when
// the message was stored, also over a restart.
func (b *Broker) immunity(offset int64) (left time.Duration) {
	b.quietly(func() {
		m, ok := b.lookup(offset)
		if !ok {
			return
		}
		if _, again := m.Property(propCheckTimes); again {
			return // It was given up once.
		}
		text, _ := m.Property(propImmunity)
		if seconds, err := strconv.ParseInt(string(text), 10, 32); err == nil {
			left = time.Duration(seconds)*time.Second - time.Duration(b.storage.now()-m.StoreMillis)*time.Millisecond
		}
	})
	return left
}
