package runtime_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// A stop answers for what it could not bring to its end, not for a hand-over long before that a broker did not confirm.
func TestStopDoesNotAnswerForAnEarlierHandOver(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		var refuse atomic.Bool
		var refused atomic.Int64
		r.cluster.Fault = func(op, client string, _ sdk.Queue) error {
			if op == "Commit" && client == "c1" && refuse.Load() {
				refused.Add(1)
				return errors.New("system busy")
			}
			return nil
		}
		a := r.start(r.config("c1"))
		wait(2 * time.Second)
		refuse.Store(true)
		for i := range 4 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 10)
		}
		b := r.start(r.config("c2"))
		wait(time.Minute)
		if refused.Load() == 0 || len(owned(b)) != 2 {
			t.Fatalf("%d commits were refused, the other owns %v", refused.Load(), owned(b))
		}
		refuse.Store(false)
		wait(10 * time.Second)
		r.stop(a) // fails the test if the stop has something to answer for
		r.stop(b)
	})
}
