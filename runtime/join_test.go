package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
)

// slowStrategies has a process that takes its time and then fails: the built-in strategy is computed in its place.
type slowStrategies struct{ takes time.Duration }

func (s slowStrategies) Open(ctx context.Context, _ runtime.StrategySpec) (runtime.Strategy, error) {
	t := time.NewTimer(s.takes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return nil, errors.New("the process does not start")
}

// A group hears of a member when it can compute its share, so that the others do not let go of queues which nobody takes
// up yet; but a strategy that does not start holds up joining for 2 s at most.
func TestJoiningWaitsForTheStrategyAWhile(t *testing.T) {
	for _, c := range []struct{ takes, joins time.Duration }{
		{time.Second, time.Second},
		{time.Minute, 2 * time.Second},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 4, ack)
			cfg := r.config("c1")
			cfg.Strategies = slowStrategies{c.takes}
			started := make(chan *runtime.Runtime)
			go func() { started <- r.start(cfg) }()
			wait(c.joins - time.Millisecond)
			if got := r.cluster.Members(group); len(got) != 0 {
				t.Errorf("opening takes %s: joined early: %v", c.takes, got)
			}
			wait(2 * time.Millisecond)
			if got := r.cluster.Members(group); len(got) != 1 {
				t.Errorf("opening takes %s: not joined after %s", c.takes, c.joins)
			}
			e := <-started
			wait(20 * time.Second)
			if got := owned(e); len(got) != 4 {
				t.Errorf("opening takes %s: owns %v in the end", c.takes, got)
			}
			r.stop(e)
		})
	}
}
