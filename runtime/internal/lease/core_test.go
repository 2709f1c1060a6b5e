package lease

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

func q(broker string, id int32) sdk.Queue { return sdk.Queue{Topic: "T", Broker: broker, ID: id} }

type table struct {
	t   *testing.T
	c   *Core
	now time.Time
}

func (r *table) step(in Input) []Action { return r.c.Step(r.now, in) }

func calls(as []Action, kind ActionKind) (queues []sdk.Queue) {
	for _, a := range as {
		if a.Kind == kind {
			queues = append(queues, a.Queues...)
		}
	}
	return queues
}

func told(as []Action) (locks []queue.Lock) {
	for _, a := range as {
		if a.Kind == ActTell {
			locks = append(locks, a.Lock)
		}
	}
	return locks
}

func (r *table) answer(sent time.Time, asked, granted []sdk.Queue, err error) []Action {
	return r.step(Input{Kind: InLocked, Broker: asked[0].Broker, Queues: asked, Granted: granted, Sent: sent, Err: err})
}

func TestLifeOfALock(t *testing.T) {
	r := &table{t: t, c: NewCore(), now: time.Unix(1000, 0)}
	a0, a1, b0 := q("a", 0), q("a", 1), q("b", 0)
	if as := r.step(Input{Kind: InWant, Queue: a0}); !slices.Equal(calls(as, ActLock), []sdk.Queue{a0}) {
		t.Fatalf("want: %+v", as)
	}
	if as := r.step(Input{Kind: InWant, Queue: a1}); len(calls(as, ActLock)) != 0 {
		t.Errorf("a second call to a broker that has one: %+v", as)
	}
	if as := r.step(Input{Kind: InWant, Queue: b0}); !slices.Equal(calls(as, ActLock), []sdk.Queue{b0}) {
		t.Errorf("another broker waits: %+v", as)
	}
	sent := r.now
	r.now = r.now.Add(time.Second)
	as := r.answer(sent, []sdk.Queue{a0}, []sdk.Queue{a0}, nil)
	if l := told(as); len(l) != 1 || !l[0].Held || !l[0].At.Equal(sent) || !l[0].Until.Equal(sent.Add(Fence)) {
		t.Errorf("granted: %+v", as)
	}
	if got := calls(as, ActLock); !slices.Equal(got, []sdk.Queue{a1}) {
		t.Errorf("what waited: %+v", got)
	}
	r.answer(sent, []sdk.Queue{a1}, []sdk.Queue{a1}, nil)
	r.answer(r.now, []sdk.Queue{b0}, nil, nil)
	r.now = sent.Add(Renew)
	if got := calls(r.step(Input{}), ActLock); !slices.Equal(got, []sdk.Queue{a0, a1, b0}) {
		t.Errorf("renewed %v, want all of the broker together and the refused one", got)
	}
	// Nobody answers for broker a: it is asked again, and lost in time.
	lost := false
	for !lost && r.now.Before(sent.Add(time.Minute)) {
		as = r.answer(r.now, []sdk.Queue{a0, a1}, nil, errors.New("no route to host"))
		for _, l := range told(as) {
			lost = lost || !l.Held
		}
		if !lost {
			r.now = r.now.Add(500 * time.Millisecond)
		}
	}
	if at := r.now.Sub(sent); at != Limit {
		t.Errorf("lost after %s, want %s", at, Limit)
	}
	r.now = r.now.Add(failedPause)
	if got := calls(r.step(Input{}), ActLock); !slices.Equal(got, []sdk.Queue{a0, a1}) {
		t.Errorf("asked for %v after the loss", got)
	}
	if as := r.step(Input{Kind: InLeave, Queue: a1, Unlock: true}); len(calls(as, ActUnlock)) != 0 || slices.ContainsFunc(as, func(a Action) bool { return a.Kind == ActReleased }) {
		t.Errorf("left while a call may still get it: %+v", as)
	}
	if as := r.answer(r.now, []sdk.Queue{a0, a1}, []sdk.Queue{a0, a1}, nil); !slices.Equal(calls(as, ActUnlock), []sdk.Queue{a1}) {
		t.Errorf("not given back: %+v", as)
	}
	if as := r.step(Input{Kind: InUnlocked, Broker: "a", Queues: []sdk.Queue{a1}}); !slices.ContainsFunc(as, func(a Action) bool { return a.Kind == ActReleased && a.Queue == a1 }) {
		t.Errorf("not released: %+v", as)
	}
	if as := r.step(Input{Kind: InLeave, Queue: a0}); len(calls(as, ActUnlock)) != 0 || len(as) == 0 {
		t.Errorf("a lock that is to run out: %+v", as)
	}
}

// A lock that nobody renewed is the client's at the broker for half a minute more: it is given back. One that another client
// has is not.
func TestLeavingALockThatIsLost(t *testing.T) {
	for name, taken := range map[string]bool{"run out": false, "taken": true} {
		t.Run(name, func(t *testing.T) {
			r := &table{t: t, c: NewCore(), now: time.Unix(1000, 0)}
			a := []sdk.Queue{q("a", 0)}
			r.step(Input{Kind: InWant, Queue: a[0]})
			r.answer(r.now, a, a, nil)
			r.now = r.now.Add(Renew)
			r.step(Input{})
			var lost []Action
			if taken {
				lost = r.answer(r.now, a, nil, nil)
			} else {
				r.now = r.now.Add(Limit)
				lost = r.answer(r.now, a, nil, errors.New("no route to host"))
			}
			if l := told(lost); len(l) == 0 || l[len(l)-1].Held || l[len(l)-1].Taken != taken {
				t.Fatalf("lost: %+v", lost)
			}
			if got := calls(r.step(Input{Kind: InLeave, Queue: a[0], Unlock: true}), ActUnlock); (len(got) == 0) != taken {
				t.Errorf("given back: %v", got)
			}
		})
	}
}

// A suspended host: the clock that Go measures with has stood still, the broker's has not.
func TestLockRunsOutWhileTheHostIsSuspended(t *testing.T) {
	r := &table{t: t, c: NewCore(), now: time.Now()}
	a := []sdk.Queue{q("a", 0)}
	r.step(Input{Kind: InWant, Queue: a[0]})
	r.answer(r.now, a, a, nil)
	r.now = suspended(r.now.Add(Limit+time.Second), Limit)
	if l := told(r.step(Input{})); len(l) != 1 || l[0].Held {
		t.Errorf("told %+v", l)
	}
	own := queue.NewOwnership(a[0], 1, 0, nil, nil)
	own.Extend(time.Now().Add(time.Minute))
	if own.LeaseOver(time.Now()) || !own.LeaseOver(suspended(time.Now().Add(2*time.Minute), 2*time.Minute)) {
		t.Error("messages start, or not, by the clock that stood still")
	}
}

// suspended is t on a host whose clock of measured time has missed d.
func suspended(t time.Time, d time.Duration) time.Time {
	type layout struct {
		wall uint64
		ext  int64 // nanoseconds of measured time, as long as the time has both
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).ext -= int64(d) //nolint:gosec // there is no other way to make the two differ
	return t
}

// The answer to a process that stood still comes too late to count.
func TestLateGrantIsWorthNothing(t *testing.T) {
	r := &table{t: t, c: NewCore(), now: time.Unix(1000, 0)}
	a := []sdk.Queue{q("a", 0)}
	r.step(Input{Kind: InWant, Queue: a[0]})
	sent := r.now
	r.now = r.now.Add(Limit)
	as := r.answer(sent, a, a, nil)
	if len(told(as)) != 0 || !slices.Equal(calls(as, ActLock), a) {
		t.Errorf("%+v", as)
	}
}

func TestRefusedLockIsAskedForAndNamed(t *testing.T) {
	r := &table{t: t, c: NewCore(), now: time.Unix(1000, 0)}
	a := []sdk.Queue{q("a", 0)}
	r.step(Input{Kind: InWant, Queue: a[0]})
	asked := 0
	for range 5 {
		as := r.answer(r.now, a, nil, nil)
		if l := told(as); len(l) != 1 || l[0].Held || l[0].Text == "" {
			t.Errorf("refused: %+v", as)
		}
		if len(calls(as, ActAsk)) > 0 {
			asked++
			r.step(Input{Kind: InHolders, Holders: map[sdk.Queue]string{a[0]: "java@1"}})
		}
		if at := r.c.Next(); at.Sub(r.now) != refusedPause {
			t.Errorf("asked for again after %s", at.Sub(r.now))
		}
		r.now = r.now.Add(refusedPause)
		if as = r.step(Input{}); !slices.Equal(calls(as, ActLock), a) {
			t.Errorf("not asked for again: %+v", as)
		}
	}
	if l := told(r.answer(r.now, a, nil, nil)); asked != 1 || l[0].Member != "java@1" || !strings.Contains(l[0].Text, "java@1") {
		t.Errorf("asked %d times for the holder, told %+v", asked, l)
	}
}

// Two clients and a broker whose calls are lost or late: never do both count a queue theirs by what they were told.
func TestTwoClientsNeverHoldALock(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		now := time.Unix(1000, 0)
		one := q("a", 0)
		var owner int
		var renewed time.Time
		type side struct {
			c     *Core
			until time.Time
			call  []Action
			sent  time.Time
		}
		sides := [3]*side{1: {c: NewCore()}, 2: {c: NewCore()}}
		step := func(i int, in Input) {
			for _, a := range sides[i].c.Step(now, in) {
				switch a.Kind {
				case ActLock:
					sides[i].call, sides[i].sent = append(sides[i].call, a), now
				case ActTell:
					if sides[i].until = a.Lock.Until; !a.Lock.Held {
						sides[i].until = time.Time{}
					}
				default:
				}
			}
		}
		step(1, Input{Kind: InWant, Queue: one})
		step(2, Input{Kind: InWant, Queue: one})
		for range 600 {
			now = now.Add(time.Duration(rnd.IntN(4000)) * time.Millisecond)
			i := 1 + rnd.IntN(2)
			if rnd.IntN(40) == 0 {
				now = now.Add(time.Duration(rnd.IntN(120)) * time.Second) // all but the clock stands still
			}
			if s := sides[i]; len(s.call) > 0 && rnd.IntN(3) > 0 {
				in := Input{Kind: InLocked, Broker: "a", Queues: s.call[0].Queues, Sent: s.sent}
				s.call = s.call[1:]
				switch free := owner == 0 || owner == i || now.Sub(renewed) > 60*time.Second; {
				case rnd.IntN(4) == 0:
					in.Err = errors.New("lost") // before the broker or on the way back
					if free && rnd.IntN(2) == 0 {
						owner, renewed = i, now
					}
				case free:
					owner, renewed, in.Granted = i, now, in.Queues
				}
				step(i, in)
			} else {
				step(i, Input{})
			}
			if now.Before(sides[1].until) && now.Before(sides[2].until) {
				t.Fatalf("seed %d: both hold the lock", seed)
			}
		}
	}
}
