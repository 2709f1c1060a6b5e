package remoting

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

type heldOutcome struct {
	body string
	err  error
	took time.Duration
}

// hold starts a request that nobody waits for and returns where its one outcome comes.
func hold(t *testing.T, c *Conn, body string, within time.Duration) (outcomes chan heldOutcome, cancel func()) {
	t.Helper()
	outcomes = make(chan heldOutcome, 2) // room for one too many
	start := time.Now()
	cancel, err := c.Hold(ping(body), within, func(r *Reply, err error) {
		o := heldOutcome{err: err, took: time.Since(start)}
		if err == nil {
			o.body = string(r.Body)
			r.Release()
		}
		outcomes <- o
	})
	if err != nil {
		t.Fatalf("starting %q: %v", body, err)
	}
	return outcomes, cancel
}

// once waits for the outcome and wants no second one.
func once(t *testing.T, c *Conn, outcomes chan heldOutcome) heldOutcome {
	t.Helper()
	o := <-outcomes
	synctest.Wait()
	if len(outcomes) > 0 {
		t.Errorf("a second outcome: %+v", <-outcomes)
	}
	if n := c.Stats().Outstanding; n != 0 {
		t.Errorf("%d requests outstanding after the outcome", n)
	}
	return o
}

func TestHeldRequestIsAnswered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go peer.echo()
		outcomes, cancel := hold(t, c, "one", time.Minute)
		if o := once(t, c, outcomes); o.err != nil || o.body != "one" {
			t.Errorf("outcome %+v", o)
		}
		cancel() // too late: nothing happens
		synctest.Wait()
		if len(outcomes) > 0 {
			t.Error("canceling an answered request gave a second outcome")
		}
		c.Close()
	})
}

func TestHeldRequestTimesOutToTheSecond(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go peer.swallow()
		outcomes, _ := hold(t, c, "x", 5*time.Second)
		o := once(t, c, outcomes)
		var call *CallError
		if !errors.As(o.err, &call) || !call.Sent || !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a sent request whose time was up", o.err)
		}
		if o.took < 5*time.Second || o.took > 6*time.Second {
			t.Errorf("it took %s", o.took)
		}
		c.Close()
	})
}

func TestHeldRequestIsCanceled(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		requests := make(chan *wire.Command, 1)
		go func() {
			requests <- peer.next()
			peer.echo()
		}()
		outcomes, cancel := hold(t, c, "x", time.Minute)
		req := <-requests
		cancel()
		cancel()
		if o := once(t, c, outcomes); !errors.Is(o.err, context.Canceled) {
			t.Errorf("got %v", o.err)
		}
		peer.answer(req, wire.RespSuccess, []byte("late"))
		if got := mustCall(t.Context(), t, c, "fresh"); got != "fresh" || c.Stats().Late != 1 {
			t.Errorf("after a late answer: %q, %+v", got, c.Stats())
		}
		c.Close()
	})
}

func TestHeldRequestsEndWithTheConnection(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go peer.swallow()
		first, _ := hold(t, c, "x", time.Minute)
		second, _ := hold(t, c, "y", time.Minute)
		synctest.Wait()
		c.Close()
		for _, outcomes := range []chan heldOutcome{first, second} {
			if o := once(t, c, outcomes); !errors.Is(o.err, ErrClosed) {
				t.Errorf("got %v, want the cause of the end", o.err)
			}
		}
		if _, err := c.Hold(ping("z"), time.Minute, func(*Reply, error) { t.Error("done was called") }); !errors.Is(err, ErrClosed) {
			t.Errorf("on a closed connection: %v", err)
		}
	})
}

// A caller that must not wait is told that it would have to.
func TestHeldRequestDoesNotWaitToBeWritten(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, _ := connect(t, Config{MaxUnwritten: 1024})
		var queued []chan heldOutcome
		for range 2 { // the writer has the first, the second waits in the outbox
			o, _ := hold(t, c, string(make([]byte, 2000)), time.Minute)
			queued = append(queued, o)
			synctest.Wait()
		}
		_, err := c.Hold(ping("one too many"), time.Minute, func(*Reply, error) { t.Error("done was called") })
		var call *CallError
		if !errors.Is(err, ErrFull) || !errors.As(err, &call) || call.Sent {
			t.Errorf("got %v", err)
		}
		c.Close()
		for _, o := range queued {
			if (<-o).err == nil {
				t.Error("an unwritten request was answered")
			}
		}
	})
}
