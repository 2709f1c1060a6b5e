package faultproxy

import (
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/broker/hits"
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

	*hits.Counter // of frames
}

// Inject puts a rule to work.
func (p *Proxy) Inject(r Rule) *Injection {
	i := &Injection{rules: &p.rules, rule: r, Counter: hits.New(r.Skip, r.Times)}
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

func (r *rules) find(f Frame) *Injection {
	r.mu.Lock()
	active := slices.Clone(r.active)
	r.mu.Unlock()
	for _, i := range active {
		if i.rule.matches(f) && i.Hit() {
			return i
		}
	}
	return nil
}
