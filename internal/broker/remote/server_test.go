package remote_test

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// serve runs f in virtual time with a server whose requests handle serves, and a connection to it.
func serve(t *testing.T, handle func(*remote.Request), change func(*remote.Options), f func(t *testing.T, s *remote.Server, nc net.Conn)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		var n memnet.Network
		o := remote.Options{
			Listen: n.Listen, Address: "10.0.0.1:1", Handle: handle, MaxFrame: 1 << 20, MaxPending: 1 << 20,
			Version: wire.Version5_3_3, Logger: slog.New(slog.DiscardHandler),
		}
		if change != nil {
			change(&o)
		}
		s := remote.NewServer(o)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		nc, err := n.Dial(t.Context(), s.Address())
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, nc)
		if err := errors.Join(s.Close(), s.Close(), nc.Close()); err != nil {
			t.Error(err)
		}
	})
}

func request(t *testing.T, nc net.Conn, cmd *wire.Command) {
	t.Helper()
	frame, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(frame); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, nc net.Conn) *wire.Command {
	t.Helper()
	var prefix [4]byte
	if _, err := io.ReadFull(nc, prefix[:]); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(nc, content); err != nil {
		t.Fatal(err)
	}
	cmd := new(wire.Command)
	if err := cmd.Decode(content); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestReply_countsOnceAndIsJSON(t *testing.T) {
	t.Parallel()
	serve(t, func(r *remote.Request) {
		r.Reply(&remote.Answer{Code: 5, Remark: "first", Body: []byte("a"), Parts: [][]byte{[]byte("b"), []byte("c")}})
		r.Reply(&remote.Answer{Code: 6})
	}, nil, func(t *testing.T, _ *remote.Server, nc net.Conn) {
		t.Helper()
		for _, encoding := range []wire.Encoding{wire.EncodingJSON, wire.EncodingBinary} {
			request(t, nc, &wire.Command{Code: 1, Opaque: 9, Encoding: encoding})
			a := next(t, nc)
			if a.Code != 5 || a.Opaque != 9 || !a.IsResponse() || a.Encoding != wire.EncodingJSON || string(a.Body) != "abc" || a.Ext != nil {
				t.Errorf("answer %+v", a)
			}
		}
	})
}

func TestSlowClient_isNotReadFrom(t *testing.T) {
	t.Parallel()
	const size, limit = 64 << 10, 256 << 10
	var handled atomic.Int64
	serve(t, func(r *remote.Request) {
		handled.Add(1)
		r.Reply(&remote.Answer{Body: make([]byte, size)})
	}, func(o *remote.Options) { o.MaxPending = limit }, func(t *testing.T, _ *remote.Server, nc net.Conn) {
		t.Helper()
		const requests = 1000
		for range requests { // They fit into the connection's buffer; nothing of the answers is read.
			request(t, nc, &wire.Command{Code: 1})
		}
		synctest.Wait()
		// What waits: the limit, one answer beyond it, what is being written, and what the network holds.
		if n := handled.Load() * size; n > 4*limit {
			t.Errorf("answers of %d KiB were made for a client that reads nothing", n>>10)
		}
		for range requests {
			next(t, nc)
		}
		if n := handled.Load(); n != requests {
			t.Errorf("%d of %d requests were handled", n, requests)
		}
	})
}

func TestCall_answerTimeoutAndEnd(t *testing.T) {
	t.Parallel()
	var conn atomic.Pointer[remote.Conn]
	serve(t, func(r *remote.Request) { conn.Store(r.Conn) }, nil, func(t *testing.T, _ *remote.Server, nc net.Conn) {
		t.Helper()
		request(t, nc, &wire.Command{Code: 1})
		synctest.Wait()
		type outcome struct {
			code int32
			err  error
		}
		ask := func() <-chan outcome {
			ch := make(chan outcome, 2)
			conn.Load().Call(&wire.Command{Code: 307}, 10*time.Second, func(a *wire.Command, err error) {
				if err != nil {
					ch <- outcome{err: err}
					return
				}
				ch <- outcome{code: a.Code}
			})
			return ch
		}
		answered := ask()
		asked := next(t, nc)
		request(t, nc, &wire.Command{Code: 7, Opaque: asked.Opaque, Flag: wire.FlagResponse})
		if got := <-answered; got.code != 7 || got.err != nil {
			t.Errorf("answered: %+v", got)
		}
		start := time.Now()
		silent := ask()
		if got := <-silent; !errors.Is(got.err, remote.ErrCallTimeout) || time.Since(start) != 10*time.Second {
			t.Errorf("silent: %+v after %v", got, time.Since(start))
		}
		request(t, nc, &wire.Command{Code: 7, Opaque: next(t, nc).Opaque, Flag: wire.FlagResponse}) // Too late.
		request(t, nc, &wire.Command{Code: 7, Opaque: 123456, Flag: wire.FlagResponse})             // To nothing.
		cut := ask()
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-cut; !errors.Is(got.err, remote.ErrConnClosed) {
			t.Errorf("cut: %+v", got)
		}
		if got := <-ask(); !errors.Is(got.err, remote.ErrConnClosed) {
			t.Errorf("after the end: %+v", got)
		}
		for _, ch := range []<-chan outcome{answered, silent, cut} {
			if len(ch) > 0 {
				t.Error("a call ended twice")
			}
		}
	})
}

func TestGone_isToldOnce(t *testing.T) {
	t.Parallel()
	var gone atomic.Int64
	serve(t, func(*remote.Request) {}, func(o *remote.Options) { o.Gone = func(*remote.Conn) { gone.Add(1) } }, func(t *testing.T, s *remote.Server, nc net.Conn) {
		t.Helper()
		request(t, nc, &wire.Command{Code: 1})
		synctest.Wait()
		s.DropConnections()
		s.DropConnections()
		synctest.Wait()
		if n := gone.Load(); n != 1 || len(s.Connections()) != 0 {
			t.Errorf("told %d times, %d connections", n, len(s.Connections()))
		}
	})
}

func TestStart_twiceIsRefusedAndAfterCloseWorks(t *testing.T) {
	t.Parallel()
	serve(t, func(*remote.Request) {}, nil, func(t *testing.T, s *remote.Server, nc net.Conn) {
		t.Helper()
		if err := s.Start(); err == nil {
			t.Error("started twice")
		}
		address := s.Address()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Read(make([]byte, 1)); err == nil {
			t.Error("the connection outlived its server")
		}
		if err := s.Start(); err != nil || s.Address() != address {
			t.Errorf("started at %s, was %s: %v", s.Address(), address, err)
		}
	})
}
