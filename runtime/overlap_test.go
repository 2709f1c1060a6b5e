package runtime_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// slowAnswers gives each answer of a member that still drains only after a while, the longest first or last.
type slowAnswers struct {
	runtime.Broker
	delays []time.Duration
	asked  atomic.Int32
}

func (s *slowAnswers) PeerInfo(ctx context.Context, groupName, id string) (*wire.ConsumerRunningInfo, error) {
	info, err := s.Broker.PeerInfo(ctx, groupName, id)
	if err != nil {
		return nil, err
	}
	p, err := runtime.ParsePeerInfo(info)
	if err != nil {
		return nil, err
	}
	for _, q := range p.Queues {
		if q.State == "draining" {
			nap(s.delays[min(int(s.asked.Add(1)), len(s.delays))-1])
			break
		}
	}
	return info, nil
}

// A member's answer may be older than the ownership that it is held against: a hand-over that waited for the drain is no
// overlap, whenever the answer to another question of before arrives.
func TestOldAnswersAreNoOverlaps(t *testing.T) {
	for _, delays := range [][]time.Duration{{900 * time.Millisecond, 10 * time.Millisecond}, {10 * time.Millisecond, 900 * time.Millisecond, 10 * time.Millisecond}} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 2, func(context.Context, clustertest.Record) clustertest.Answer {
				nap(120 * time.Millisecond)
				return clustertest.Answer{}
			})
			go r.produce(2, 8*time.Second)
			a := r.start(r.config("c1"))
			wait(2 * time.Second)
			cfg := r.config("c2")
			cfg.Brokers["main"] = &slowAnswers{Broker: cfg.Brokers["main"], delays: delays}
			b := r.start(cfg)
			wait(30 * time.Second)
			if got := owned(b); !slices.Equal(got, []int32{1}) {
				t.Errorf("owns %v", got)
			}
			if n := a.Status().Streams[0].Counters.Group.Overlaps + b.Status().Streams[0].Counters.Group.Overlaps; n != 0 {
				t.Errorf("%d overlaps", n)
			}
			r.stop(a)
			r.stop(b)
		})
	}
}
