package remoting

import (
	"context"
	"encoding/binary"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ended calls once, lets the far end act, and returns the call's error.
func ended(t *testing.T, act func(*far)) (*Conn, error) {
	t.Helper()
	c, peer := connect(t, Config{})
	result := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), ping("x"))
		result <- err
	}()
	peer.next()
	act(peer)
	return c, <-result
}

func TestWhyAConnectionEnds(t *testing.T) {
	frame, err := wire.AppendFrame(nil, ping("never finished"))
	if err != nil {
		t.Fatal(err)
	}
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	tests := []struct {
		name string
		act  func(*far)
		want error
		text string
	}{
		{"closed between frames", func(f *far) { _ = f.nc.Close() }, ErrPeerClose, "when it wants TLS, set tls"},
		{"closed in a frame", func(f *far) { f.raw(frame[:len(frame)/2]); _ = f.nc.Close() }, ErrPeerClose, "middle of a frame"},
		{"closed in a length", func(f *far) { f.raw(frame[:2]); _ = f.nc.Close() }, ErrPeerClose, ""},
		{"another protocol", func(f *far) { f.raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, ErrBadFrame, ""},
		{"length zero", func(f *far) { f.raw(length(0)) }, ErrBadFrame, "length"},
		{"length negative", func(f *far) { f.raw(length(0xFFFFFFF0)) }, ErrBadFrame, "length"},
		{"length beyond the limit", func(f *far) { f.raw(length(16<<20 + 1)) }, ErrBadFrame, "large"},
		{"header longer than the frame", func(f *far) { f.raw(append(length(8), 0, 0, 1, 0, 1, 2, 3, 4)) }, ErrBadFrame, ""},
		{"unknown encoding", func(f *far) { f.raw(append(length(8), 7, 0, 0, 4, 1, 2, 3, 4)) }, ErrBadFrame, ""},
		{"header that is no JSON", func(f *far) { f.raw(append(length(8), 0, 0, 0, 4, '{', '{', '{', '{')) }, ErrBadFrame, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ended(t, tt.act)
			var call *CallError
			if !errors.Is(err, tt.want) || !errors.As(err, &call) || !call.Sent {
				t.Errorf("got %v, want %v of a sent request", err, tt.want)
			}
			if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), "peer:1") {
				t.Errorf("%q does not say %q and the address", err, tt.text)
			}
			<-c.Done()
			if !errors.Is(c.Err(), tt.want) {
				t.Errorf("Err is %v", c.Err())
			}
			if _, err := c.Call(t.Context(), ping("after")); !errors.Is(err, tt.want) {
				t.Errorf("a call after the end: %v", err)
			}
		})
	}
}

// A peer that has answered before and then goes wants no TLS.
func TestPeerThatSpokeAndLeft(t *testing.T) {
	c, peer := connect(t, Config{})
	go func() {
		peer.answer(peer.next(), wire.RespSuccess, nil)
		peer.next()
		_ = peer.nc.Close() // the caller sees it
	}()
	mustCall(t.Context(), t, c, "first")
	if _, err := c.Call(t.Context(), ping("second")); !errors.Is(err, ErrPeerClose) || strings.Contains(err.Error(), "TLS") {
		t.Errorf("got %v", err)
	}
}

func TestCloseFailsAllWaiters(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go peer.swallow()
		errs := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := c.CallHeld(t.Context(), ping("x"))
				errs <- err
			}()
		}
		synctest.Wait()
		c.Close()
		for range 10 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestHostileLengthAllocatesNothing(t *testing.T) {
	_, peer := connect(t, Config{})
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	peer.raw(binary.BigEndian.AppendUint32(nil, 16<<20-4))
	peer.raw(make([]byte, 1000)) // the pipe hands over: when this returns, the reader has read it
	goruntime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 512<<10 {
		t.Errorf("1000 bytes of a frame that says 16 MiB allocated %d bytes", grown)
	}
}

func TestLongFramesAreReadWhole(t *testing.T) {
	c, peer := connect(t, Config{CallTimeout: time.Minute})
	go peer.echo()
	for _, size := range []int{0, 1, 1000, 64<<10 - 200, 64 << 10, 300 << 10, 5 << 20, 300 << 10} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		if got := mustCall(t.Context(), t, c, body); got != body {
			t.Errorf("a body of %d bytes came back different (%d)", size, len(got))
		}
	}
}

func TestReleasedBuffersAreUsedAgain(t *testing.T) {
	pool := &Buffers{}
	b := pool.get(5000)
	if len(b.b) != 5000 || cap(b.b) != 8192 {
		t.Errorf("len %d cap %d", len(b.b), cap(b.b))
	}
	b.b = append(b.b, make([]byte, 9000)...) // outgrown
	pool.put(b)
	if again := pool.get(5000); cap(again.b) != 8192 {
		t.Errorf("a buffer of the wrong size came back: cap %d", cap(again.b))
	}
	r := &Reply{Command: &wire.Command{}, pool: pool, buf: pool.get(10)}
	r.Release()
	r.Release() // must not put it twice
	one, two := pool.get(10), pool.get(10)
	if &one.b[0] == &two.b[0] {
		t.Error("one buffer was handed out twice")
	}
}

func TestSilentPeerIsFoundOut(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{Probe: func() *wire.Command { return ping("probe") }})
		go peer.swallow()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		_, err := c.CallHeld(ctx, ping("long poll"))
		if took := time.Since(start); !errors.Is(err, ErrSilent) || took > 15*time.Second {
			t.Errorf("got %v after %s, want ErrSilent within 15 s", err, took)
		}
	})
}

func TestTimeoutInSilenceIsProbedAtOnce(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{Probe: func() *wire.Command { return ping("probe") }})
		go peer.swallow()
		start := time.Now()
		_, err := c.Call(t.Context(), ping("x"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-c.Done()
		if took := time.Since(start); !errors.Is(c.Err(), ErrSilent) || took != 6*time.Second {
			t.Errorf("ended with %v after %s, want ErrSilent after call and probe (6 s)", c.Err(), took)
		}
	})
}

func TestSlowPeerIsNotClosed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{Probe: func() *wire.Command { return ping("probe") }})
		go func() {
			for cmd := peer.next(); cmd != nil; cmd = peer.next() {
				if string(cmd.Body) == "probe" {
					peer.answer(cmd, wire.RespNotSupported, nil)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.CallHeld(ctx, ping("long poll")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's own deadline", err)
		}
		if err := c.Err(); err != nil {
			t.Errorf("connection ended: %v", err)
		}
	})
}

func TestPeerThatDoesNotReadIsClosed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, _ := connect(t, Config{WriteTimeout: 4 * time.Second})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Call(ctx, ping("x"))
		if took := time.Since(start); err == nil || errors.Is(err, context.DeadlineExceeded) && took > 5*time.Second {
			t.Errorf("got %v after %s", err, took)
		}
		<-c.Done()
	})
}

func TestIdleConnectionIsClosed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		go peer.echo()
		mustCall(t.Context(), t, c, "x")
		start := time.Now()
		<-c.Done()
		if took := time.Since(start); !errors.Is(c.Err(), ErrIdle) || took < 120*time.Second || took > 122*time.Second {
			t.Errorf("ended with %v after %s", c.Err(), took)
		}
	})
}

func TestDrainLetsTheOutstandingFinish(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{})
		result := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), ping("old"))
			result <- err
		}()
		req := peer.next()
		c.Drain()
		c.Drain()
		if _, err := c.Call(t.Context(), ping("new")); !errors.Is(err, ErrDraining) {
			t.Errorf("a new call: %v", err)
		}
		peer.answer(req, wire.RespSuccess, nil)
		if err := <-result; err != nil {
			t.Errorf("the outstanding call: %v", err)
		}
		<-c.Done()
		if !errors.Is(c.Err(), ErrDraining) {
			t.Errorf("ended with %v", c.Err())
		}
	})
}

func TestDialFailureNamesTheAddress(t *testing.T) {
	_, err := Dial(t.Context(), "127.0.0.1:1", Config{Buffers: &Buffers{}})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

// What is out on a connection that drains may take its time, as long as the peer lives.
func TestDrainingConnectionOfALivePeerIsNotTakenForSilent(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{Probe: func() *wire.Command { return ping("probe") }})
		held := make(chan *wire.Command, 1)
		go func() {
			for cmd := peer.next(); cmd != nil; cmd = peer.next() {
				if string(cmd.Body) == "probe" {
					peer.answer(cmd, wire.RespSuccess, nil)
					continue
				}
				held <- cmd
			}
		}()
		result := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err := c.CallHeld(ctx, ping("long poll"))
			result <- err
		}()
		req := <-held
		c.Drain()
		<-time.NewTimer(time.Minute).C
		peer.answer(req, wire.RespSuccess, nil)
		if err := <-result; err != nil {
			t.Errorf("the outstanding request: %v", err)
		}
	})
}

// One that does not live is found out there too.
func TestDrainingConnectionOfASilentPeerEnds(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{Probe: func() *wire.Command { return ping("probe") }})
		go peer.swallow()
		outcomes, _ := hold(t, c, "long poll", time.Hour)
		c.Drain()
		start := time.Now()
		if o := <-outcomes; !errors.Is(o.err, ErrSilent) || time.Since(start) < 10*time.Second || time.Since(start) > 16*time.Second {
			t.Errorf("got %v after %s, want ErrSilent after 10 s and the probe's time", o.err, time.Since(start))
		}
	})
}
