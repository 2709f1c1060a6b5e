package queue

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// lookout is a broker and a dispatcher that a worker's loop is watched with.
type lookout struct {
	t *testing.T
	q sdk.Queue

	mu       sync.Mutex
	asked    int // for the committed offset
	refusing bool
	stored   int64
	commits  []int64
	reset    bool                                 // commits are refused: a reset waits
	canceled func() (*rocketmq.PullResult, error) // what a pull that is given up is answered; nil = canceled
	pulls    []int64                              // offsets
	pending  func(*rocketmq.PullResult, error)
	offered  []*Delivery
	now      func() time.Time
	owned    func() int
}

func newLookout(t *testing.T) *lookout {
	t.Helper()
	return &lookout{t: t, q: sdk.Queue{Topic: "T", Broker: "b"}, now: time.Now, owned: func() int { return 1 }}
}

func (o *lookout) worker(s *Settings) *Worker {
	return NewWorker(Config{
		Group: "G", Queue: o.q, Settings: func() *Settings { return s }, Broker: o, Sink: o, Now: func() time.Time { return o.now() },
		Rand: func() float64 { return 0 }, Logger: slog.New(slog.DiscardHandler), Released: func(Report) {}, Owned: func() int { return o.owned() },
	})
}

func (o *lookout) Committed(context.Context, string, sdk.Queue) (int64, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked++; o.refusing {
		return 0, false, errors.New("no answer")
	}
	return o.stored, true, nil
}

func (o *lookout) Commit(_ context.Context, _ string, _ sdk.Queue, offset int64) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reset {
		return true, nil
	}
	o.stored, o.commits = offset, append(o.commits, offset)
	return false, nil
}

func (o *lookout) MinOffset(context.Context, sdk.Queue) (int64, error)           { return 0, nil }
func (o *lookout) MaxOffset(context.Context, sdk.Queue) (int64, error)           { return 0, nil }
func (o *lookout) OffsetAt(context.Context, sdk.Queue, time.Time) (int64, error) { return 0, nil }

func (o *lookout) Pull(context.Context, *rocketmq.PullRequest) (*rocketmq.PullResult, error) {
	return nil, errors.New("StartPull is there")
}

func (o *lookout) StartPull(req *rocketmq.PullRequest, done func(*rocketmq.PullResult, error)) (cancel func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pulls, o.pending = append(o.pulls, req.Offset), done
	return func() {
		o.mu.Lock()
		done, canceled := o.pending, o.canceled
		o.pending = nil
		o.mu.Unlock()
		switch {
		case done == nil:
		case canceled != nil:
			done(canceled())
		default:
			done(nil, context.Canceled)
		}
	}, true
}

// arrive answers the pull under way with n messages from offset on.
func (o *lookout) arrive(offset int64, n int) {
	var body []byte
	for i := range n {
		m := wire.Message{Topic: []byte("T"), QueueOffset: offset + int64(i), Body: []byte(strconv.Itoa(i))}
		m.BodyCRC = wire.BodyCRC(m.Body)
		m.StoreHost, m.BornHost = netip.MustParseAddrPort("127.0.0.1:10911"), netip.MustParseAddrPort("127.0.0.1:1")
		var err error
		if body, err = m.Append(body); err != nil {
			o.t.Fatal(err)
		}
	}
	o.mu.Lock()
	done := o.pending
	o.pending = nil
	o.mu.Unlock()
	done(&rocketmq.PullResult{Status: rocketmq.PullFound, Next: offset + int64(n), Max: offset + int64(n), Body: body, Release: func() {}}, nil)
	synctest.Wait()
}

func (o *lookout) Offer(_ *Ownership, ds []Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offered = append(o.offered, pointersTo(ds)...)
}

func (o *lookout) Revoke(own *Ownership, _ bool) {
	o.mu.Lock()
	ds := o.offered
	o.offered = nil
	o.mu.Unlock()
	own.Drop(ds, false)
}

// settle settles the first n messages that were offered.
func (o *lookout) settle(n int) {
	o.mu.Lock()
	ds := o.offered[:n:n]
	o.offered = o.offered[n:]
	o.mu.Unlock()
	own := ds[0].Own
	own.Sent(n)
	own.Settle(ds)
}

func pointersTo(ds []Delivery) []*Delivery {
	ps := make([]*Delivery, len(ds))
	for i := range ds {
		ps[i] = &ds[i]
	}
	return ps
}

func pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func (o *lookout) end(w *Worker) {
	w.Drain(true)
	<-w.Done()
}

// A process may stand still at any place, also between a worker's look at what is due and its look at how long it may
// sleep. What came due in between is done then, and not when something else happens.
func TestWhatComesDueWhileAWorkerLooksIsDone(t *testing.T) {
	for i := range 24 {
		bubbletest.Run(t, func(t *testing.T) {
			o := newLookout(t)
			o.refusing = true
			o.now = func() time.Time { // each look at the clock takes a millisecond
				pause := time.NewTimer(time.Millisecond)
				<-pause.C
				return time.Now()
			}
			w := o.worker(&Settings{DrainLimit: time.Minute, CommitEvery: time.Second, CommitCount: 1000, Limits: Limits{Messages: 10, Bytes: 1 << 20, Span: 100}})
			go w.Run(t.Context())
			pass(95*time.Millisecond + time.Duration(i)*500*time.Microsecond) // the next try comes 100 ms after the first
			w.Commit()                                                        // anything that has the loop look around
			pass(10 * time.Second)
			o.mu.Lock()
			asked := o.asked
			o.refusing = false
			o.mu.Unlock()
			if asked < 4 {
				t.Errorf("look %d: asked %d times for the start position in ten seconds", i, asked)
			}
			w.TryNow()
			pass(10 * time.Second)
			o.end(w)
		})
	}
}

// Messages are settled between a worker's look at its window, which is full, and the moment when it says of how many it
// wants to be told: there is room, and it pulls.
func TestWhatIsSettledWhileAWorkerLooksIsSeen(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		o := newLookout(t)
		s := &Settings{DrainLimit: time.Minute, CommitEvery: 24 * time.Hour, CommitCount: 1000, Limits: Limits{Messages: 3, Bytes: 1 << 20, Span: 100}}
		w := o.worker(s)
		const many = 1 << 20 // so that commits are rare, and no timer looks instead
		o.owned = func() int { return many }
		go w.Run(t.Context())
		synctest.Wait()
		o.arrive(0, 2)
		o.settle(1) // to be committed: from now on it wants to be told after a thousand
		synctest.Wait()
		var once sync.Once
		o.owned = func() int { // how long it may sleep depends on it
			if w.hold().Kind == HoldWindowCount {
				once.Do(func() { o.settle(5) })
			}
			return many
		}
		o.arrive(2, 4)
		pass(time.Second)
		o.mu.Lock()
		pulls := len(o.pulls)
		o.mu.Unlock()
		if pulls != 3 {
			t.Errorf("%d pulls: an empty window is taken for a full one", pulls)
		}
		o.end(w)
	})
}

// What is settled of an epoch that is over may be what a drain waits for (see haunted): the worker is told.
func TestTheLastOfAnEpochThatIsOverIsTold(t *testing.T) {
	kick := make(chan struct{}, 1)
	o := NewOwnership(sdk.Queue{Topic: "T"}, 1, 0, nil, kick)
	o.Order = OrderQueue
	ds := []Delivery{{Offset: 0}}
	o.Admit(ds, 1, time.Time{})
	o.Sent(1)
	o.wakeAt(1000, 0)
	o.End()
	if !o.haunted() {
		t.Fatal("nobody has the message")
	}
	o.Settle([]*Delivery{&ds[0]})
	select {
	case <-kick:
	default:
		t.Error("the worker is not told")
	}
	if o.haunted() {
		t.Error("still haunted")
	}
}

// slowLocks is a broker that takes its time to take a lock back.
type slowLocks struct{ free chan struct{} }

func (slowLocks) Want(_ sdk.Queue, tell func(Lock)) {
	tell(Lock{Held: true, Until: time.Now().Add(time.Hour)})
}
func (l slowLocks) Leave(sdk.Queue, bool) { <-l.free }

// Nobody who tells a worker something waits for the broker that its end waits for: the member's loop tells all workers.
func TestWorkerThatGivesItsLockBackHoldsNobody(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		o := newLookout(t)
		w := o.worker(&Settings{DrainLimit: time.Second, CommitEvery: time.Second, CommitCount: 1000, PullHold: time.Second, Limits: Limits{Messages: 10, Bytes: 1 << 20, Span: 100}})
		locks := slowLocks{free: make(chan struct{})}
		w.cfg.Locks, w.cfg.Order = locks, OrderQueue
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(t.Context())
		}()
		synctest.Wait()
		w.Drain(true)
		<-time.NewTimer(time.Minute).C
		synctest.Wait()
		told := make(chan struct{})
		go func() {
			defer close(told)
			for range 100 {
				w.Commit()
			}
		}()
		synctest.Wait()
		select {
		case <-told:
		default:
			t.Error("who tells a worker to commit waits until its lock is given back")
		}
		close(locks.free)
		<-ended
		<-told
	})
}
