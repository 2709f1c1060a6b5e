package serve_test

import (
	"context"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

// slowBuffer takes its time in HandleAsync, and answers on Flush only.
type slowBuffer struct {
	buffer
	inside, flushed, goOn chan struct{}
}

func (b *slowBuffer) HandleAsync(ctx context.Context, m *sdk.Message, done func(error)) {
	close(b.inside)
	<-b.goOn
	b.buffer.HandleAsync(ctx, m, done)
}

func (b *slowBuffer) Flush(ctx context.Context) error {
	err := b.buffer.Flush(ctx)
	b.flushed <- struct{}{}
	return err
}

// A message may be on its way into an AsyncHandler's buffer while it is flushed before a drain or a revocation: it is flushed too,
// or the hand-over waits for it to its end.
func TestWhatIsBufferedBesideAFlushIsFlushedToo(t *testing.T) {
	for name, leave := range map[string]func(*sdktest.Lane){
		"drain":  (*sdktest.Lane).StartDrain,
		"revoke": func(l *sdktest.Lane) { l.Revoke(sdk.Queue{Topic: "Orders", Broker: "b", ID: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := &slowBuffer{inside: make(chan struct{}), flushed: make(chan struct{}, 10), goOn: make(chan struct{})}
			b.taken, b.gone = make(chan string, 1), make(chan []sdk.Queue, 1)
			spec := sdk.AsyncComponent("h", func(context.Context, none, sdk.Env) (*slowBuffer, error) { return b, nil })
			lane := open(t, spec, sdktest.Options{})
			seq := lane.Send(sdktest.Message{ID: "1", Topic: "Orders", Broker: "b", QueueID: 3})
			<-b.inside
			leave(lane)
			<-b.flushed
			close(b.goOn)
			allAcked(t, lane.Wait(seq, 1))
			lane.Drain()
		})
	}
}
