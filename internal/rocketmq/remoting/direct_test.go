//go:build unix

package remoting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"
)

// connectTCP is connect over a real socket: the one that callers write to themselves.
func connectTCP(t *testing.T, cfg Config) (*Conn, *far) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // one connection is taken from it
	cfg.Logger, cfg.Buffers = slog.New(slog.DiscardHandler), &Buffers{}
	c, err := Dial(t.Context(), listener.Addr().String(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	away, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = away.Close() })
	if c.direct == nil {
		t.Fatal("a TCP connection is not written to directly")
	}
	return c, &far{t: t, nc: away, frames: newFrameReader(away, cfg.Buffers)}
}

// Callers and the writer share the socket: every frame arrives whole, whoever wrote its parts.
func TestFramesStayWholeWhenThePeerReadsLate(t *testing.T) {
	c, peer := connectTCP(t, Config{CallTimeout: time.Minute, WriteTimeout: time.Minute})
	const n = 120
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			want := string(bytes.Repeat([]byte(fmt.Sprintf("%03d ", i)), 12<<10)) // 48 KiB: the socket is full long before the last
			if got := mustCall(t.Context(), t, c, want); got != want {
				t.Errorf("call %d got another's answer or a torn one (%d bytes)", i, len(got))
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Stats().Outstanding < n {
		if err := c.Err(); err != nil {
			t.Fatalf("the connection ended: %v", err)
		}
		<-tick.C
	}
	go peer.echo()
	wg.Wait()
}

// A long quiet after a write by the writer must not leave a deadline behind that stops those who write directly.
func TestDirectWritesHaveNoDeadline(t *testing.T) {
	const limit = time.Second // for the writer, on a busy machine
	c, peer := connectTCP(t, Config{WriteTimeout: limit})
	go peer.echo()
	if err := c.out.put(t.Context(), c.ctx.Done(), frameOf(t, c, "by the writer")); err != nil {
		t.Fatal(err)
	}
	for c.frames.Load() == 0 {
		if err := c.Err(); err != nil {
			t.Fatalf("the connection ended: %v", err)
		}
		tick := time.NewTimer(time.Millisecond)
		<-tick.C
	}
	<-time.NewTimer(limit + 100*time.Millisecond).C
	f := frameOf(t, c, "directly")
	if !c.writeDirect(f) || f.from != len(f.buf.b) {
		t.Error("the frame was not written directly")
	}
}

func frameOf(t *testing.T, c *Conn, body string) *outFrame {
	t.Helper()
	buf, err := encode(c.cfg.Buffers, ping(body))
	if err != nil {
		t.Fatal(err)
	}
	return &outFrame{buf: buf}
}

func TestPeerThatDoesNotReadIsClosedOverTCP(t *testing.T) {
	c, _ := connectTCP(t, Config{WriteTimeout: 100 * time.Millisecond, MaxUnwritten: 64 << 20, CallTimeout: time.Minute})
	var wg sync.WaitGroup
	for range 400 {
		wg.Go(func() {
			_, err := c.Call(t.Context(), ping(string(make([]byte, 60<<10))))
			var call *CallError
			if !errors.As(err, &call) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the end of the connection", err)
			}
		})
	}
	wg.Wait()
	if c.Err() == nil {
		t.Error("the connection lives on")
	}
}
