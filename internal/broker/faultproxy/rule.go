package faultproxy

import (
	"context"
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Direction is where a frame is going.
type Direction uint8

// The directions.
const (
	Both Direction = iota // in rules only
	ToBroker
	ToClient
)

func (d Direction) reverse() Direction {
	if d == ToBroker {
		return ToClient
	}
	return ToBroker
}

// Frame is a frame as rules see it.
type Frame struct {
	Direction Direction
	// Code is the request's, also for its answer; 0 when that is not known.
	Code     wire.RequestCode
	Readable bool         // the header could be read
	Command  wire.Command // when Readable; its body aliases Raw
	Raw      []byte       // the whole frame
}

// IsResponse tells whether the frame is an answer.
func (f Frame) IsResponse() bool { return f.Readable && f.Command.IsResponse() }

// Rule says which frames are hit and what happens to them.
type Rule struct {
	Direction Direction
	// Codes are the codes of the requests whose frames are hit; none = all.
	Codes []wire.RequestCode
	// Answers and Requests narrow to one kind; neither = both.
	Answers, Requests bool
	Skip              int              // let so many pass first
	Times             int              // hit so many; 0 = all until lifted
	Match             func(Frame) bool // nil = all
	// Do is what happens: one of Garble, Delay, Drop, Cut, CutMidFrame, HalfClose, Refuse, Stall.
	Do Action
}

func (r Rule) matches(f Frame) bool {
	switch {
	case r.Direction != Both && r.Direction != f.Direction:
		return false
	case len(r.Codes) > 0 && !slices.Contains(r.Codes, f.Code):
		return false
	case r.Answers && !r.Requests && !f.IsResponse():
		return false
	case r.Requests && !r.Answers && (!f.Readable || f.Command.IsResponse()):
		return false
	}
	return r.Match == nil || r.Match(f)
}

// rules are tried in the order in which they were injected; the first that matches acts.
type rules struct {
	mu     sync.Mutex
	active []*Injection
}

// Injection is a rule at work. Its methods are safe for concurrent use.
type Injection struct {
	rules *rules
	rule  Rule

	mu      sync.Mutex
	skipped int
	hits    int
	changed chan struct{} // closed at each hit
}

// Inject puts a rule to work.
func (p *Proxy) Inject(r Rule) *Injection {
	i := &Injection{rules: &p.rules, rule: r, changed: make(chan struct{})}
	p.rules.mu.Lock()
	defer p.rules.mu.Unlock()
	p.rules.active = append(p.rules.active, i)
	return i
}

// Lift ends the rule.
func (i *Injection) Lift() {
	i.rules.mu.Lock()
	defer i.rules.mu.Unlock()
	i.rules.active = slices.DeleteFunc(i.rules.active, func(o *Injection) bool { return o == i })
}

// Hits is how many frames were hit.
func (i *Injection) Hits() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hits
}

// Wait blocks until n frames were hit.
func (i *Injection) Wait(ctx context.Context, n int) error {
	for {
		i.mu.Lock()
		hits, changed := i.hits, i.changed
		i.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *rules) find(f Frame) *Injection {
	r.mu.Lock()
	active := slices.Clone(r.active)
	r.mu.Unlock()
	for _, i := range active {
		if i.rule.matches(f) && i.hit() {
			return i
		}
	}
	return nil
}

func (i *Injection) hit() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.skipped < i.rule.Skip {
		i.skipped++
		return false
	}
	if i.rule.Times > 0 && i.hits >= i.rule.Times {
		return false
	}
	i.hits++
	close(i.changed)
	i.changed = make(chan struct{})
	return true
}
