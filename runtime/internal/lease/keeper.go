package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// Config makes a Keeper.
type Config struct {
	// Lock asks for locks and returns those that are held now; Unlock gives them back. All queues are of one broker.
	Lock   func(ctx context.Context, queues []sdk.Queue) ([]sdk.Queue, error)
	Unlock func(ctx context.Context, queues []sdk.Queue) error
	// Holders asks the other members which of the queues they hold; who does not answer holds none.
	Holders func(ctx context.Context, queues []sdk.Queue) map[sdk.Queue]string
	Now     func() time.Time
	Logger  *slog.Logger
}

// callLimit bounds a call to a broker: a lock may be asked for several times before it counts as lost.
const callLimit = 3 * time.Second

// Keeper runs a Core. Want and Leave may be called from any goroutine.
type Keeper struct {
	cfg  Config
	wake chan struct{}
	done chan struct{}

	mu    sync.Mutex // held for memory work only
	inbox []Input
	tell  map[sdk.Queue]func(queue.Lock)
	left  map[sdk.Queue]chan struct{}

	core  *Core // the loop's alone
	calls sync.WaitGroup
}

// New makes a keeper that does nothing until Run.
func New(cfg Config) *Keeper {
	return &Keeper{
		cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), core: NewCore(),
		tell: make(map[sdk.Queue]func(queue.Lock)), left: make(map[sdk.Queue]chan struct{}),
	}
}

// Want implements queue.Locks.
func (k *Keeper) Want(q sdk.Queue, tell func(queue.Lock)) {
	k.mu.Lock()
	k.tell[q] = tell
	k.mu.Unlock()
	k.push(Input{Kind: InWant, Queue: q})
}

// Leave implements queue.Locks.
func (k *Keeper) Leave(q sdk.Queue, unlock bool) {
	left := make(chan struct{})
	k.mu.Lock()
	delete(k.tell, q)
	k.left[q] = left
	k.mu.Unlock()
	k.push(Input{Kind: InLeave, Queue: q, Unlock: unlock})
	select {
	case <-left:
	case <-k.done:
	}
}

func (k *Keeper) push(in Input) {
	k.mu.Lock()
	k.inbox = append(k.inbox, in)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends; queues must be left before.
func (k *Keeper) Run(ctx context.Context) {
	defer close(k.done)
	ctx, cancel := context.WithCancel(ctx)
	defer k.calls.Wait()
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for _, in := range k.take() {
			k.step(ctx, in)
		}
		k.step(ctx, Input{})
		timer.Reset(k.sleep())
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
	}
}

func (k *Keeper) take() []Input {
	k.mu.Lock()
	defer k.mu.Unlock()
	in := k.inbox
	k.inbox = nil
	return in
}

func (k *Keeper) sleep() time.Duration {
	next := k.core.Next()
	if next.IsZero() {
		return time.Hour
	}
	return max(0, next.Sub(k.cfg.Now()))
}

func (k *Keeper) step(ctx context.Context, in Input) {
	for _, a := range k.core.Step(k.cfg.Now(), in) {
		k.do(ctx, a)
	}
}

func (k *Keeper) do(ctx context.Context, a Action) {
	switch a.Kind {
	case ActLock:
		k.calls.Go(func() { k.push(k.lock(ctx, a)) })
	case ActUnlock:
		k.calls.Go(func() { k.push(k.unlock(ctx, a)) })
	case ActAsk:
		k.calls.Go(func() { k.push(Input{Kind: InHolders, Holders: k.cfg.Holders(ctx, a.Queues)}) })
	case ActTell:
		k.mu.Lock()
		tell := k.tell[a.Queue]
		k.mu.Unlock()
		if tell != nil {
			tell(a.Lock)
		}
	case ActReleased:
		k.mu.Lock()
		left := k.left[a.Queue]
		delete(k.left, a.Queue)
		k.mu.Unlock()
		if left != nil {
			close(left)
		}
	}
}

func (k *Keeper) lock(ctx context.Context, a Action) Input {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	in := Input{Kind: InLocked, Broker: a.Broker, Queues: a.Queues, Sent: k.cfg.Now()}
	in.Granted, in.Err = k.cfg.Lock(ctx, a.Queues)
	if in.Err != nil {
		k.cfg.Logger.Warn("queue locks not renewed, asking again", "broker", a.Broker, "queues", len(a.Queues), "error", in.Err.Error())
	}
	return in
}

func (k *Keeper) unlock(ctx context.Context, a Action) Input {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := k.cfg.Unlock(ctx, a.Queues); err != nil {
		k.cfg.Logger.Warn("queue locks not given back; the broker frees them within 60s", "broker", a.Broker, "queues", len(a.Queues), "error", err.Error())
	}
	return Input{Kind: InUnlocked, Broker: a.Broker, Queues: a.Queues}
}
