package serve_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

// seen notes what an author's code gets, and hears of revocations, which come after everything that was sent before them.
type seen struct {
	mu      sync.Mutex
	ids     []string
	begun   chan struct{}
	revoked chan struct{}
	release chan struct{}
}

func newSeen() *seen {
	return &seen{begun: make(chan struct{}, 8), revoked: make(chan struct{}, 8), release: make(chan struct{})}
}

func (s *seen) note(m *sdk.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, m.ID())
}

func (s *seen) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ids, id)
}

func (s *seen) Revoked(context.Context, []sdk.Queue) error {
	s.revoked <- struct{}{}
	return nil
}

// late is given up by the host, pays no heed to that, and succeeds.
type late struct{ *seen }

func (l late) Handle(ctx context.Context, m *sdk.Message) error {
	l.note(m)
	if m.ID() == "0" {
		l.begun <- struct{}{}
		<-ctx.Done()
	}
	return nil
}

type lateAsync struct{ *seen }

func (l lateAsync) HandleAsync(ctx context.Context, m *sdk.Message, done func(error)) {
	l.note(m)
	if m.ID() != "0" {
		done(nil)
		return
	}
	l.begun <- struct{}{}
	context.AfterFunc(ctx, func() { done(nil) })
}

func (lateAsync) Flush(context.Context) error { return nil }

type lateBatch struct{ *seen }

func (l lateBatch) HandleBatch(_ context.Context, b *sdk.Batch) error {
	for _, m := range b.All() {
		l.note(m)
	}
	l.begun <- struct{}{}
	<-l.release
	return nil
}

func strandOf(number uint32, n int) []sdktest.Message {
	out := messages(n)
	for i := range out {
		out[i].Strand = number
	}
	return out
}

// A record whose deadline is over comes again: the host does not count what its handler says of it later. What follows it in
// its strand must not overtake it.
func TestWhatFollowsARecordThatIsGivenUpWaitsForIt(t *testing.T) {
	s := newSeen()
	for name, spec := range map[string]sdk.Spec{
		"single": sdk.Component("h", func(context.Context, none, sdk.Env) (late, error) { return late{s}, nil }),
		"async":  sdk.AsyncComponent("h", func(context.Context, none, sdk.Env) (lateAsync, error) { return lateAsync{s}, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			s.ids = nil
			lane := open(t, spec, sdktest.Options{})
			seq := lane.Send(strandOf(1, 3)...)
			<-s.begun
			lane.Cancel(seq, 0)
			got := lane.Wait(seq, 3)
			if got[0].Kind != sdktest.Acked || got[1].Kind != sdktest.Untouched || got[2].Kind != sdktest.Untouched || s.has("1") || s.has("2") {
				t.Errorf("verdicts %v, handled %v; want the rest of the strand untouched", got, s.ids)
			}
			lane.Drain()
		})
	}
}

func TestWhatFollowsARecordOfABatchThatIsGivenUpComesAgain(t *testing.T) {
	s := newSeen()
	lane := open(t, sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (lateBatch, error) { return lateBatch{s}, nil }), sdktest.Options{})
	seq := lane.Send(append(strandOf(1, 3), strandOf(2, 1)...)...)
	<-s.begun
	lane.Cancel(seq, 1)
	lane.Revoke(sdk.Queue{Topic: "Other"})
	<-s.revoked // and so the cancellation has been seen
	close(s.release)
	got := lane.Wait(seq, 4)
	for i, want := range []sdktest.Kind{"ack", "ack", "untouched", "ack"} {
		if got[i].Kind != want {
			t.Errorf("message %d: %s, want %s", i, got[i].Kind, want)
		}
	}
	lane.Drain()
}

// A record that is taken back before its batch begins takes the rest of its strand along, as it does record by record.
func TestABatchDoesNotOvertakeWhatWasTakenBack(t *testing.T) {
	s := newSeen()
	lane := open(t, sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (lateBatch, error) { return lateBatch{s}, nil }), sdktest.Options{Concurrency: 1})
	first := lane.Send(messages(1)...)
	<-s.begun
	batch := append(strandOf(1, 2), strandOf(2, 1)...)
	batch[0].ID, batch[1].ID, batch[2].ID = "a", "b", "c"
	seq := lane.Send(batch...)
	lane.Cancel(seq, 0)
	lane.Revoke(sdk.Queue{Topic: "Other"})
	<-s.revoked
	close(s.release)
	allAcked(t, lane.Wait(first, 1))
	got := lane.Wait(seq, 3)
	if got[0].Kind != sdktest.Untouched || got[1].Kind != sdktest.Untouched || got[2].Kind != sdktest.Acked || s.has("b") {
		t.Errorf("verdicts %v, handled %v; want a and b untouched, c acked", got, s.ids)
	}
	lane.Drain()
}

// Records of strand 0 are bound to none, also beside others that are.
func TestStrandZeroBindsNobody(t *testing.T) {
	failing := func(id string) error {
		if id == "0" {
			return errors.New("no")
		}
		return nil
	}
	for name, spec := range map[string]sdk.Spec{
		"single": handler(func(_ context.Context, m *sdk.Message) error { return failing(m.ID()) }),
		"batch": sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (sdk.BatchHandler, error) {
			return sdk.BatchHandlerFunc(func(_ context.Context, b *sdk.Batch) error {
				for i, m := range b.All() {
					b.Fail(i, failing(m.ID()))
				}
				return nil
			}), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			batch := messages(4)
			batch[3].Strand = 7
			got := sdktest.Start(t, spec).Configure("h", "").Deliver(batch...)
			for i, want := range []sdktest.Kind{"retry", "ack", "ack", "ack"} {
				if got[i].Kind != want {
					t.Errorf("message %d: %s, want %s", i, got[i].Kind, want)
				}
			}
		})
	}
	t.Run("drain", func(t *testing.T) {
		started, release := make(chan struct{}, 3), make(chan struct{})
		lane := open(t, handler(func(context.Context, *sdk.Message) error {
			started <- struct{}{}
			<-release
			return nil
		}), sdktest.Options{Concurrency: 1})
		batch := messages(3)
		batch[2].Strand = 7
		seq := lane.Send(batch...)
		<-started
		lane.StartDrain()
		if r := lane.WaitFor(seq, 1); r.Kind != sdktest.Untouched {
			t.Errorf("what waits is %s in a drain", r.Kind)
		}
		close(release)
		lane.Wait(seq, 3)
		lane.Drain()
	})
}
