package produce_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	embedded "github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onBroker runs f with a client of an embedded broker, in a bubble. The broker asks about open transactions after 6 s.
func onBroker(t *testing.T, f func(t *testing.T, b *embedded.Broker, c *rocketmq.Client)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		net := &memnet.Network{}
		b := embedded.New(embedded.Config{Address: "10.0.0.1:9876", Listen: net.Listen})
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		b.CreateTopic("T", 1)
		c, err := rocketmq.New(rocketmq.Config{NameServers: []string{b.Address()}, ClientID: "10.0.0.2@1", Dial: net.Dial, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(t, b, c)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(c.Close(ctx), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

func transactions(t *testing.T, c *rocketmq.Client, outcome, answer rocketmq.Outcome) (tx *produce.Transactions, checked func() []produce.Checked) {
	t.Helper()
	var mu sync.Mutex
	var all []produce.Checked
	tx = produce.NewTransactions(c, "PG", outcome, answer, func(c produce.Checked) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
	})
	if err := tx.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tx, func() []produce.Checked {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// What is committed is read, what is rolled back is not, and neither is asked about.
func TestTransactionsEnd(t *testing.T) {
	for outcome, visible := range map[rocketmq.Outcome]int{rocketmq.OutcomeCommit: 3, rocketmq.OutcomeRollback: 0} {
		onBroker(t, func(t *testing.T, b *embedded.Broker, c *rocketmq.Client) {
			t.Helper()
			tx, checked := transactions(t, c, outcome, outcome)
			sum, err := produce.Run(t.Context(), tx, produce.Lines(strings.NewReader("a\nb\nc\n"), produce.Template{Topic: "T", Tag: "x"}), produce.Options{}, func(r produce.Result) {
				if r.Err != nil || r.Stored.Offset != -1 || r.Stored.MessageID == "" {
					t.Errorf("%s: %+v", outcome, r)
				}
			})
			if err != nil || sum.Stored != 3 {
				t.Errorf("%s: %+v %v", outcome, sum, err)
			}
			if err := tx.Wait(t.Context()); err != nil {
				t.Errorf("%s: waiting with nothing open: %v", outcome, err)
			}
			<-time.After(20 * time.Minute)
			if got := b.Messages("T"); len(got) != visible {
				t.Errorf("%s: %d messages are to be read, want %d", outcome, len(got), visible)
			}
			if len(checked()) != 0 || len(b.Messages(wire.TransCheckMaxTopic)) != 0 {
				t.Errorf("%s: asked about %v, given up %d", outcome, checked(), len(b.Messages(wire.TransCheckMaxTopic)))
			}
			if err := tx.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is left open is asked about, and ends as the answer says; an unknown answer is asked for again.
func TestOpenTransactionsAreAskedAbout(t *testing.T) {
	for answer, visible := range map[rocketmq.Outcome]int{rocketmq.OutcomeCommit: 2, rocketmq.OutcomeRollback: 0, rocketmq.OutcomeUnknown: 0} {
		onBroker(t, func(t *testing.T, b *embedded.Broker, c *rocketmq.Client) {
			t.Helper()
			tx, checked := transactions(t, c, rocketmq.OutcomeUnknown, answer)
			start := time.Now()
			if _, err := produce.Run(t.Context(), tx, produce.Lines(strings.NewReader("a\nb\n"), produce.Template{Topic: "T"}), produce.Options{}, func(produce.Result) {}); err != nil {
				t.Fatal(err)
			}
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := tx.Wait(soon); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 of the open") {
				t.Errorf("%s: before the broker asks: %v", answer, err)
			}
			cancel()
			if err := tx.Wait(t.Context()); err != nil || time.Since(start) > 10*time.Second {
				t.Errorf("%s: asked after %s: %v", answer, time.Since(start), err)
			}
			if len(checked()) != 2 || checked()[0].Times != 1 || checked()[0].Answer != answer || checked()[0].MessageID == "" {
				t.Errorf("%s: asked as %+v", answer, checked())
			}
			<-time.After(40 * time.Second)
			if got := b.Messages("T"); len(got) != visible {
				t.Errorf("%s: %d messages are to be read, want %d", answer, len(got), visible)
			}
			if again := len(checked()) > 2; again != (answer == rocketmq.OutcomeUnknown) {
				t.Errorf("%s: asked %d times", answer, len(checked()))
			}
		})
	}
}

// Who waited may leave: the answers are at the broker then, however slow it takes them, and one that was lost is given again.
func TestWaitEndsWhenAnswersAreThere(t *testing.T) {
	for name, fault := range map[string]embedded.Fault{
		"slow": {Do: embedded.Delay(2 * time.Second)}, "lost": {Do: embedded.DropRequest(), Times: 1}, "refused": {Do: embedded.Refuse(wire.RespSystemError, "not now"), Times: 1},
	} {
		onBroker(t, func(t *testing.T, b *embedded.Broker, c *rocketmq.Client) {
			t.Helper()
			tx, checked := transactions(t, c, rocketmq.OutcomeUnknown, rocketmq.OutcomeCommit)
			if _, err := produce.Run(t.Context(), tx, produce.Lines(strings.NewReader("a\nb\n"), produce.Template{Topic: "T"}), produce.Options{}, func(produce.Result) {}); err != nil {
				t.Fatal(err)
			}
			fault.Codes = []wire.RequestCode{wire.ReqEndTransaction}
			defer b.Faults().Inject(fault).Lift()
			if err := tx.Wait(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := b.Messages("T"); len(got) != 2 || len(checked()) != 2 {
				t.Errorf("%s: %d messages are to be read when waiting has ended, told of %+v; want 2 of each", name, len(got), checked())
			}
		})
	}
}

// An end that no broker confirms is told as such: the broker asks, and the answer counts.
func TestUnconfirmedEndIsAskedAbout(t *testing.T) {
	onBroker(t, func(t *testing.T, b *embedded.Broker, c *rocketmq.Client) {
		t.Helper()
		tx, _ := transactions(t, c, rocketmq.OutcomeCommit, rocketmq.OutcomeCommit)
		fault := b.Faults().Inject(embedded.Fault{Codes: []wire.RequestCode{wire.ReqEndTransaction}, Times: 1, Do: embedded.DropRequest()})
		_, err := tx.Send(t.Context(), &rocketmq.OutgoingMessage{Topic: "T", Body: []byte("x")})
		fault.Lift()
		if !rocketmq.IsUnknownOutcome(err) || !strings.Contains(err.Error(), "not confirmed") {
			t.Errorf("sending: %v", err)
		}
		<-time.After(10 * time.Second)
		if got := b.Messages("T"); len(got) != 1 {
			t.Errorf("%d messages after the broker asked, want 1", len(got))
		}
	})
}

func TestTransactionsHaveNoBatch(t *testing.T) {
	tx := produce.NewTransactions(nil, "PG", rocketmq.OutcomeCommit, rocketmq.OutcomeCommit, func(produce.Checked) {})
	if _, err := tx.SendBatch(t.Context(), "T", nil); err == nil {
		t.Error("a batch was taken")
	}
}
