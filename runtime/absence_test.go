package runtime_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

var errNoDatabase = errors.New("no database")

// pair is two members of one group whose handlers live apart.
type pair struct {
	*rig
	a, b         *runtime.Runtime
	handlerOfB   *clustertest.Handler
	downA, downB atomic.Bool
	refuse       atomic.Int32 // joins that the broker refuses
}

func (p *pair) startBoth(change ...func(*runtime.StreamConfig)) {
	p.a = p.start(p.config("c1", change...))
	p.b = p.start(p.configB(change...))
	wait(3 * time.Second)
}

func (p *pair) configB(change ...func(*runtime.StreamConfig)) runtime.Config {
	cfg := p.config("c2", change...)
	cfg.Handlers = handlers{p.handlerOfB}
	return cfg
}

func newPair(t *testing.T, queues int) *pair {
	t.Helper()
	p := &pair{rig: newRig(t, queues, ack)}
	unless := func(down *atomic.Bool) func() error {
		return func() error {
			if down.Load() {
				return errNoDatabase
			}
			return nil
		}
	}
	p.handler.Down = unless(&p.downA)
	p.handlerOfB = &clustertest.Handler{Do: ack, Down: unless(&p.downB)}
	p.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
		if op == "Join" && p.refuse.Add(-1) >= 0 {
			return errors.New("busy")
		}
		return nil
	}
	p.startBoth()
	return p
}

// trickle stores a message in each queue every 100 ms for d.
func (p *pair) trickle(queues int, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); nap(100 * time.Millisecond) {
		for i := range queues {
			p.cluster.Put(clustertest.Queue(topicName, i), rocketmq.OutgoingMessage{Body: []byte("x")})
		}
	}
}

func (p *pair) loseB() {
	p.downB.Store(true)
	p.handlerOfB.Lose(frame.CauseCrash, "exit status 1")
}

// A handler that stays down: its member gives the queues to the other, and comes back when the handler has answered for a
// while. Nothing is lost and nothing comes twice.
func TestMemberWithoutAHandlerLeavesAndReturns(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		p := newPair(t, 4)
		if x, y := owned(p.a), owned(p.b); len(x) != 2 || len(y) != 2 {
			t.Fatalf("owned %v and %v", x, y)
		}
		p.loseB()
		go p.trickle(4, 3*time.Minute)
		wait(50 * time.Second)
		if got := owned(p.b); len(got) != 2 {
			t.Errorf("owns %v within the hold, want its share", got)
		}
		wait(40 * time.Second) // the second of two by its id holds for 75 s, and looks each second
		st := p.b.Status()
		if !holds(st, runtime.HoldHandlerDown) || st.Streams[0].Joined || len(st.Streams[0].Queues) != 0 {
			t.Errorf("after the hold: %+v", st.Streams[0])
		}
		if got := p.cluster.Members(group); !slices.Equal(got, []string{"c1"}) {
			t.Errorf("members %v, want c1 alone", got)
		}
		if got := owned(p.a); len(got) != 4 {
			t.Errorf("the other owns %v, want all", got)
		}
		p.downB.Store(false)
		wait(10 * time.Second)
		if got := owned(p.b); len(got) != 0 {
			t.Errorf("owns %v although the handler has only just come back", got)
		}
		wait(time.Minute)
		if x, y := owned(p.a), owned(p.b); len(x) != 2 || len(y) != 2 {
			t.Errorf("after the return owned %v and %v", x, y)
		}
		if st := p.b.Status(); holds(st, runtime.HoldHandlerDown) || !st.Streams[0].Joined {
			t.Errorf("after the return: %+v", st.Streams[0])
		}
		wait(2 * time.Minute)
		p.committedAll(4)
		seen := map[string]int{}
		for _, rec := range append(p.handler.Handled(), p.handlerOfB.Handled()...) {
			seen[rec.ID]++
		}
		twice := 0
		for _, n := range seen {
			if n > 1 {
				twice++
			}
		}
		if len(seen) != p.total(4) || twice > 0 {
			t.Errorf("%d of %d messages handled, %d of them twice", len(seen), p.total(4), twice)
		}
		p.stop(p.a)
		p.stop(p.b)
	})
}

// When all handlers are down the last member has nobody to give its queues to: it holds them.
func TestLastMemberHoldsItsQueues(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		p := newPair(t, 4)
		p.downA.Store(true)
		p.loseB()
		p.handler.Lose(frame.CauseCrash, "exit status 1")
		wait(10 * time.Minute)
		if x, y := owned(p.a), owned(p.b); len(x)+len(y) != 4 || len(x)*len(y) != 0 {
			t.Errorf("owned %v and %v, want one of them with all", x, y)
		}
		p.stop(p.a)
		p.stop(p.b)
	})
}

// then: hold keeps the share, and a member that is away when it is told so returns.
func TestToldToStay(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		p := newPair(t, 4)
		p.loseB()
		wait(90 * time.Second)
		if got := p.cluster.Members(group); len(got) != 1 {
			t.Fatalf("members %v, want c1 alone", got)
		}
		if err := p.b.Apply(t.Context(), p.configB(func(s *runtime.StreamConfig) { s.HandlerDown.Stay = true })); err != nil {
			t.Fatal(err)
		}
		wait(10 * time.Minute)
		if got := owned(p.b); len(got) != 2 {
			t.Errorf("owns %v, want its share", got)
		}
		p.stop(p.b)
		p.stop(p.a)
	})
}

// A stop finds a member that is away, or on its way out, as any other.
func TestStopOfAMemberThatIsAway(t *testing.T) {
	for _, after := range []time.Duration{61 * time.Second, 2 * time.Minute} {
		bubbletest.Run(t, func(t *testing.T) {
			p := newPair(t, 4)
			p.loseB()
			wait(after)
			p.stop(p.b)
			p.stop(p.a)
			if got := p.cluster.Members(group); len(got) != 0 {
				t.Errorf("members %v after the stop", got)
			}
		})
	}
}

// A broker that takes no member back is asked again.
func TestReturnIsTriedAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		p := newPair(t, 4)
		p.loseB()
		wait(90 * time.Second)
		p.refuse.Store(3)
		p.downB.Store(false)
		wait(2 * time.Minute)
		if got := owned(p.b); p.refuse.Load() >= 0 || len(got) != 2 {
			t.Errorf("owns %v, %d refusals left", got, p.refuse.Load())
		}
		p.stop(p.a)
		p.stop(p.b)
	})
}
