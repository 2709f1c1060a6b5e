package group

import (
	"maps"
	"slices"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// The pace of rebalancing (consumer-semantics.md 2.1; design.md 7).
const (
	Period          = 20 * time.Second
	UnbalancedAfter = time.Second
	// HandOverLimit is how long a new owner waits for a streamd member that still lists the queue.
	HandOverLimit = 10 * time.Second
	// askAgain is the pause between two questions to members that still list a queue.
	askAgain      = 100 * time.Millisecond
	coalesceLeast = 100 * time.Millisecond
	coalesceMost  = 500 * time.Millisecond
)

// epochStep leaves room for the epochs that resets begin within one ownership.
const epochStep = 1 << 16

// State is where a queue stands at this member.
type State string

// The states of a queue.
const (
	Waiting  State = "waiting" // desired; another streamd member still has it
	Owned    State = "owned"
	Draining State = "draining"
)

// Topic is what one round found for a topic.
type Topic struct {
	Name string
	// Known is false when the topic's queues could not be told: what is owned stays.
	Known bool
	Mine  []sdk.Queue
	// Hold says why this is not the share that the strategy would give now; the zero Hold: it is.
	Hold queue.Hold
}

// Input is one thing that happened; Kind says which fields count.
type Input struct {
	Kind    InputKind
	Topics  []Topic              // InRound: every subscribed topic; InPart: some
	Holders map[sdk.Queue]string // InPeers: who lists a queue that was asked for
	Queue   sdk.Queue            // InReleased
}

// InputKind tells what happened.
type InputKind uint8

// The inputs.
const (
	InTick     InputKind = iota
	InNotify             // a broker says that the members changed (40)
	InChange             // a route changed
	InReload             // subscriptions or strategy changed
	InRound              // a round has ended
	InPart               // a round has decided some topics and waits for others
	InPeers              // the other members were asked
	InReleased           // a queue's worker has ended
	InStop               // give up everything
	InLeave              // give up everything, to leave the group for a while
	InReturn             // the group is joined again
	InRestart            // what the queues run with changed: all are drained and taken again; a reload besides
)

// ActionKind says what the engine has to do.
type ActionKind uint8

// The actions.
const (
	ActRound    ActionKind = iota + 1 // look at every topic, then answer with InRound
	ActAskPeers                       // ask the other members for Queues, then answer with InPeers
	ActAcquire                        // start a worker for Queue with Epoch
	ActDrain                          // drain Queue, then answer with InReleased
	ActCommit                         // commit every owned queue now
	ActHurry                          // another round is due: the one under way is not to wait for silent brokers
)

// Action is one thing to do.
type Action struct {
	Kind   ActionKind
	Queue  sdk.Queue
	Queues []sdk.Queue
	Epoch  uint64
}

type entry struct {
	state   State
	desired bool
	epoch   uint64
	since   time.Time
	member  string // Waiting: who has it
	asked   bool   // Waiting: the question to the other members that is under way is about it
}

// Counters count since the member started.
type Counters struct {
	Rounds, Acquired, Released uint64
	Overlaps                   uint64 // queues taken though a member still listed them after HandOverLimit
}

// Core is the state of one member of one group. It is not safe for concurrent use.
type Core struct {
	rand    func() float64
	entries map[sdk.Queue]*entry
	holds   map[string]queue.Hold // by topic

	epoch    uint64
	roundAt  time.Time // next round
	last     time.Time // start of the last round
	noted    time.Time // last round that a notify started at once
	busy     bool
	hurried  bool // the round under way was told
	asking   bool
	askAt    time.Time
	stopping bool // nothing is taken any more, or until InReturn
	outdated bool // the round under way began before a leave
	counters Counters
	actions  []Action
}

// NewCore makes a core whose first round is due at once. random gives jitter in [0,1). epoch is the last one used before.
func NewCore(now time.Time, random func() float64, epoch uint64) *Core {
	return &Core{rand: random, entries: make(map[sdk.Queue]*entry), holds: make(map[string]queue.Hold), roundAt: now, epoch: epoch}
}

// Step takes one input and returns what to do. The actions are valid until the next step.
func (c *Core) Step(now time.Time, in Input) []Action {
	c.actions = c.actions[:0]
	switch in.Kind {
	case InNotify:
		c.notify(now)
	case InChange:
		c.sooner(now.Add(c.coalesce()))
	case InReload:
		c.sooner(now)
	case InRound:
		c.round(now, in.Topics)
	case InPart:
		c.part(now, in.Topics)
	case InPeers:
		c.peers(now, in.Holders)
	case InReleased:
		c.released(now, in.Queue)
	case InStop:
		c.stop()
	case InLeave:
		c.stop()
		clear(c.holds)
	case InReturn:
		c.rejoin(now)
	case InRestart:
		c.restart(now)
	case InTick:
	}
	c.due(now)
	return c.actions
}

func (c *Core) act(a Action) { c.actions = append(c.actions, a) }

func (c *Core) coalesce() time.Duration {
	return coalesceLeast + time.Duration(c.rand()*float64(coalesceMost-coalesceLeast))
}

func (c *Core) sooner(at time.Time) {
	if at.Before(c.roundAt) {
		c.roundAt = at
	}
}

// notify commits at once, so that whoever takes a queue starts where we are, and rebalances: the first time at once.
func (c *Core) notify(now time.Time) {
	if c.stopping {
		return
	}
	c.act(Action{Kind: ActCommit})
	if now.Sub(c.noted) >= coalesceMost && !c.busy {
		c.noted = now
		c.roundAt = now
		return
	}
	c.noted = now
	c.sooner(now.Add(c.coalesce()))
}

// due starts what the time has come for.
func (c *Core) due(now time.Time) {
	if c.stopping {
		return
	}
	due := !now.Before(c.roundAt)
	if c.busy && due && !c.hurried {
		c.hurried = true
		c.act(Action{Kind: ActHurry})
	}
	if !c.busy && due {
		c.busy, c.hurried = true, false
		c.last = now
		c.roundAt = now.Add(Period)
		c.counters.Rounds++
		c.act(Action{Kind: ActRound})
	}
	if waiting := c.waiting(); !c.asking && len(waiting) > 0 && !now.Before(c.askAt) {
		c.asking = true
		for _, q := range waiting {
			c.entries[q].asked = true
		}
		c.act(Action{Kind: ActAskPeers, Queues: waiting})
	}
}

// Next is when Step must be called again though nothing happens; zero = never.
func (c *Core) Next() time.Time {
	if c.stopping {
		return time.Time{}
	}
	next := c.roundAt
	if c.busy && c.hurried {
		next = next.Add(Period) // InRound comes first
	}
	if !c.asking && len(c.waiting()) > 0 && c.askAt.Before(next) {
		next = c.askAt
	}
	return next
}

func (c *Core) waiting() (qs []sdk.Queue) {
	for q, e := range c.entries {
		if e.state == Waiting {
			qs = append(qs, q)
		}
	}
	slices.SortFunc(qs, sdk.Queue.Compare)
	return qs
}

// round applies what a round found.
func (c *Core) round(now time.Time, topics []Topic) {
	outdated := c.outdated
	c.busy, c.outdated = false, false
	switch {
	case c.stopping:
		return
	case outdated:
		c.sooner(now)
		return
	}
	clear(c.holds)
	c.apply(now, topics, make(map[sdk.Queue]bool))
	if !c.balanced() {
		c.sooner(now.Add(UnbalancedAfter))
	}
}

// part applies what a round found so far; what is owned of other topics stays.
func (c *Core) part(now time.Time, topics []Topic) {
	if c.stopping || c.outdated {
		return
	}
	told := make(map[string]bool, len(topics))
	for _, t := range topics {
		told[t.Name] = true
		delete(c.holds, t.Name)
	}
	desired := make(map[sdk.Queue]bool)
	for q, e := range c.entries {
		if e.desired && !told[q.Topic] {
			desired[q] = true
		}
	}
	c.apply(now, topics, desired)
}

// apply makes the topics' shares and what else is desired the queues of this member.
func (c *Core) apply(now time.Time, topics []Topic, desired map[sdk.Queue]bool) {
	for _, t := range topics {
		if t.Hold.Held() {
			c.holds[t.Name] = t.Hold
		}
		if !t.Known {
			c.keep(t.Name, desired)
			continue
		}
		for _, q := range t.Mine {
			desired[q] = true
		}
	}
	c.giveUp(now, desired)
	c.want(now, desired)
}

// keep makes what is owned of a topic desired again.
func (c *Core) keep(topic string, desired map[sdk.Queue]bool) {
	for q, e := range c.entries {
		if q.Topic == topic && e.desired {
			desired[q] = true
		}
	}
}

func (c *Core) giveUp(now time.Time, desired map[sdk.Queue]bool) {
	for _, q := range c.sorted() {
		e := c.entries[q]
		e.desired = desired[q]
		if e.desired {
			continue
		}
		switch e.state {
		case Owned:
			c.drain(now, q, e)
		case Waiting:
			delete(c.entries, q)
		case Draining:
		}
	}
}

func (c *Core) drain(now time.Time, q sdk.Queue, e *entry) {
	e.state, e.since = Draining, now
	c.act(Action{Kind: ActDrain, Queue: q, Epoch: e.epoch})
}

func (c *Core) want(now time.Time, desired map[sdk.Queue]bool) {
	for _, q := range slices.SortedFunc(maps.Keys(desired), sdk.Queue.Compare) {
		if e := c.entries[q]; e == nil {
			c.entries[q] = &entry{state: Waiting, desired: true, since: now}
			c.askAt = now
		}
	}
}

// peers takes the queues that nobody lists, and those that were waited for long enough. It says nothing about a queue that
// came to be waited for while the others were being asked: the next question does, at once.
func (c *Core) peers(now time.Time, holders map[sdk.Queue]string) {
	c.asking = false
	c.askAt = now.Add(askAgain)
	if c.stopping {
		return
	}
	for _, q := range c.waiting() {
		e := c.entries[q]
		if !e.asked {
			c.askAt = now
			continue
		}
		e.asked = false
		member, held := holders[q]
		if held && now.Sub(e.since) < HandOverLimit {
			e.member = member
			continue
		}
		if held {
			c.counters.Overlaps++
		}
		c.epoch += epochStep
		e.state, e.epoch, e.since, e.member = Owned, c.epoch, now, member
		c.counters.Acquired++
		c.act(Action{Kind: ActAcquire, Queue: q, Epoch: e.epoch})
	}
}

func (c *Core) released(now time.Time, q sdk.Queue) {
	e := c.entries[q]
	if e == nil {
		return
	}
	c.counters.Released++
	if e.desired && !c.stopping { // wanted again meanwhile: a new epoch
		e.state, e.since = Waiting, now
		c.askAt = now
		return
	}
	delete(c.entries, q)
}

func (c *Core) stop() {
	c.stopping = true
	c.outdated = c.busy
	for _, q := range c.sorted() {
		e := c.entries[q]
		e.desired = false
		switch e.state {
		case Owned:
			c.drain(e.since, q, e)
		case Waiting:
			delete(c.entries, q)
		case Draining:
		}
	}
}

// rejoin begins as a new member does. What was asked before the leave is not believed any more.
func (c *Core) rejoin(now time.Time) {
	c.stopping = false
	c.roundAt = now
}

func (c *Core) sorted() []sdk.Queue {
	return slices.SortedFunc(maps.Keys(c.entries), sdk.Queue.Compare)
}

// balanced tells that every topic is known and all that is desired is owned.
func (c *Core) balanced() bool {
	if len(c.holds) > 0 {
		return false
	}
	for _, e := range c.entries {
		if e.desired && e.state == Draining {
			return false
		}
	}
	return true
}

// Empty tells that no queue is left: a stop is complete.
func (c *Core) Empty() bool { return len(c.entries) == 0 }

// Epoch is the last epoch given out.
func (c *Core) Epoch() uint64 { return c.epoch }

// Counters returns the counts so far.
func (c *Core) Counters() Counters { return c.counters }

// QueueState is where a queue stands, for status and for the other members.
type QueueState struct {
	Queue  sdk.Queue
	State  State
	Epoch  uint64
	Since  time.Time
	Member string
}

// Queues lists the queues of this member in order.
func (c *Core) Queues() []QueueState {
	out := make([]QueueState, 0, len(c.entries))
	for _, q := range c.sorted() {
		e := c.entries[q]
		out = append(out, QueueState{Queue: q, State: e.state, Epoch: e.epoch, Since: e.since, Member: e.member})
	}
	return out
}

// Holds tells, by topic, why a share is not what the strategy would give now.
func (c *Core) Holds() map[string]queue.Hold { return maps.Clone(c.holds) }
