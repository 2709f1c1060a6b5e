package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
)

func pair(t *testing.T, n *memnet.Network) (client, server net.Conn, l net.Listener) {
	t.Helper()
	l, err := n.Listen("10.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server, l
}

func TestConn_carriesMoreThanItsBuffer(t *testing.T) {
	t.Parallel()
	client, server, _ := pair(t, &memnet.Network{})
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	var writer sync.WaitGroup
	writer.Go(func() {
		if n, err := client.Write(want); n != len(want) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(server)
	writer.Wait()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func TestConn_halfClose(t *testing.T) {
	t.Parallel()
	client, server, _ := pair(t, &memnet.Network{})
	if err := client.(*memnet.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // Exactly io.EOF, as net.Conn says.
		t.Errorf("read after half close: %v", err)
	}
	if _, err := client.Write([]byte("x")); err == nil {
		t.Error("wrote after half close")
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != "answer" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestConn_closeWakesBothSides(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		client, server, _ := pair(t, &memnet.Network{})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("own read: %v", err)
			}
		})
		waiting.Go(func() {
			if _, err := server.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // Exactly io.EOF.
				t.Errorf("peer's read: %v", err)
			}
		})
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		waiting.Wait()
		if _, err := server.Write([]byte("x")); err == nil {
			t.Error("wrote to nobody")
		}
	})
}

func TestConn_deadlines(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		client, _, _ := pair(t, &memnet.Network{})
		start := time.Now()
		expect := func(want time.Duration) {
			t.Helper()
			_, err := client.Read(make([]byte, 1))
			ne, ok := errors.AsType[net.Error](err)
			if !errors.Is(err, os.ErrDeadlineExceeded) || !ok || !ne.Timeout() || time.Since(start) != want {
				t.Errorf("after %v, want %v: %v", time.Since(start), want, err)
			}
		}
		set := func(d time.Duration) {
			t.Helper()
			if err := client.SetReadDeadline(start.Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		set(5 * time.Second)
		expect(5 * time.Second)
		expect(5 * time.Second) // It has passed and stays so.
		set(time.Hour)
		time.AfterFunc(time.Second, func() { set(10 * time.Second) }) // Moved while somebody reads.
		expect(10 * time.Second)
		set(20 * time.Second)
		if err := client.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("x")); err != nil {
			t.Errorf("write without a deadline: %v", err)
		}
		if err := client.SetWriteDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write after its deadline: %v", err)
		}
	})
}

func TestNetwork_addresses(t *testing.T) {
	t.Parallel()
	var n memnet.Network
	client, server, l := pair(t, &n)
	if client.RemoteAddr().String() != l.Addr().String() || server.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("client %v → %v, server %v → %v", client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr())
	}
	if _, err := n.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening twice: %v", err)
	}
	if _, err := n.Dial(t.Context(), "10.0.0.9:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing nobody: %v", err)
	}
	for _, bad := range []string{"", "localhost:1", "1.2.3.4"} {
		if _, err := n.Dial(t.Context(), bad); err == nil {
			t.Errorf("dialed %q", bad)
		}
		if _, err := n.Listen(bad); err == nil {
			t.Errorf("listening on %q", bad)
		}
	}
	address := l.Addr().String()
	waiting, err := n.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := waiting.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // Exactly io.EOF.
		t.Errorf("a connection that nobody accepted: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting after close: %v", err)
	}
	if _, err := n.Dial(t.Context(), address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing after close: %v", err)
	}
	if again, err := n.Listen(address); err != nil || again.Addr().String() != address {
		t.Errorf("listening again: %v", err)
	}
}

func TestDial_endsWithItsContext(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		var n memnet.Network
		if _, err := n.Listen("10.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var err error
		for err == nil { // Until the backlog of a listener that does not accept is full.
			_, err = n.Dial(ctx, "10.0.0.1:1")
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
