package broker

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/streamd/streamd/internal/broker/hits"
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Request is a request as a fault's predicate sees it.
type Request struct {
	Code   wire.RequestCode
	Fields wire.Fields
	Body   []byte // valid during the call
	Oneway bool
	Client string // "ip:port"
}

// Fault says which requests are hit and what happens to them.
type Fault struct {
	// Codes are the request codes that are hit; none = all.
	Codes []wire.RequestCode
	// Skip lets this many matching requests pass first.
	Skip int
	// Times is how many requests are hit; 0 = all until the fault is lifted.
	Times int
	// Match narrows further; nil = all.
	Match func(Request) bool
	// Do is what happens: one of Refuse, DropRequest, DropAnswer, Delay, HalfClose, Cut, Reorder, Corrupt.
	Do Action
}

// Faults are the faults of one listener, tried in the order in which they were injected; the first that matches acts.
type Faults struct {
	mu     sync.Mutex
	active []*Injection
	some   atomic.Bool // there are active ones; spares others the mutex
}

func newFaults() *Faults { return &Faults{} }

// Injection is a fault at work. Its methods are safe for concurrent use.
type Injection struct {
	faults *Faults
	fault  Fault

	*hits.Counter // of requests
}

// Inject puts a fault to work.
func (f *Faults) Inject(fault Fault) *Injection {
	i := &Injection{faults: f, fault: fault, Counter: hits.New(fault.Skip, fault.Times)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = append(f.active, i)
	f.some.Store(true)
	return i
}

// Lift ends a fault. Answers it still holds back are sent.
func (i *Injection) Lift() {
	f := i.faults
	f.mu.Lock()
	f.active = slices.DeleteFunc(f.active, func(o *Injection) bool { return o == i })
	f.some.Store(len(f.active) > 0)
	f.mu.Unlock()
	if lifted, ok := i.fault.Do.(interface{ lift() }); ok {
		lifted.lift()
	}
}

// apply lets the first fault that matches act on a request, or passes it on.
func (f *Faults) apply(r *remote.Request, next func(*remote.Request)) {
	if i := f.find(r); i != nil {
		i.fault.Do.act(r, next)
		return
	}
	next(r)
}

func (f *Faults) find(r *remote.Request) *Injection {
	if !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	active := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range active {
		if i.hit(r) {
			return i
		}
	}
	return nil
}

// hit tells whether the fault acts on r, and counts that.
func (i *Injection) hit(r *remote.Request) bool {
	c := r.Command
	if len(i.fault.Codes) > 0 && !slices.Contains(i.fault.Codes, c.RequestCode()) {
		return false
	}
	if i.fault.Match != nil && !i.fault.Match(Request{
		Code: c.RequestCode(), Fields: c.Ext, Body: c.Body, Oneway: c.IsOneway(), Client: r.Conn.Remote().String(),
	}) {
		return false
	}
	return i.Hit()
}
