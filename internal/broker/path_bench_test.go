package broker_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const (
	batchSize = 64
	pullSize  = 32
)

// BenchmarkSendBatch stores 1 KiB messages on the disk, sent by 8 connections in batches of 64, each with a request on its
// way. The broker shares the process with clients that do next to nothing, so the CPU time is nearly all its own.
func BenchmarkSendBatch(b *testing.B) {
	for _, flush := range []store.Flush{store.FlushAsync, store.FlushSync} {
		b.Run(flush.String(), func(b *testing.B) {
			s := startOnDisk(b, b.TempDir(), flush)
			b.ReportAllocs()
			before := cpuTime(b)
			b.ResetTimer()
			sendBatches(b, s, b.N)
			reportCPU(b, before)
		})
	}
}

// BenchmarkPullFromDisk drains a backlog of 1 KiB messages, 32 a pull, one pull on its way for each of 8 queues: first what
// was just stored, then what a broker that was started anew finds.
func BenchmarkPullFromDisk(b *testing.B) {
	const stored = 500_000
	dir := b.TempDir()
	s := startOnDisk(b, dir, store.FlushAsync)
	sendBatches(b, s, stored)
	b.Run("warm", func(b *testing.B) { pullAll(b, s) })
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	s = startOnDisk(b, dir, store.FlushAsync)
	b.Run("restarted", func(b *testing.B) { pullAll(b, s) })
}

func startOnDisk(b *testing.B, dir string, flush store.Flush) *broker.Broker {
	b.Helper()
	s := broker.New(broker.Config{DataDir: dir, Flush: flush})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() }) // the benchmark may have closed it
	s.CreateTopic("T", 8)
	return s
}

func sendBatches(b *testing.B, s *broker.Broker, n int) {
	b.Helper()
	var wg sync.WaitGroup
	for sender := range 8 {
		wg.Go(func() {
			if err := sendBatchesTo(b, s, sender, n/8); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func sendBatchesTo(b *testing.B, s *broker.Broker, queue, n int) error {
	b.Helper()
	nc, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", s.Address())
	if err != nil {
		return err
	}
	in, e := bufio.NewReader(nc), ext{
		"a": "PG", "b": "T", "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": 1700000000000, "h": 0, "i": "UNIQ_KEY\x01" + strings.Repeat("0", 32) + "\x02WAIT\x01true\x02",
		"j": 0, "k": false, "m": true, "n": "broker-a",
	}
	var body []byte
	for range batchSize {
		p := wire.BatchPart{Body: []byte(randomText(1024)), Properties: []byte("UNIQ_KEY\x01" + strings.Repeat("0", 32) + "\x02WAIT\x01true\x02")}
		if body, err = p.Append(body); err != nil {
			return err
		}
	}
	frame, err := wire.AppendFrame(nil, &wire.Command{Code: int32(wire.ReqSendBatchMessage), Ext: e.fields(), Body: body})
	if err != nil {
		return err
	}
	keys := uniqueKeys(frame)
	for sent := 0; sent < n; sent += batchSize {
		for i, at := range keys {
			copy(frame[at:], fmt.Sprintf("%08X%012X%012X", queue, sent, i))
		}
		if _, err := nc.Write(frame); err != nil {
			return err
		}
		cmd, err := readReply(in, nil)
		if err != nil {
			return err
		}
		if cmd.Code != 0 {
			return fmt.Errorf("code %d: %s", cmd.Code, cmd.Remark)
		}
	}
	return nc.Close()
}

// uniqueKeys finds where the unique keys of a frame are, so that it need not be made anew for each request.
func uniqueKeys(frame []byte) (at []int) {
	for from := 0; ; {
		i := strings.Index(string(frame[from:]), "UNIQ_KEY\x01")
		if i < 0 {
			return at
		}
		from += i + len("UNIQ_KEY\x01")
		at = append(at, from)
	}
}

func randomText(n int) string {
	x, out := uint64(88172645463325252), make([]byte, n)
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = 'a' + byte(x%26)
	}
	return string(out)
}

func readReply(in io.Reader, buf []byte) (*wire.Command, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(in, prefix[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(prefix[:]))
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	if _, err := io.ReadFull(in, buf[:n]); err != nil {
		return nil, err
	}
	cmd := new(wire.Command)
	return cmd, cmd.Decode(buf[:n])
}

func pullAll(b *testing.B, s *broker.Broker) {
	b.Helper()
	b.ReportAllocs()
	before := cpuTime(b)
	var wg sync.WaitGroup
	for queue := range 8 {
		wg.Go(func() {
			if err := pullQueue(b, s, queue, b.N/8); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	reportCPU(b, before)
}

// pullQueue pulls n messages, from the front again at the end.
func pullQueue(b *testing.B, s *broker.Broker, queue, n int) error {
	b.Helper()
	nc, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", s.Address())
	if err != nil {
		return err
	}
	in, buf := bufio.NewReaderSize(nc, 64<<10), make([]byte, 64<<10)
	var out []byte
	for pulled, next := 0, int64(0); pulled < n; pulled += pullSize {
		if out, err = wire.AppendFrame(out[:0], &wire.Command{
			Code: int32(wire.ReqPullMessage), Ext: pullFields("G", "T", queue, next, 0).fields(),
		}); err != nil {
			return err
		}
		if _, err := nc.Write(out); err != nil {
			return err
		}
		cmd, err := readReply(in, buf)
		if err != nil {
			return err
		}
		if next = 0; cmd.Code == 0 {
			if next, err = strconv.ParseInt(cmd.Ext.Get("nextBeginOffset"), 10, 64); err != nil {
				return err
			}
		}
	}
	return nc.Close()
}

// cpuTime is what this process has used: the steadiest figure on a machine that others use.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, before time.Duration) {
	b.Helper()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
