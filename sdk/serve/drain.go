package serve

import (
	"context"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// drain answers untouched what nobody has started, has the author flush, and lets the last report say Drained. What runs
// goes on: the grace is for the author's Flush; how long to wait for records is for the host to say.
func (l *lane) drain(grace time.Duration) {
	l.draining.Store(true)
	l.giveBack(l.queue.clear()...)
	l.flush()
	l.instance.work.Go(func() {
		ctx, cancel := l.ctx, context.CancelFunc(func() {})
		if grace > 0 {
			ctx, cancel = context.WithTimeout(l.ctx, grace)
		}
		defer cancel()
		l.flushAsync(ctx)
		l.flush()
	})
}

// revoke takes back what has not started of queues that go, then tells the author. What runs goes on: a hand-over drains,
// and work that is cut short would count as a failed attempt. When the host can wait no longer, it sends Cancel.
func (l *lane) revoke(r *pluginv1.Revoke) {
	queues := make([]sdk.Queue, 0, len(r.GetQueues()))
	for _, q := range r.GetQueues() {
		queues = append(queues, sdk.Queue{Topic: q.GetTopic(), Broker: q.GetBroker(), ID: q.GetId()})
	}
	l.recall(matchQueues(queues))
	l.wakeOne()
	l.instance.work.Go(func() { l.callRevoked(l.ctx, queues) })
}
