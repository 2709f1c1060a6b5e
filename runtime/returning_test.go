package runtime_test

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
)

// way is one member's way to the brokers, which can be cut.
type way struct {
	net *memnet.Network

	mu    sync.Mutex
	off   map[string]bool
	conns map[string][]net.Conn
}

func (f *fleet) way() *way {
	return &way{net: f.net, off: map[string]bool{}, conns: map[string][]net.Conn{}}
}

func (w *way) dial(ctx context.Context, addr string) (net.Conn, error) {
	w.mu.Lock()
	off := w.off[addr]
	w.mu.Unlock()
	if off {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	nc, err := w.net.Dial(ctx, addr)
	if err == nil {
		w.mu.Lock()
		w.conns[addr] = append(w.conns[addr], nc)
		w.mu.Unlock()
	}
	return nc, err
}

// cut refuses connections to a broker and ends those that stand.
func (w *way) cut(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off[addr] = true
	for _, nc := range w.conns[addr] {
		_ = nc.Close()
	}
	w.conns[addr] = nil
}

func (w *way) mend(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off[addr] = false
}

// A broker that lost all its connections lists at first only who has come back. Who comes later has its queues still, and
// nobody takes them meanwhile: nothing is handled twice.
func TestWhoComesBackLaterKeepsItsQueues(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		one, stopOne := f.member("10.0.0.3@1#1")
		late := f.way()
		two, stopTwo := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#2", Dial: late.dial})
		wait(40 * time.Second)
		f.put(f.a, 2, 20)
		wait(5 * time.Second)
		for range 2 {
			late.cut(f.a.Address())
			f.a.DropConnections()
			f.put(f.a, 2, 20)
			wait(2 * time.Second)
			if got := owned(one); len(got) != 1 || !holds(one.Status(), runtime.HoldMembersUnknown) {
				t.Errorf("back before the other it owns %v, holds %+v", got, one.Status().Streams[0].Holds)
			}
			late.mend(f.a.Address())
			wait(20 * time.Second)
			if x, y := owned(one), owned(two); len(x) != 1 || len(y) != 1 || holds(one.Status(), runtime.HoldMembersUnknown) {
				t.Errorf("all back they own %v and %v, holds %+v", x, y, one.Status().Streams[0].Holds)
			}
		}
		f.all(1)
		f.committed(f.a, topicName, 2)
		stopOne()
		stopTwo()
	})
}

// Who does not come back at all is waited for a few seconds, and no longer.
func TestWhoStaysAwayIsReplaced(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		one, stopOne := f.member("10.0.0.3@1#1")
		gone := f.way()
		_, stopTwo := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#2", Dial: gone.dial})
		wait(40 * time.Second)
		gone.cut(f.a.Address())
		f.a.DropConnections()
		f.put(f.a, 2, 20)
		wait(8 * time.Second)
		if got := owned(one); len(got) != 2 {
			t.Errorf("owns %v, want all", got)
		}
		f.all(1)
		gone.mend(f.a.Address())
		wait(10 * time.Second)
		stopOne()
		stopTwo()
	})
}

// A member that lost its connection to one of two brokers is gone from that broker's list. It is asked through the other, and
// has its queues still.
func TestMemberThatOneBrokerLostIsAskedThroughAnother(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		// The last of two choices: broker-a is asked first, whatever is asked.
		one, stopOne := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#1", Dial: f.dial, Rand: func() float64 { return 0.999 }})
		torn := f.way()
		two, stopTwo := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#2", Dial: torn.dial})
		wait(40 * time.Second)
		if x, y := ownedAt(one, topicName), ownedAt(two, topicName); x["broker-a"] != 2 || y["broker-b"] != 2 {
			t.Fatalf("owned %v and %v", x, y)
		}
		torn.cut(f.a.Address())
		f.put(f.a, 2, 20)
		f.put(f.b, 2, 20)
		wait(4 * time.Second)
		if got := ownedAt(one, topicName); got["broker-b"] != 0 || !holds(one.Status(), runtime.HoldHandOver) {
			t.Errorf("took what the other has: %v, queues %+v", got, one.Status().Streams[0].Queues)
		}
		torn.mend(f.a.Address())
		wait(20 * time.Second)
		if x, y := ownedAt(one, topicName), ownedAt(two, topicName); x["broker-a"] != 2 || y["broker-b"] != 2 {
			t.Errorf("afterwards owned %v and %v", x, y)
		}
		if n := one.Status().Streams[0].Counters.Group.Overlaps; n != 0 {
			t.Errorf("%d overlaps", n)
		}
		f.all(1)
		stopOne()
		stopTwo()
	})
}

// A topic gets more queues, and one member learns it long before the other: route caches are renewed at different moments. The
// one that asks for a queue has the other look at its route, so that the queue is handed over and not taken.
func TestTopicGrowsForOneMemberFirst(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		quick, stopQuick := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#1", Dial: f.dial, RouteInterval: time.Second})
		slow, stopSlow := f.memberOver(rocketmq.Config{ClientID: "10.0.0.3@1#2", Dial: f.dial, RouteInterval: 10 * time.Minute})
		wait(40 * time.Second)
		if x, y := owned(quick), owned(slow); len(x) != 1 || len(y) != 1 {
			t.Fatalf("owned %v and %v", x, y)
		}
		f.a.CreateTopic(topicName, 8)
		for range 30 {
			f.put(f.a, 8, 1)
			wait(time.Second)
		}
		if x, y := owned(quick), owned(slow); !slices.Equal(x, []int32{0, 1, 2, 3}) || !slices.Equal(y, []int32{4, 5, 6, 7}) {
			t.Errorf("owned %v and %v", x, y)
		}
		for _, e := range []*runtime.Runtime{quick, slow} {
			if n := e.Status().Streams[0].Counters.Group.Overlaps; n != 0 {
				t.Errorf("%d overlaps", n)
			}
		}
		f.all(1)
		f.committed(f.a, topicName, 8)
		stopQuick()
		stopSlow()
	})
}
