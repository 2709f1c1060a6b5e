package runtime_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// benchBroker serves pulls of n messages of 1 KiB from prepared bytes: what is measured is the engine.
type benchBroker struct {
	*clustertest.Client
	body  []byte
	n     int64
	size  int
	limit int64 // a queue
	spare sync.Pool
}

func newBenchBroker(c *clustertest.Client, n int, limit int64) *benchBroker {
	b := &benchBroker{Client: c, n: int64(n), limit: limit}
	body := []byte(strings.Repeat("x", 1024))
	for range n {
		m := wire.Message{
			Topic: []byte(topicName), Body: body, BodyCRC: wire.BodyCRC(body), StoreHost: clustertest.Host(), BornHost: clustertest.Host(), StoreMillis: 1,
			Properties: []byte("KEYS\x01order-4711\x02UNIQ_KEY\x017F0000017A244E0E2F2A9346E9EF0012\x02CLUSTER\x01DefaultCluster\x02WAIT\x01true\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02"),
		}
		var err error
		if b.body, err = m.Append(b.body); err != nil {
			panic(err)
		}
		b.size = m.Size()
	}
	return b
}

func (b *benchBroker) StartPull(*rocketmq.PullRequest, func(*rocketmq.PullResult, error)) (func(), bool) {
	return nil, false
}

func (b *benchBroker) Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error) {
	if req.Queue.Topic != topicName || req.Offset >= b.limit {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	buf, ok := b.spare.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, len(b.body))
		buf = &fresh
	}
	body := *buf
	copy(body, b.body) // a client reads from its socket, too
	for i := range b.n {
		at := int(i)*b.size + 12
		put(body[at:], uint64(req.Queue.ID), 4)
		put(body[at+8:], uint64(req.Offset+i), 8)
	}
	return &rocketmq.PullResult{Status: rocketmq.PullFound, Next: req.Offset + b.n, Max: b.limit, Body: body, Release: func() { b.spare.Put(buf) }}, nil
}

func put(b []byte, v uint64, n int) {
	for i := range n {
		b[i] = byte(v >> (8 * (n - 1 - i)))
	}
}

// benchLane acks every batch whole, from its own goroutine, as a host's reader does.
type benchLane struct {
	events chan frame.Event
	work   chan frame.Event
	done   atomic.Int64
}

func (l *benchLane) Open(context.Context, frame.LaneSpec) (runtime.Lane, error) { return l, nil }
func (l *benchLane) Info() frame.LaneInfo                                       { return frame.LaneInfo{Plugin: "bench"} }
func (l *benchLane) Events() <-chan frame.Event                                 { return l.events }
func (l *benchLane) Cancel(uint64, []uint32)                                    {}
func (l *benchLane) Revoke([]sdk.Queue)                                         {}
func (l *benchLane) Drain(context.Context) error                                { return nil }
func (l *benchLane) Abort(error) {
	close(l.work)
}

func (l *benchLane) Send(b *frame.Batch) error {
	l.work <- frame.Event{Kind: frame.EventResults, Results: &frame.Results{Seq: b.Seq, AckRuns: []uint32{0, uint32(b.Records.Len())}}}
	return nil
}

func (l *benchLane) run() {
	l.events <- frame.Event{Kind: frame.EventCredit, Credits: 512}
	for e := range l.work {
		n := int(e.Results.AckRuns[1])
		l.events <- e
		l.events <- frame.Event{Kind: frame.EventCredit, Credits: n}
		l.done.Add(int64(n))
	}
	l.events <- frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: frame.CauseStopped}}
	close(l.events)
}

// BenchmarkEngine is the whole engine between a broker and a lane that cost nothing but their copies. One op = one message.
func BenchmarkEngine(b *testing.B) {
	for _, bc := range []struct {
		name          string
		queues, batch int
	}{{"queues=8/batch=32", 8, 32}, {"queues=8/batch=256", 8, 256}, {"queues=64/batch=32", 64, 32}} {
		b.Run(bc.name, func(b *testing.B) {
			cluster := clustertest.New()
			cluster.CreateTopic(topicName, bc.queues)
			each := int64((b.N/bc.queues/bc.batch + 1) * bc.batch)
			broker := newBenchBroker(cluster.Client("bench"), bc.batch, each)
			l := &benchLane{events: make(chan frame.Event, 1024), work: make(chan frame.Event, 1024)}
			go l.run()
			r, err := runtime.New(runtime.Config{
				Streams: []runtime.StreamConfig{{
					Name: "s", Broker: "main", Group: group, Handler: "h", StartFrom: runtime.StartFrom{First: true},
					Subscriptions: []runtime.Subscription{{Topic: topicName}}, Batch: runtime.Batch{Max: bc.batch}, Pull: runtime.Pull{Messages: bc.batch}, FailureTopic: "-",
				}},
				Brokers: map[string]runtime.Broker{"main": broker}, Handlers: l,
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu()
			if err := r.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			total := each * int64(bc.queues)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for l.done.Load() < total {
				<-tick.C
			}
			b.StopTimer()
			b.ReportMetric(float64(cpu()-start)/float64(total), "cpu-ns/msg")
			if err := r.Stop(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFloor is what no engine can save: the fake broker's copy, decoding, the checksum, one copy of the payload.
// Compare BenchmarkEngine with it, since both figures move with the machine.
func BenchmarkFloor(b *testing.B) {
	broker := newBenchBroker(clustertest.New().Client("bench"), 32, 1<<62)
	req := &rocketmq.PullRequest{Queue: clustertest.Queue(topicName, 0)}
	var payload []byte
	b.ReportAllocs()
	start := cpu()
	n := 0
	for n < b.N {
		res, err := broker.Pull(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		payload = payload[:0]
		for body := res.Body; len(body) > 0; n++ {
			var m wire.Message
			size, err := m.Decode(body)
			if err == nil {
				err = m.CheckCRC()
			}
			if err != nil {
				b.Fatal(err)
			}
			payload = append(append(payload, m.Properties...), m.Body...)
			body = body[size:]
		}
	}
	b.ReportMetric(float64(cpu()-start)/float64(n), "cpu-ns/msg")
}
