package remote_test

import (
	"encoding/binary"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// crowd runs f in virtual time with a server and n connections to it, the first of which behaves.
func crowd(t *testing.T, n int, o remote.Options, f func(t *testing.T, conns []net.Conn)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		var network memnet.Network
		o.Listen, o.Address, o.Version, o.Logger = network.Listen, "10.0.0.1:1", wire.Version5_3_3, slog.New(slog.DiscardHandler)
		s := remote.NewServer(o)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		conns := make([]net.Conn, n)
		for i := range conns {
			var err error
			if conns[i], err = network.Dial(t.Context(), s.Address()); err != nil {
				t.Fatal(err)
			}
		}
		f(t, conns)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, c := range conns {
			_ = c.Close() // Some were cut by the server.
		}
	})
}

// TestSlowClients_shareOneLimit has many clients that read nothing ask for much. What waits for all stays near the limit,
// and a client that reads is served.
func TestSlowClients_shareOneLimit(t *testing.T) {
	t.Parallel()
	const size, total, clients = 64 << 10, 2 << 20, 21
	var handled atomic.Int64
	crowd(t, clients, remote.Options{
		MaxFrame: 1 << 20, MaxPending: 1 << 20, MaxTotal: total,
		Handle: func(r *remote.Request) {
			handled.Add(1)
			r.Reply(&remote.Answer{Body: make([]byte, size)})
		},
	}, func(t *testing.T, conns []net.Conn) {
		t.Helper()
		for _, c := range conns[1:] {
			for range 100 {
				request(t, c, &wire.Command{Code: 1})
			}
		}
		synctest.Wait()
		// The limit, and for each client two answers more and what the network holds.
		if got := handled.Load() * size; got > total+clients*4*size {
			t.Errorf("%d KiB were made for clients that read nothing", got>>10)
		}
		for range 100 {
			request(t, conns[0], &wire.Command{Code: 1})
			next(t, conns[0])
		}
	})
}

// TestPushes_cutAClientThatDoesNotReadThem: requests of the server are not held back by what the client reads.
func TestPushes_cutAClientThatDoesNotReadThem(t *testing.T) {
	t.Parallel()
	var conn atomic.Pointer[remote.Conn]
	crowd(t, 1, remote.Options{MaxFrame: 1 << 20, MaxPending: 1 << 20, Handle: func(r *remote.Request) { conn.Store(r.Conn) }},
		func(t *testing.T, conns []net.Conn) {
			t.Helper()
			request(t, conns[0], &wire.Command{Code: 1})
			synctest.Wait()
			for n := range 1000 {
				select {
				case <-conn.Load().Done():
					if n < 16 {
						t.Errorf("cut after %d pushes", n)
					}
					return
				default:
					conn.Load().Send(&wire.Command{Code: 40, Body: make([]byte, 256<<10)})
				}
			}
			t.Error("250 MiB were made for a client that reads nothing")
		})
}

// TestLargeFrames_shareOneLimit has clients send most of a large frame each. Those beyond the limit are cut, one that
// sends whole frames is served, also a large one once there is room.
func TestLargeFrames_shareOneLimit(t *testing.T) {
	t.Parallel()
	const frame, limit = 4 << 20, 16 << 20
	crowd(t, 11, remote.Options{
		MaxFrame: 8 << 20, MaxPending: 1 << 20, MaxReading: limit,
		Handle: func(r *remote.Request) { r.Reply(&remote.Answer{Remark: "served"}) },
	}, func(t *testing.T, conns []net.Conn) {
		t.Helper()
		part := binary.BigEndian.AppendUint32(nil, frame)
		part = append(part, make([]byte, frame-1)...)
		cut := 0
		for _, c := range conns[1:] {
			if _, err := c.Write(part); err != nil {
				cut++
			}
		}
		synctest.Wait()
		if cut < 5 || cut > 8 {
			t.Errorf("%d of 10 clients were cut", cut)
		}
		request(t, conns[0], &wire.Command{Code: 1, Body: make([]byte, 64<<10)})
		next(t, conns[0])
		for _, c := range conns[1:] {
			_ = c.Close() // Some were cut by the server.
		}
		synctest.Wait()
		request(t, conns[0], &wire.Command{Code: 1, Body: make([]byte, frame)})
		next(t, conns[0])
	})
}
