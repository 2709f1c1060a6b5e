package rocketmq

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// BenchmarkPull measures the client's part of a pull of 32 messages of 1 KiB over loopback TCP, the scripted broker's
// included.
func BenchmarkPull(b *testing.B) {
	body := make([]byte, 0, 64<<10)
	for i := range 32 {
		m := &wire.Message{
			Topic: []byte("T"), Body: make([]byte, 1024), QueueOffset: int64(i), StoreHost: addrPort("127.0.0.1:1"), BornHost: addrPort("127.0.0.1:2"),
		}
		var err error
		if body, err = m.Append(body); err != nil {
			b.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go serveBench(listener, body)
	addr := listener.Addr().String()
	c, err := New(Config{NameServers: []string{addr}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	req := &PullRequest{
		Group: "G", Queue: queue("a", 0), MaxMessages: 32, MaxBytes: 1 << 18, Hold: 15 * time.Second,
		Subscription: Subscription{Topic: "T", Expression: "*", Version: 1},
	}
	if _, err := c.Queues(b.Context(), "T"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, err := c.Pull(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

// serveBench is name server and broker in one, with one ready answer to each question.
func serveBench(listener net.Listener, body []byte) {
	addr := listener.Addr().String()
	for {
		nc, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = nc.Close() }()
			var frame []byte
			for {
				req, err := readCommand(nc)
				if err != nil {
					return
				}
				resp := wire.NewResponse(req, wire.RespSuccess, "")
				switch req.RequestCode() {
				case wire.ReqGetRoute:
					data := routeTo("a")
					data.Brokers[0].Addrs[0] = addr
					if resp.Body, err = wire.EncodeBody(data, wire.Standard); err != nil {
						return
					}
				case wire.ReqPullMessage:
					resp.Body = body
					resp.Ext = wire.EncodeFields(&wire.PullResponse{NextOffset: 32, MaxOffset: 1 << 20})
				default: // the heartbeat: success
				}
				if frame, err = wire.AppendFrame(frame[:0], resp); err != nil {
					return
				}
				if _, err := nc.Write(frame); err != nil {
					return
				}
			}
		}()
	}
}
