package rocketmq

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

type startedPull struct {
	res *PullResult
	err error
}

func startPull(t *testing.T, c *Client) (outcome chan startedPull, cancel func()) {
	t.Helper()
	outcome = make(chan startedPull, 2) // room for one too many
	cancel, ok := c.StartPull(pullOf(0, time.Second), func(res *PullResult, err error) { outcome <- startedPull{res, err} })
	if !ok {
		t.Fatal("a pull could not be started with everything at hand")
	}
	return outcome, cancel
}

func TestStartedPullTellsWhatPullReturns(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		if _, ok := c.StartPull(pullOf(0, time.Second), nil); ok {
			t.Error("a pull was started although no route is known")
		}
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.StartPull(pullOf(0, time.Second), nil); ok {
			t.Error("a pull was started without a connection")
		}
		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespSuccess, "FOUND", 11, 0, 20, 0, "messages"))
		first, err := c.Pull(t.Context(), pullOf(0, time.Second)) // which connects
		if err != nil {
			t.Fatal(err)
		}
		first.Release()

		outcome, cancel := startPull(t, c)
		got := <-outcome
		if got.err != nil || got.res.Status != PullFound || string(got.res.Body) != "messages" || got.res.Next != 11 {
			t.Errorf("found: %+v, %v", got.res, got.err)
		}
		got.res.Release()
		cancel()

		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespSystemBusy, "busy", 0, 0, 0, 0, ""))
		outcome, _ = startPull(t, c)
		var refused *ResponseError
		if got := <-outcome; !errors.As(got.err, &refused) || refused.Code != wire.RespSystemBusy {
			t.Errorf("refused: %v", got.err)
		}

		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespGoAway, "", 0, 0, 0, 0, ""))
		outcome, _ = startPull(t, c)
		if got := <-outcome; !errors.Is(got.err, ErrPullAgain) {
			t.Errorf("going away: %v", got.err)
		}
		synctest.Wait()
		if len(outcome) > 0 {
			t.Error("a pull had two outcomes")
		}
	})
}

func TestStartedPullIsGivenUp(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqPullMessage, pullAnswer(wire.RespSuccess, "FOUND", 11, 0, 20, 0, "messages"))
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		first, err := c.Pull(t.Context(), pullOf(0, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		first.Release()
		held := make(chan struct{})
		defer close(held)
		broker.on(wire.ReqPullMessage, func(*wire.Command) *wire.Command {
			<-held
			return nil
		})
		outcome, cancel := startPull(t, c)
		synctest.Wait()
		cancel()
		if got := <-outcome; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
	})
}
