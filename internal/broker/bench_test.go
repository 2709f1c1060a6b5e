package broker_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// BenchmarkPull drains a backlog of 1 KiB messages, 32 a pull, with one pull in flight for each of 4 queues.
func BenchmarkPull(b *testing.B) {
	const queues, stored = 4, 200_000
	s := broker.New(broker.Config{})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Fill("T", queues, stored, 1024); err != nil {
		b.Fatal(err)
	}
	var d net.Dialer
	nc, err := d.DialContext(b.Context(), "tcp", s.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	in := bufio.NewReaderSize(nc, 256<<10)
	var out, frame []byte
	ask := func(queue int, offset int64) {
		var err error
		out, err = wire.AppendFrame(out[:0], &wire.Command{
			Code: int32(wire.ReqPullMessage), Opaque: int32(queue), Ext: pullFields("G", "T", queue, offset, 0).fields(),
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for queue := range queues {
		ask(queue, 0)
	}
	var cmd wire.Command
	for pulled := 0; pulled < b.N; {
		var prefix [4]byte
		if _, err := io.ReadFull(in, prefix[:]); err != nil {
			b.Fatal(err)
		}
		if n := int(binary.BigEndian.Uint32(prefix[:])); cap(frame) < n {
			frame = make([]byte, n)
		} else {
			frame = frame[:n]
		}
		if _, err := io.ReadFull(in, frame); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Decode(frame); err != nil {
			b.Fatal(err)
		}
		next := int64(0) // Around again at the end.
		if cmd.Code == 0 {
			if next, err = strconv.ParseInt(cmd.Ext.Get("nextBeginOffset"), 10, 64); err != nil {
				b.Fatal(err)
			}
			pulled += 32
		}
		ask(int(cmd.Opaque), next)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkFill stores messages of 1 KiB.
func BenchmarkFill(b *testing.B) {
	s := broker.New(broker.Config{})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.Fill("T", 4, b.N, 1024); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
