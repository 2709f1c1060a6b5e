package settle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	b := Backoff{First: time.Second, Most: 30 * time.Second}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if got := b.wait(i+1, 0); got != want {
			t.Errorf("after attempt %d: %s, want %s", i+1, got, want)
		}
	}
	for wish, want := range map[time.Duration]time.Duration{time.Nanosecond: leastPause, 77 * time.Millisecond: 77 * time.Millisecond, time.Hour: time.Hour} {
		if got := b.wait(3, wish); got != want {
			t.Errorf("a wish for %s gets %s", wish, got)
		}
	}
	if got := (Backoff{First: time.Minute, Most: time.Second}).wait(1<<40, 0); got != time.Second {
		t.Errorf("first above most: %s", got)
	}
}

// What is tried in place is never sent back, whatever becomes of it.
func TestPolicyInPlace(t *testing.T) {
	base := Policy{Group: "G", MaxRetries: 2, Levels: DefaultLevels(), BlockPause: time.Minute, Backoff: Backoff{First: time.Second, Most: time.Minute}}
	retry := func(attempts int, delay time.Duration) Facts {
		return Facts{InPlace: true, Attempts: attempts, Verdict: frame.Verdict{Kind: frame.VerdictRetry, Delay: delay, Text: "db"}}
	}
	for name, c := range map[string]struct {
		on   Exhausted
		f    Facts
		want Step
	}{
		"first failure":   {ExhaustedDeadLetter, retry(1, 0), Step{Kind: StepAgain, Wait: time.Second, Why: "attempt 1 failed: db"}},
		"second failure":  {ExhaustedDeadLetter, retry(2, 0), Step{Kind: StepAgain, Wait: 2 * time.Second, Why: "attempt 2 failed: db"}},
		"a wish":          {ExhaustedDeadLetter, retry(1, 5*time.Second), Step{Kind: StepAgain, Wait: 5 * time.Second, Why: "attempt 1 failed: db"}},
		"used up":         {ExhaustedDeadLetter, retry(3, 0), Step{Kind: StepResend, Topic: "%DLQ%G"}},
		"used up, skip":   {ExhaustedSkip, retry(3, 0), Step{Kind: StepSkip}},
		"used up, block":  {ExhaustedBlock, retry(3, 0), Step{Kind: StepAgain, Wait: time.Minute, Blocked: true, Why: "failed 3 times, on_exhausted is block: db"}},
		"reject":          {ExhaustedBlock, Facts{InPlace: true, Attempts: 1, Verdict: frame.Verdict{Kind: frame.VerdictReject}}, Step{Kind: StepResend, Topic: "%DLQ%G"}},
		"retry topic off": {ExhaustedDeadLetter, Facts{InPlace: true, RetryOff: true, Attempts: 1, Verdict: frame.Verdict{Kind: frame.VerdictRetry, Text: "db"}}, Step{Kind: StepAgain, Wait: time.Second, Why: "attempt 1 failed: db"}},
	} {
		p := base
		p.OnExhausted = c.on
		if got := p.First(c.f); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// fakeBroker takes sends, and refuses send-backs: nothing that is tried in place may come to one.
type fakeBroker struct {
	t    *testing.T
	mu   sync.Mutex
	sent []string
}

func (b *fakeBroker) SendBack(context.Context, *rocketmq.SendBackRequest) error {
	b.t.Error("sent back")
	return errors.New("refused")
}

func (b *fakeBroker) Send(_ context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, m.Topic)
	if wire.IsDLQTopic(m.Topic) {
		return rocketmq.SendResult{}, rocketmq.ErrTopicNotFound
	}
	if times, err := strconv.Atoi(m.Properties[wire.PropReconsumeTime]); err != nil || times <= 2 {
		b.t.Errorf("reconsume times %q do not lead to the dead letters", m.Properties[wire.PropReconsumeTime])
	}
	return rocketmq.SendResult{Status: rocketmq.SendOK}, nil
}

func (b *fakeBroker) SendBatch(context.Context, string, []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	return nil, errors.New("not expected")
}

func (b *fakeBroker) StoredBy(string, string) string { return "b" }

type inPlaceRig struct {
	s      *Settler
	broker *fakeBroker
	policy Policy
	own    *queue.Ownership
	start  time.Time

	mu     sync.Mutex
	again  []time.Duration // since start
	done   []uint32
	answer func(d *queue.Delivery)
}

func newInPlaceRig(t *testing.T) *inPlaceRig {
	t.Helper()
	r := &inPlaceRig{broker: &fakeBroker{t: t}, start: time.Now()}
	r.policy = Policy{Group: "G", MaxRetries: 2, Levels: DefaultLevels(), BlockPause: time.Minute, Backoff: Backoff{First: time.Second, Most: 30 * time.Second}}
	r.own = queue.NewOwnership(sdk.Queue{Topic: "T", Broker: "b"}, 1, 0, nil, make(chan struct{}, 1))
	r.own.Order = queue.OrderKey
	r.s = New(Config{
		Policy: func() *Policy { return &r.policy }, Broker: r.broker, RetryOff: func() bool { return false }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Again: func(d *queue.Delivery) {
			r.mu.Lock()
			r.again = append(r.again, time.Since(r.start))
			r.mu.Unlock()
			r.answer(d)
		},
		Done: func(_ *queue.Ownership, strand uint32) {
			r.mu.Lock()
			r.done = append(r.done, strand)
			r.mu.Unlock()
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

func (r *inPlaceRig) message() *queue.Delivery {
	text, err := wire.AppendProperty(nil, "KEYS", "A-1 x")
	if err != nil {
		panic(err)
	}
	ds := []queue.Delivery{{Offset: 0, Attempt: 1, Topic: "T", Strand: 7, Props: queue.ScanProperties(text)}}
	r.own.Admit(ds, 1, time.Now())
	r.own.Sent(1)
	return &ds[0]
}

func (r *inPlaceRig) fail(d *queue.Delivery) {
	r.s.Submit(&Job{Items: []Item{{D: d}}, Verdict: frame.Verdict{Kind: frame.VerdictRetry, Text: "db"}})
}

func pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

// A head is tried 1 + 2 times, then goes to the dead letters by 310: through the retry topic, which makes them. Only then is
// its strand told.
func TestHeadIsTriedInPlaceThenDeadLettered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newInPlaceRig(t)
		r.answer = func(d *queue.Delivery) {
			d.Own.Sent(1)
			r.fail(d)
		}
		r.fail(r.message())
		pass(500 * time.Millisecond)
		heads := r.s.Heads()
		if len(heads) != 1 || heads[0].Key != "A-1" || heads[0].Attempt != 1 || heads[0].Blocked || !heads[0].Since.Equal(r.start) || heads[0].Next.Sub(r.start) != time.Second {
			t.Errorf("heads %+v", heads)
		}
		if _, _, h := r.s.Status(); h.Held() {
			t.Errorf("a pause holds the stream: %+v", h)
		}
		pass(2 * time.Second)
		if h := r.s.Heads(); len(h) != 1 || h[0].Attempt != 2 || !h[0].Since.Equal(r.start) || len(r.done) != 0 || r.own.Safe() != 0 {
			t.Errorf("after two attempts: %+v, done %v, safe %d", h, r.done, r.own.Safe())
		}
		pass(5 * time.Second)
		if want := []time.Duration{time.Second, 3 * time.Second}; !slices.Equal(r.again, want) {
			t.Errorf("tried again after %v, want %v", r.again, want)
		}
		if want := []string{"%DLQ%G", "%RETRY%G"}; !slices.Equal(r.broker.sent, want) {
			t.Errorf("sent to %v, want %v", r.broker.sent, want)
		}
		if len(r.s.Heads()) != 0 || !slices.Equal(r.done, []uint32{7}) || r.own.Safe() != 1 {
			t.Errorf("at the end: heads %v, done %v, safe %d", r.s.Heads(), r.done, r.own.Safe())
		}
	})
}

// A hand-over does not wait for the pause of a head: it is dropped unsettled, for the next owner.
func TestReleaseDoesNotWaitForAHead(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newInPlaceRig(t)
		r.answer = func(*queue.Delivery) { t.Error("tried again after the release") }
		r.policy.OnExhausted, r.policy.MaxRetries = ExhaustedBlock, 0
		r.fail(r.message())
		pass(time.Second)
		if h := r.s.Heads(); len(h) != 1 || !h[0].Blocked {
			t.Errorf("heads %+v", h)
		}
		if _, _, h := r.s.Status(); h.Kind != queue.HoldExhausted || h.Message == "" {
			t.Errorf("hold %+v", h)
		}
		r.own.Close()
		r.s.Release(r.own)
		synctest.Wait()
		if r.own.Active() != 0 || r.own.Safe() != 0 || len(r.s.Heads()) != 0 {
			t.Errorf("%d active, safe %d, heads %v", r.own.Active(), r.own.Safe(), r.s.Heads())
		}
		if _, pending, _ := r.s.Status(); pending != 0 {
			t.Errorf("%d jobs under way", pending)
		}
		pass(2 * time.Minute)
	})
}
