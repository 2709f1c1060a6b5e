package store_test

import (
	"crypto/rand"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// onDisk opens a store in a folder on the disk, outside of a RAM disk if TMPDIR is one.
func onDisk(b *testing.B, o store.Options) *store.Store {
	b.Helper()
	o.FS = vfs.Default
	if o.Dir == "" {
		o.Dir = b.TempDir()
	}
	return open(b, o)
}

func randomBody(b *testing.B) string {
	b.Helper()
	body := make([]byte, 1024)
	if _, err := rand.Read(body); err != nil {
		b.Fatal(err)
	}
	return string(body)
}

// BenchmarkPut stores 1 KiB messages from 8 senders in batches of 64, each with a unique key.
func BenchmarkPut(b *testing.B) {
	for _, flush := range []store.Flush{store.FlushSync, store.FlushAsync} {
		b.Run(flush.String(), func(b *testing.B) {
			s := onDisk(b, store.Options{Flush: flush})
			before := cpu(b)
			produce(b, s, b.N, 8, 64)
			b.ReportMetric((cpu(b)-before)/float64(b.N)*1e6, "cpu-s/M")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func produce(b *testing.B, s *store.Store, n, senders, batch int) {
	b.Helper()
	raw := encode(b, "T", randomBody(b), strings.Repeat("p", 100))
	b.ResetTimer()
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for sent := 0; sent < n/senders; sent += batch {
				records := make([]store.Record, batch)
				for i := range records {
					records[i] = store.Record{Raw: append([]byte(nil), raw...), Keys: []string{fmt.Sprint(sender, sent+i)}}
				}
				if err := s.Apply(&store.Change{Appends: []store.Append{{Topic: "T", Queue: int32(sender), Records: records}}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// BenchmarkDrain reads a backlog of 1 KiB messages, 32 at a time.
func BenchmarkDrain(b *testing.B) {
	const stored = 1_000_000
	dir := b.TempDir()
	s := onDisk(b, store.Options{Dir: dir, Flush: store.FlushAsync})
	produce(b, s, stored, 8, 64)
	b.Run("warm", func(b *testing.B) { drain(b, s) })
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	s = onDisk(b, store.Options{Dir: dir})
	b.Logf("opened with %d messages in %v", stored, time.Since(began))
	b.Run("reopened", func(b *testing.B) { drain(b, s) })
}

func drain(b *testing.B, s *store.Store) {
	b.Helper()
	b.ReportAllocs()
	before := cpu(b)
	limits := store.Limits{Messages: 32, Bytes: 256 << 10, Scan: 800}
	for n, queue, offset := 0, int32(0), int64(0); n < b.N; {
		r, err := s.Read("T", queue, offset, limits, store.Match{})
		if err != nil {
			b.Fatal(err)
		}
		if r.Status != store.Found {
			queue, offset = (queue+1)%8, 0
			continue
		}
		n, offset = n+len(r.Messages), r.Next
	}
	b.ReportMetric((cpu(b)-before)/float64(b.N)*1e6, "cpu-s/M")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// cpu is what this process has used, in seconds: the steadiest figure on a machine that others use.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkQueues is what 10,000 queues with a message each take.
func BenchmarkQueues(b *testing.B) {
	dir := b.TempDir()
	s := onDisk(b, store.Options{Dir: dir, Flush: store.FlushAsync})
	raw := encode(b, "T", "x", "")
	for queue := range int32(10_000) {
		err := s.Submit(&store.Change{Appends: []store.Append{{Topic: "T", Queue: queue, Records: []store.Record{{Raw: append([]byte(nil), raw...)}}}}},
			func(err error) {
				if err != nil {
					b.Error(err)
				}
			})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	before := inUse()
	for b.Loop() {
		began := time.Now()
		s = onDisk(b, store.Options{Dir: dir})
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/open")
		b.ReportMetric(float64(inUse()-before)/(1<<20), "MiB")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		b.Fatal(entries, err)
	}
}

func inUse() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
