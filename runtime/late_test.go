package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// slowStore is a client whose broker stores what it is sent when it may, and says so then.
type slowStore struct {
	*clustertest.Client
	may chan struct{}
}

func (s *slowStore) SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error {
	<-s.may
	return s.Client.SendBack(ctx, req)
}

func (s *slowStore) SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	<-s.may
	return s.Client.SendBatch(ctx, topic, ms)
}

func (s *slowStore) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	<-s.may
	return s.Client.Send(ctx, m)
}

// What became durable after the ownership had ended will be delivered once more: it is counted.
func TestDurableAfterTheEpochIsCountedLate(t *testing.T) {
	for name, answer := range map[string]clustertest.Answer{
		"send-back": {Verdict: retryOnce},
		"output":    {Outputs: []frame.Record{{Topic: "Out", Body: []byte("o")}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				first := true
				r := newRig(t, 1, func(_ context.Context, _ clustertest.Record) clustertest.Answer {
					if first {
						first = false
						return answer
					}
					return clustertest.Answer{}
				})
				r.cluster.CreateTopic("Out", 1)
				q := clustertest.Queue(topicName, 0)
				r.cluster.Fill(q, 1)
				slow := &slowStore{Client: r.cluster.Client("c1"), may: make(chan struct{})}
				cfg := r.config("c1")
				cfg.Brokers["main"] = slow
				e := r.start(cfg)
				wait(2 * time.Second)
				r.cluster.Spec(group, "c1").OnReset(topicName, map[sdk.Queue]int64{q: 0}) // a new epoch
				wait(2 * time.Second)
				close(slow.may)
				wait(2 * time.Second)
				if got := e.Status().Streams[0].Counters.Settle; got.Late != 1 || got.SentBack+got.OutputsStored != 1 {
					t.Errorf("counted %+v, want one late", got)
				}
				r.committedAll(1)
				r.stop(e)
			})
		})
	}
}

var _ runtime.Broker = (*slowStore)(nil)

// Status tells what a drain waits for.
func TestStatusWhileDraining(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(5 * time.Second)
			return clustertest.Answer{}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
		e := r.start(r.config("c1"))
		wait(time.Second)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			r.stop(e)
		}()
		wait(time.Second)
		inFlight := 0
		for _, s := range e.Status().Streams {
			for _, q := range s.Queues {
				inFlight += q.InFlight
			}
		}
		if inFlight != 1 {
			t.Errorf("status shows %d in flight while one message is drained", inFlight)
		}
		<-stopped
		if st := e.Status(); len(st.Streams) != 0 || st.State != runtime.StateStopped {
			t.Errorf("status after the stop: %+v", st)
		}
	})
}
