package remoting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestAnswersFindTheirRequestsInAnyOrder(t *testing.T) {
	c, peer := connect(t, Config{})
	const n = 50
	go func() {
		var all []*wire.Command
		for range n {
			all = append(all, peer.next())
		}
		for i := n - 1; i >= 0; i-- {
			peer.answer(all[i], wire.RespSuccess, all[i].Body)
		}
	}()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			want := fmt.Sprint("body ", i)
			if got := mustCall(t.Context(), t, c, want); got != want {
				t.Errorf("got the answer of another request: %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Outstanding != 0 || s.Late != 0 {
		t.Errorf("after all answers: %+v", s)
	}
}

func TestAnswersNobodyWaitsForAreDropped(t *testing.T) {
	c, peer := connect(t, Config{})
	go func() {
		req := peer.next()
		stray := wire.NewResponse(req, wire.RespSuccess, "")
		stray.Opaque += 1000
		peer.send(stray)
		peer.answer(req, wire.RespSuccess, nil)
		peer.answer(req, wire.RespSuccess, nil) // once more
		peer.echo()
	}()
	mustCall(t.Context(), t, c, "one")
	mustCall(t.Context(), t, c, "two")
	if late := c.Stats().Late; late != 2 {
		t.Errorf("dropped %d answers, want 2", late)
	}
	if err := c.Err(); err != nil {
		t.Errorf("connection ended: %v", err)
	}
}

func TestTimeoutFreesTheEntryAndLateAnswersConfuseNobody(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go func() {
			var late []*wire.Command
			for range 20 {
				late = append(late, peer.next())
			}
			<-time.NewTimer(time.Second).C // the last one's time is up too
			for _, req := range late {
				peer.answer(req, wire.RespSuccess, []byte("late"))
			}
			peer.echo()
		}()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := c.Call(ctx, ping("x"))
			cancel()
			var call *CallError
			if !errors.As(err, &call) || !call.Sent || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want a sent request whose time was up", err)
			}
			if n := c.Stats().Outstanding; n != 0 {
				t.Fatalf("%d requests outstanding after a timeout", n)
			}
		}
		if got := mustCall(t.Context(), t, c, "fresh"); got != "fresh" {
			t.Errorf("got %q for a fresh request", got)
		}
	})
}

func TestCallWithoutDeadlineEnds(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{CallTimeout: 2 * time.Second})
		go peer.swallow()
		start := time.Now()
		_, err := c.Call(t.Context(), ping("x"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestCanceledBeforeWrittenIsNotSent(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		first := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), ping("first"))
			first <- err
		}()
		synctest.Wait() // the writer is stuck in the first: nobody reads
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, ping("second"))
			second <- err
		}()
		synctest.Wait()
		cancel()
		var call *CallError
		if err := <-second; !errors.As(err, &call) || call.Sent || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want a request that was not sent", err)
		}
		req := peer.next()
		peer.answer(req, wire.RespSuccess, nil)
		if err := <-first; err != nil {
			t.Fatalf("first: %v", err)
		}
		go func() { _, _ = c.Call(t.Context(), ping("third")) }()
		if got := peer.next(); string(got.Body) != "third" {
			t.Errorf("the peer saw %q after the first, want the third", got.Body)
		}
	})
}

func TestOutstandingRequestsAreBounded(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{MaxOutstanding: 2})
		go peer.swallow()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := c.Call(ctx, ping("x"))
				errs <- err
			}()
		}
		held, stop := context.WithTimeout(t.Context(), 8*time.Second)
		defer stop()
		go func() { _, _ = c.CallHeld(held, ping("long poll")) }()
		synctest.Wait()
		if n := c.Stats().Outstanding; n != 3 {
			t.Errorf("%d requests out, want 2 and the held one", n)
		}
		unsent := 0
		for range 3 {
			var call *CallError
			if err := <-errs; errors.As(err, &call) && !call.Sent {
				unsent++
			}
		}
		if unsent != 1 {
			t.Errorf("%d requests waited for a slot until their time was up, want 1", unsent)
		}
		if n := c.Stats().Outstanding; n != 1 {
			t.Errorf("%d requests out at the end, want the held one", n)
		}
		<-held.Done()
	})
}

func TestFramesThatGatherGoOutTogether(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		const n = 100
		for range n {
			go func() { _, _ = c.Call(t.Context(), ping("x")) }()
		}
		synctest.Wait() // one write is stuck, the rest gathers
		buf := make([]byte, 1<<20)
		reads := 0
		for seen := 0; seen < n; reads++ {
			k, err := peer.nc.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			seen += bytes.Count(buf[:k], []byte(`"code":34`))
		}
		if reads > 3 {
			t.Errorf("%d requests took %d writes", n, reads)
		}
	})
}

func TestWaitingBytesAreBounded(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, _ := connect(t, Config{MaxUnwritten: 4096})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		body := string(make([]byte, 1500))
		for range 50 {
			go func() { _, _ = c.Call(ctx, ping(body)) }()
		}
		synctest.Wait()
		c.out.mu.Lock()
		waiting := c.out.bytes
		c.out.mu.Unlock()
		if waiting > 4096 {
			t.Errorf("%d bytes wait to be written, limit 4096", waiting)
		}
		<-ctx.Done()
		synctest.Wait()
	})
}

func TestSignRunsLastAndLeavesTheRequestAlone(t *testing.T) {
	c, peer := connect(t, Config{Sign: func(cmd *wire.Command) error {
		cmd.Ext.Set("topic", "changed")
		cmd.Ext.Set("Signature", "s")
		return nil
	}})
	req := wire.NewRequest(&wire.RouteRequest{Topic: "T"}, nil)
	go func() { _, _ = c.Call(t.Context(), req) }()
	got := peer.next()
	if got.Ext.Get("Signature") != "s" || got.Ext.Get("topic") != "changed" {
		t.Errorf("the peer got %v", got.Ext)
	}
	if req.Ext.Get("topic") != "T" || req.Ext.Get("Signature") != "" {
		t.Errorf("the caller's request became %v", req.Ext)
	}
	c.Close()
}

func TestSignFailureSendsNothing(t *testing.T) {
	refused := errors.New("no key")
	c, _ := connect(t, Config{Sign: func(*wire.Command) error { return refused }})
	_, err := c.Call(t.Context(), ping("x"))
	var call *CallError
	if !errors.Is(err, refused) || !errors.As(err, &call) || call.Sent {
		t.Errorf("got %v", err)
	}
	if n := c.Stats().Outstanding; n != 0 {
		t.Errorf("%d outstanding", n)
	}
}

// Numbers wrap around after four thousand million requests, past those that are still out.
func TestNumbersWrapAround(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		held := make(chan *wire.Command, 1)
		go func() {
			for cmd := peer.next(); cmd != nil; cmd = peer.next() {
				if string(cmd.Body) == "long poll" {
					held <- cmd
					continue
				}
				peer.answer(cmd, wire.RespSuccess, cmd.Body)
			}
		}()
		c.table.next = math.MaxInt32
		outcomes, _ := hold(t, c, "long poll", time.Hour)
		req := <-held
		if req.Opaque != math.MinInt32 {
			t.Errorf("number %d follows the highest", req.Opaque)
		}
		c.table.next = math.MaxInt32
		for range 3 {
			if got := mustCall(t.Context(), t, c, "x"); got != "x" {
				t.Errorf("answered %q", got)
			}
		}
		peer.answer(req, wire.RespSuccess, []byte("held"))
		if o := once(t, c, outcomes); o.err != nil || o.body != "held" {
			t.Errorf("the held one: %+v", o)
		}
		c.Close()
	})
}
