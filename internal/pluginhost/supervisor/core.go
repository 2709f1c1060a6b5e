package supervisor

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Core decides for one process. Not safe for concurrent use: one goroutine feeds it.
type Core struct {
	policy Policy
	rng    *rand.Rand
	rules  map[rule]handler

	state      State
	since      time.Time
	generation uint64
	wanted     bool
	fresh      func() uint64

	pause     time.Duration
	exits     []time.Time
	open      bool
	stillborn bool      // the last end was before Ready
	wake      time.Time // the tick that is awaited
	restarts  int
	startFail int
}

// New makes a Core in state Absent. rng gives the jitter; fresh gives the numbers of generations, each once.
func New(policy Policy, rng *rand.Rand, fresh func() uint64) *Core {
	return &Core{policy: policy, rng: rng, rules: transitions(), fresh: fresh}
}

type rule struct {
	from State
	on   Kind
}

type handler func(c *Core, now time.Time, e Event) []Action

// transitions is the whole table. A pair that is not in it is nothing: the event is late or does not apply.
func transitions() map[rule]handler {
	return map[rule]handler{
		{Absent, Want}:  (*Core).probe,
		{Stopped, Want}: (*Core).probe,

		{Probing, Probed}:      step(Starting, Start),
		{Probing, StepFailed}:  (*Core).ended,
		{Probing, Unwant}:      (*Core).discard,
		{Starting, Started}:    step(Configuring, Configure),
		{Starting, StepFailed}: (*Core).ended,
		{Starting, Exited}:     (*Core).ended,
		{Starting, Unwant}:     (*Core).kill,

		{Configuring, Configured}: (*Core).ready,
		{Configuring, StepFailed}: (*Core).ended,
		{Configuring, Exited}:     (*Core).ended,
		{Configuring, Unwant}:     (*Core).kill,

		{Ready, Exited}: (*Core).ended,
		{Ready, Tick}:   (*Core).forget,
		{Ready, Unwant}: step(Draining, Halt, Drain),

		{Draining, Drained}:    step(Draining, Kill),
		{Draining, Exited}:     (*Core).ended,
		{Draining, StepFailed}: (*Core).ended,

		{Backoff, Tick}:   (*Core).probe,
		{Failed, Tick}:    (*Core).probe,
		{Backoff, Unwant}: (*Core).stop,
		{Failed, Unwant}:  (*Core).stop,
		{Absent, Unwant}:  (*Core).stop,

		{Backoff, Renew}:     (*Core).renew,
		{Failed, Renew}:      (*Core).renew,
		{Probing, Renew}:     (*Core).forget, // a try is under way; what it fails of is the first failure
		{Starting, Renew}:    (*Core).forget,
		{Configuring, Renew}: (*Core).forget,
		{Backoff, Works}:     (*Core).follow,
		{Failed, Works}:      (*Core).follow,
	}
}

// Step takes an event and returns what to do, in order.
func (c *Core) Step(now time.Time, e Event) []Action {
	switch e.Kind {
	case Want:
		c.wanted = true
	case Unwant:
		c.wanted = false
	case Tick:
		if c.wake.IsZero() || now.Before(c.wake) {
			return nil
		}
		c.wake = time.Time{}
	default:
		always := e.Kind == Works || e.Kind == Renew && e.Generation == 0
		if !always && e.Generation != c.generation {
			return nil
		}
	}
	if h, ok := c.rules[rule{c.state, e.Kind}]; ok {
		return h(c, now, e)
	}
	return nil
}

// Status tells where the process is.
func (c *Core) Status() Status {
	return Status{
		State: c.state, Generation: c.generation, Since: c.since, Wanted: c.wanted, Restarts: c.restarts,
		StartFailures: c.startFail, Exits: len(c.exits), Open: c.open, NextTry: c.nextTry(),
	}
}

func (c *Core) nextTry() time.Time {
	if c.state == Backoff || c.state == Failed {
		return c.wake
	}
	return time.Time{}
}

func (c *Core) enter(s State, now time.Time) {
	if c.state != s {
		c.since = now
	}
	c.state = s
}

// step is a transition that only moves on.
func step(to State, do ...Do) handler {
	return func(c *Core, now time.Time, _ Event) []Action {
		c.enter(to, now)
		c.wake = time.Time{}
		actions := make([]Action, len(do))
		for i, d := range do {
			actions[i] = Action{Do: d, Generation: c.generation}
		}
		return actions
	}
}

func (c *Core) probe(now time.Time, _ Event) []Action {
	if c.generation != 0 && c.state != Stopped {
		c.restarts++
	}
	c.generation = c.fresh()
	return step(Probing, Probe)(c, now, Event{})
}

// ready serves, and looks again after the time that makes it healthy.
func (c *Core) ready(now time.Time, _ Event) []Action {
	actions := step(Ready, Serve)(c, now, Event{})
	c.startFail = 0
	return append(actions, c.wakeAt(now.Add(c.policy.Healthy)))
}

// forget drops earlier failures: it is healthy, or not what it was.
func (c *Core) forget(time.Time, Event) []Action {
	c.pause, c.exits, c.open = 0, nil, false
	return nil
}

// renew tries at once, as if nothing had failed yet.
func (c *Core) renew(now time.Time, e Event) []Action {
	c.forget(now, e)
	return c.probe(now, e)
}

// follow tries at once what ended before it was ready, since others of its kind come up by now. A plugin that crashes on
// messages comes up each time too, and must not get around its breaker so.
func (c *Core) follow(now time.Time, e Event) []Action {
	if !c.stillborn {
		return nil
	}
	return c.probe(now, e)
}

func (c *Core) kill(now time.Time, _ Event) []Action { return step(Draining, Kill)(c, now, Event{}) }

// discard gives up a try that has no process yet: what comes of it is late.
func (c *Core) discard(now time.Time, _ Event) []Action {
	c.generation = c.fresh()
	return c.stop(now, Event{})
}

func (c *Core) stop(now time.Time, _ Event) []Action {
	return step(Stopped)(c, now, Event{})
}

// ended is after each end of a process and each failed try.
func (c *Core) ended(now time.Time, e Event) []Action {
	serving := c.state == Ready
	if c.state == Draining && !e.Crash && c.wanted {
		return c.probe(now, e) // wanted again in the meantime: no fault, no pause
	}
	if !c.wanted {
		return c.halt(serving, c.stop(now, e))
	}
	c.stillborn = c.state == Probing || c.state == Starting || c.state == Configuring
	if e.Crash {
		c.count(now)
	} else if c.stillborn {
		c.startFail++
	}
	wait := c.backoff()
	if c.open {
		c.enter(Failed, now)
		wait = c.policy.HalfOpen - time.Duration(c.rng.Float64()*0.2*float64(c.policy.HalfOpen))
	} else {
		c.enter(Backoff, now)
	}
	return c.halt(serving, []Action{c.wakeAt(now.Add(wait))})
}

func (c *Core) halt(serving bool, actions []Action) []Action {
	if !serving {
		return actions
	}
	return append([]Action{{Do: Halt, Generation: c.generation}}, actions...)
}

// count adds a crash to the breaker's window and opens it when it is full. An open breaker stays open.
func (c *Core) count(now time.Time) {
	if c.policy.Solo {
		return
	}
	c.exits = slices.DeleteFunc(c.exits, func(t time.Time) bool { return now.Sub(t) > c.policy.Window })
	c.exits = append(c.exits, now)
	c.open = c.open || len(c.exits) >= c.policy.Exits
}

// backoff doubles the pause and takes between half and all of it.
func (c *Core) backoff() time.Duration {
	c.pause = min(max(2*c.pause, c.policy.MinPause), c.policy.MaxPause)
	return c.pause/2 + time.Duration(c.rng.Float64()*float64(c.pause)/2)
}

func (c *Core) wakeAt(at time.Time) Action {
	c.wake = at
	return Action{Do: Wake, Generation: c.generation, At: at}
}
