package lease

import (
	"maps"
	"slices"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// The times of a lock. Java's client renews as often, and stops 30 s after the last success; the broker's lock lasts 60 s
// (consumer-semantics.md 6.1).
const (
	Renew = 20 * time.Second
	// Limit is how long after the last success a lock counts as lost: handlers are canceled within the 30 s.
	Limit = 27 * time.Second
	// Fence is how long after the last success nothing may start any more, also when nobody has noticed the loss.
	Fence = 29 * time.Second

	refusedPause = 500 * time.Millisecond // as Java's client (consumer-semantics.md 2.4)
	failedPause  = time.Second
	askHolder    = 20 // refusals between two questions for the holder; the first comes with the second
)

// InputKind tells what happened.
type InputKind uint8

// The inputs.
const (
	InTick     InputKind = iota
	InWant               // Queue is to be locked
	InLeave              // Queue is not needed any more; Unlock: give the lock back
	InLocked             // the end of a call: Broker, Queues, Granted, Sent, Err
	InUnlocked           // the end of a call: Broker, Queues
	InHolders            // Holders tells who holds refused queues
)

// Input is one thing that happened; Kind says which fields count.
type Input struct {
	Kind    InputKind
	Queue   sdk.Queue
	Unlock  bool
	Broker  string
	Queues  []sdk.Queue // that were asked for
	Granted []sdk.Queue
	Sent    time.Time // when the call was sent
	Err     error
	Holders map[sdk.Queue]string
}

// ActionKind says what the shell has to do.
type ActionKind uint8

// The actions.
const (
	ActLock     ActionKind = iota + 1 // ask Broker for Queues (41), then answer with InLocked
	ActUnlock                         // give Queues back to Broker (42), then answer with InUnlocked
	ActTell                           // tell the owner of Queue of its Lock
	ActReleased                       // Queue is left
	ActAsk                            // ask the members who holds Queues, then answer with InHolders
)

// Action is one thing to do.
type Action struct {
	Kind   ActionKind
	Broker string
	Queue  sdk.Queue
	Queues []sdk.Queue
	Lock   queue.Lock
}

type entry struct {
	held    bool
	leaving bool
	renewed time.Time // when the call was sent that got the lock, or renewed it; zero: it is not this client's
	tryAt   time.Time
	refused int
	text    string
	member  string
}

// Core is the state of one stream's locks. It is not safe for concurrent use.
type Core struct {
	entries map[sdk.Queue]*entry
	busy    map[string]bool // brokers with a call under way
	asking  bool
	actions []Action
}

// NewCore makes a core without locks.
func NewCore() *Core {
	return &Core{entries: make(map[sdk.Queue]*entry), busy: make(map[string]bool)}
}

// Step takes one input and returns what to do. What has run out is lost before the input counts.
func (c *Core) Step(now time.Time, in Input) []Action {
	c.actions = nil
	c.expire(now)
	switch in.Kind {
	case InWant:
		c.entries[in.Queue] = &entry{tryAt: now}
	case InLeave:
		c.leave(in.Queue, in.Unlock)
	case InLocked:
		c.locked(now, &in)
	case InUnlocked:
		c.unlocked(&in)
	case InHolders:
		c.holders(in.Holders)
	case InTick:
	}
	c.due(now)
	return c.actions
}

func (c *Core) act(a Action) { c.actions = append(c.actions, a) }

func (c *Core) expire(now time.Time) {
	for _, q := range c.sorted() {
		if e := c.entries[q]; e.held && !e.leaving && queue.Elapsed(now, e.renewed) >= Limit {
			c.lose(now, q, e, "its broker did not renew it for "+Limit.String())
		}
	}
}

func (c *Core) lose(now time.Time, q sdk.Queue, e *entry, why string) {
	if e.text != "" {
		why += " (" + e.text + ")"
	}
	e.held, e.tryAt, e.text, e.member = false, now, why, ""
	c.tell(q, e)
}

func (c *Core) tell(q sdk.Queue, e *entry) {
	l := queue.Lock{Held: e.held, Text: e.text, Member: e.member, Taken: e.refused > 0}
	if e.held {
		l = queue.Lock{Held: true, At: e.renewed, Until: e.renewed.Add(Fence)}
	}
	c.act(Action{Kind: ActTell, Queue: q, Lock: l})
}

// leave waits for a call that is under way: its answer may be that the lock is got. A lock that counts as lost because nobody
// renewed it is given back too: its broker keeps it for half a minute more.
func (c *Core) leave(q sdk.Queue, unlock bool) {
	e := c.entries[q]
	if e != nil && unlock && (!e.renewed.IsZero() || c.busy[q.Broker]) {
		e.leaving = true
		return
	}
	delete(c.entries, q)
	c.act(Action{Kind: ActReleased, Queue: q})
}

func (c *Core) locked(now time.Time, in *Input) {
	delete(c.busy, in.Broker)
	granted := make(map[sdk.Queue]bool, len(in.Granted))
	for _, q := range in.Granted {
		granted[q] = true
	}
	for _, q := range in.Queues {
		e := c.entries[q]
		switch {
		case e == nil || e.leaving:
		case granted[q] && queue.Elapsed(now, in.Sent) < Limit:
			e.held, e.renewed, e.tryAt, e.refused, e.text, e.member = true, in.Sent, in.Sent.Add(Renew), 0, "", ""
			c.tell(q, e)
		case granted[q]:
			e.tryAt = now
		case in.Err != nil:
			c.failed(now, q, e, in.Err)
		default:
			c.denied(now, q, e)
		}
	}
}

// failed: nobody knows. A lock that is held stays so until its time is up.
func (c *Core) failed(now time.Time, q sdk.Queue, e *entry, err error) {
	e.tryAt, e.text = now.Add(failedPause), err.Error()
	if !e.held {
		c.tell(q, e)
	}
}

func (c *Core) denied(now time.Time, q sdk.Queue, e *entry) {
	e.refused++
	if e.held {
		e.text = ""
		c.lose(now, q, e, "another client holds it now")
	}
	e.renewed = time.Time{}
	e.tryAt = now.Add(refusedPause)
	e.text = "another client of the group holds the queue's lock; it is asked for every " + refusedPause.String() +
		", and a client that is gone without giving it back keeps it for 60s"
	if e.member != "" {
		e.text = "member " + e.member + " holds the queue's lock; it is asked for every " + refusedPause.String()
	}
	c.tell(q, e)
}

func (c *Core) holders(holders map[sdk.Queue]string) {
	c.asking = false
	for q, member := range holders {
		if e := c.entries[q]; e != nil && !e.held {
			e.member = member
		}
	}
}

func (c *Core) unlocked(in *Input) {
	delete(c.busy, in.Broker)
	for _, q := range in.Queues {
		if e := c.entries[q]; e != nil && e.leaving {
			delete(c.entries, q)
			c.act(Action{Kind: ActReleased, Queue: q})
		}
	}
}

// due sends what the time has come for: one call at a time to each broker.
func (c *Core) due(now time.Time) {
	leaving, wanted, renewing := map[string][]sdk.Queue{}, map[string][]sdk.Queue{}, map[string]bool{}
	var unknown []sdk.Queue
	for _, q := range c.sorted() {
		e := c.entries[q]
		switch {
		case e.leaving:
			leaving[q.Broker] = append(leaving[q.Broker], q)
		case !now.Before(e.tryAt):
			wanted[q.Broker] = append(wanted[q.Broker], q)
			renewing[q.Broker] = renewing[q.Broker] || e.held
		}
		if !e.held && !e.leaving && e.refused%askHolder == 2 && e.member == "" {
			unknown = append(unknown, q)
		}
	}
	for _, broker := range slices.Sorted(maps.Keys(leaving)) {
		c.call(ActUnlock, broker, leaving[broker])
	}
	for _, broker := range slices.Sorted(maps.Keys(wanted)) {
		queues := wanted[broker]
		if renewing[broker] { // all that is held there is renewed together
			queues = c.ofBroker(broker, func(e *entry) bool { return !e.leaving && (e.held || !now.Before(e.tryAt)) })
		}
		c.call(ActLock, broker, queues)
	}
	if len(unknown) > 0 && !c.asking {
		c.asking = true
		for _, q := range unknown {
			c.entries[q].refused++ // asked for once
		}
		c.act(Action{Kind: ActAsk, Queues: unknown})
	}
}

func (c *Core) call(kind ActionKind, broker string, queues []sdk.Queue) {
	if !c.busy[broker] {
		c.busy[broker] = true
		c.act(Action{Kind: kind, Broker: broker, Queues: queues})
	}
}

func (c *Core) ofBroker(broker string, match func(*entry) bool) (queues []sdk.Queue) {
	for _, q := range c.sorted() {
		if q.Broker == broker && match(c.entries[q]) {
			queues = append(queues, q)
		}
	}
	return queues
}

func (c *Core) sorted() []sdk.Queue {
	return slices.SortedFunc(maps.Keys(c.entries), sdk.Queue.Compare)
}

// Next is when Step must be called again though nothing happens; zero = never.
func (c *Core) Next() (at time.Time) {
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for q, e := range c.entries {
		if e.held && !e.leaving {
			soonest(e.renewed.Add(Limit))
		}
		if !c.busy[q.Broker] && !e.leaving {
			soonest(e.tryAt)
		}
	}
	return at
}
