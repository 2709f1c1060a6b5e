package settle

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// cluster is brokers by name. Those whose name begins with "silent" never answer. What is sent to topic B/x is broker B's.
type cluster struct {
	mu    sync.Mutex
	out   map[string]int
	most  int            // of calls in flight, of all
	each  map[string]int // of calls in flight, by broker
	back  string         // the silent one that answers new calls
	done  map[string]int
	texts []string // of outputs that are stored
	// refuse tells what to answer to an output; nil = it is stored.
	refuse func(*rocketmq.OutgoingMessage) error
}

func newCluster() *cluster {
	return &cluster{out: map[string]int{}, each: map[string]int{}, done: map[string]int{}}
}

func (c *cluster) ask(ctx context.Context, broker string) error {
	c.mu.Lock()
	c.out[broker]++
	c.each[broker] = max(c.each[broker], c.out[broker])
	all := 0
	for _, n := range c.out {
		all += n
	}
	c.most = max(c.most, all)
	answers := !strings.HasPrefix(broker, "silent") || broker == c.back
	c.mu.Unlock()
	var err error
	if !answers {
		<-ctx.Done()
		err = fmt.Errorf("asking %s: %w", broker, ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[broker]--
	if err == nil {
		c.done[broker]++
	}
	return err
}

func (c *cluster) SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error {
	return c.ask(ctx, req.Queue.Broker)
}

func (c *cluster) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	if c.refuse != nil {
		if err := c.refuse(m); err != nil {
			return rocketmq.SendResult{}, err
		}
	}
	if err := c.ask(ctx, c.StoredBy(m.Topic, m.ShardingKey)); err != nil {
		return rocketmq.SendResult{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, string(m.Body))
	return rocketmq.SendResult{Status: rocketmq.SendOK}, nil
}

func (c *cluster) SendBatch(ctx context.Context, _ string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	results := make([]rocketmq.SendResult, len(ms))
	for i, m := range ms {
		var err error
		if results[i], err = c.Send(ctx, m); err != nil {
			return results, err
		}
	}
	return results, nil
}

// StoredBy is what the topic's name says.
func (c *cluster) StoredBy(topic, _ string) string {
	name, _, _ := strings.Cut(topic, "-of-")
	return name
}

func (c *cluster) stored() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}

// mostOf tells how many calls were in flight at one time: to a broker, and to all.
func (c *cluster) mostOf(broker string) (each, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.each[broker], c.most
}

// settler runs one over the cluster until the test ends.
func (c *cluster) settler(t *testing.T, change ...func(*Config)) *Settler {
	t.Helper()
	s, _ := c.stoppable(t, change...)
	return s
}

// stoppable is settler, and what ends it before.
func (c *cluster) stoppable(t *testing.T, change ...func(*Config)) (s *Settler, stop func()) {
	t.Helper()
	cfg := Config{
		Policy: func() *Policy { return &Policy{Group: "G", MaxRetries: 16, Levels: DefaultLevels()} }, Broker: c,
		RetryOff: func() bool { return false }, Again: func(*queue.Delivery) {}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	s = New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return s, stop
}

// messages are n of a broker's queue, at a handler.
func messages(broker string, n int) (o *queue.Ownership, ds []queue.Delivery) {
	o = queue.NewOwnership(sdk.Queue{Topic: "T", Broker: broker}, 1, 0, nil, make(chan struct{}, 1))
	ds = make([]queue.Delivery, n)
	for i := range ds {
		ds[i] = queue.Delivery{Offset: int64(i), Attempt: 1, Topic: "T", Body: []byte("x")}
	}
	o.Admit(ds, int64(n), time.Now())
	o.Sent(n)
	return o, ds
}

func failAll(s *Settler, ds []queue.Delivery) {
	for i := range ds {
		s.Submit(&Job{Items: []Item{{D: &ds[i]}}, Verdict: frame.Verdict{Kind: frame.VerdictRetry, Text: "db"}})
	}
}

// Each broker has bounds of its own, and all have one together. One that is silent holds nobody but itself, more of them no longer
// than one call lasts; then each is asked by one call at a time.
func TestEachBrokerHasItsOwnBound(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s := c.settler(t)
		_, ds := messages("silent-0", 3000)
		failAll(s, ds)
		synctest.Wait()
		own, healthy := messages("healthy", 500)
		began := time.Now()
		failAll(s, healthy)
		synctest.Wait()
		if own.Safe() != 500 || time.Since(began) > 0 {
			t.Errorf("%d messages of the broker that answers are sent back at once, want 500", own.Safe())
		}
		if got, _ := c.mostOf("silent-0"); got != MaxCalls {
			t.Errorf("%d calls at once to the silent broker, want %d", got, MaxCalls)
		}
		var more [][]queue.Delivery
		for i := range 20 {
			_, ds := messages(fmt.Sprint("silent-", i+1), 200)
			failAll(s, ds)
			more = append(more, ds)
		}
		pass(2*callLimit + time.Second)
		if _, got := c.mostOf(""); got != MaxAll {
			t.Errorf("%d calls at once, want %d", got, MaxAll)
		}
		pass(2 * callLimit)
		own, healthy = messages("healthy", 500)
		failAll(s, healthy)
		synctest.Wait()
		if own.Safe() != 500 {
			t.Errorf("with %d silent brokers %d messages of the other are sent back at once, want 500", len(more)+1, own.Safe())
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for broker, n := range c.out {
			if n > 1 {
				t.Errorf("%d calls are in flight to %s, which answers nothing", n, broker)
			}
		}
		if _, _, h := s.Status(); h.Kind != queue.HoldSettle || h.Message == "" || !strings.Contains(h.Text, "silent-0") {
			t.Errorf("hold %+v", h)
		}
	})
}

// What is known of a silent broker outlasts the pauses of all that was tried there: it does not come again all at once.
func TestSilentBrokersAreAskedByOneCallAtATimeAfterPauses(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s, stop := c.stoppable(t)
		for i := range 8 {
			_, ds := messages(fmt.Sprint("silent-", i), MaxCalls)
			failAll(s, ds)
		}
		pass(callLimit + time.Millisecond)
		for range 600 {
			pass(time.Second)
			c.mu.Lock()
			for broker, n := range c.out {
				if n > 1 {
					t.Errorf("%d calls are in flight to %s, which answers nothing", n, broker)
				}
			}
			c.mu.Unlock()
		}
		stop()
		if _, pending, _ := s.Status(); pending != 0 {
			t.Errorf("%d jobs are under way after the stop", pending)
		}
	})
}

// A broker that is back is not kept waiting by the call that was made to find out, and others do not profit by that.
func TestBrokerThatIsBackGetsAllAtOnce(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s := c.settler(t)
		var owns [2]*queue.Ownership
		for i := range owns {
			o, ds := messages(fmt.Sprint("silent-", i), 100)
			owns[i] = o
			failAll(s, ds)
		}
		pass(callLimit + 5*time.Second) // one call to each is in flight
		c.mu.Lock()
		c.back = "silent-0"
		c.mu.Unlock()
		s.TryNow("silent-0")
		synctest.Wait()
		if n := owns[0].Active(); n != 1 {
			t.Errorf("%d messages wait for the broker that is back, want the one whose call was in flight", n)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := c.out["silent-1"]; n != 1 {
			t.Errorf("%d calls are in flight to the broker that is still silent, want 1", n)
		}
	})
}

// However many topics a handler makes up while nobody answers, what is kept of them is bounded, and of those that answer nothing is.
func TestBulkheadsKeptWithoutCallsAreBounded(t *testing.T) {
	var bs bulkheads
	for i := range 10 * maxSilent {
		c := &call{to: fmt.Sprint("topic ", i), answer: silent, text: "timeout"}
		bs.add(c)
		bs.start(func(*call) {})
		bs.ended(c)
	}
	if len(bs.all) != maxSilent || len(bs.byName) != maxSilent || bs.byName[fmt.Sprint("topic ", 10*maxSilent-1)] == nil || bs.queued() {
		t.Errorf("%d bulkheads are kept, %d by name", len(bs.all), len(bs.byName))
	}
	for i := range 10 * maxSilent {
		c := &call{to: fmt.Sprint("topic ", i), answer: answered}
		bs.add(c)
		bs.start(func(*call) {})
		bs.ended(c)
	}
	if len(bs.all) != 0 || len(bs.byName) != 0 {
		t.Errorf("%d bulkheads are kept that answered, %d by name", len(bs.all), len(bs.byName))
	}
}

// A queue that is given up takes with it what waits for its silent broker.
func TestReleaseEmptiesTheQueueOfASilentBroker(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s := c.settler(t)
		o, ds := messages("silent", 1000)
		failAll(s, ds)
		synctest.Wait()
		o.End()
		s.Release(o)
		pass(2*callLimit + time.Second)
		if _, pending, _ := s.Status(); pending != 0 {
			t.Errorf("%d jobs are under way", pending)
		}
	})
}

// strandJob is one answer for messages of one strand, each with outputs to topics; the outputs' texts are offset and topic.
func strandJob(topics ...[]string) (*queue.Ownership, *Job) {
	o, ds := messages("b", len(topics))
	o.Order = queue.OrderQueue
	var b frame.Builder
	j := &Job{Verdict: frame.Verdict{Kind: frame.VerdictAck}, Results: &frame.Results{}}
	for i := range ds {
		ds[i].Strand = 7
		it := Item{D: &ds[i]}
		for _, topic := range topics[i] {
			it.Outputs = append(it.Outputs, b.Len())
			b.Append(&frame.Record{Topic: topic, Body: fmt.Appendf(nil, "%d %s", i, topic)})
		}
		j.Items = append(j.Items, it)
	}
	j.Results.Outputs = *b.Records()
	return o, j
}

// Within an answer nothing of a strand is stored or settled before what comes before it, wherever its outputs go; other brokers'
// outputs of the same message do not wait for each other.
func TestOutputsOfAStrandAreInOrderOverBrokers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		var refusing atomic.Bool
		refusing.Store(true)
		c.refuse = func(m *rocketmq.OutgoingMessage) error {
			if refusing.Load() && m.Topic == "a-of-T" {
				return &rocketmq.ResponseError{Remark: "busy"}
			}
			return nil
		}
		s := c.settler(t)
		o, j := strandJob([]string{"b-of-T"}, []string{"a-of-T", "b-of-T"}, nil, []string{"b-of-T", "b-of-U"}, []string{"a-of-T"})
		s.Submit(j)
		pass(time.Second)
		if got := c.stored(); !slices.Equal(got, []string{"0 b-of-T", "1 b-of-T"}) || o.Safe() != 1 || o.Active() != 4 {
			t.Errorf("while broker a refuses %q is stored, safe %d, %d active", got, o.Safe(), o.Active())
		}
		refusing.Store(false)
		pass(time.Minute)
		got := c.stored()
		if o.Safe() != 5 || len(got) != 6 || got[2] != "1 a-of-T" || got[5] != "4 a-of-T" {
			t.Errorf("%q is stored, safe %d", got, o.Safe())
		}
	})
}

// Without a strand messages do not wait for each other: one whose output's broker is silent holds nobody else of its answer.
func TestSilentBrokerHoldsOnlyItsOutputsOfAnAnswer(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s := c.settler(t)
		for range 200 {
			o, j := strandJob([]string{"silent-of-T"}, []string{"a-of-T"}, nil, []string{"a-of-T", "b-of-T"})
			for i := range j.Items {
				j.Items[i].D.Strand = 0
			}
			s.Submit(j)
			synctest.Wait()
			if o.Active() != 1 {
				t.Fatalf("%d messages wait, want the one whose output goes to the silent broker", o.Active())
			}
		}
		if got := len(c.stored()); got != 600 {
			t.Errorf("%d outputs are stored, want 600", got)
		}
	})
}

// Several outputs of one message that only the broker refuses for good give what follows back as well.
func TestOutputThatTheBrokerRefusesBreaksItsStrand(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		c.refuse = func(m *rocketmq.OutgoingMessage) error {
			if string(m.Body) == "1 b-of-T" {
				return rocketmq.ErrInvalidMessage
			}
			return nil
		}
		var back []int64
		var failed *Job
		s := c.settler(t, func(cfg *Config) {
			cfg.Again = func(d *queue.Delivery) { back = append(back, d.Offset) }
			cfg.Broken = func(_ *queue.Delivery, j *Job) { failed = j }
		})
		o, j := strandJob([]string{"b-of-T"}, []string{"b-of-T"}, nil, []string{"b-of-T"})
		s.Submit(j)
		later, rest := strandJob([]string{"b-of-T"})
		rest.Items[0].D.Own, rest.Items[0].D.Offset = o, 4
		synctest.Wait()
		s.Submit(rest)
		synctest.Wait()
		if got := c.stored(); !slices.Equal(got, []string{"0 b-of-T"}) || !slices.Equal(back, []int64{2, 3, 4}) || o.Safe() != 1 {
			t.Errorf("%q is stored, %v given back, safe %d", got, back, o.Safe())
		}
		if failed == nil || failed.Verdict.Class != "output" || failed.Items[0].D.Offset != 1 || later.Active() != 1 {
			t.Errorf("failed: %+v", failed)
		}
	})
}

// A stop drops also a message one of whose outputs nobody may store, while another is in flight or waits for a silent broker. As a
// failed one nobody would take it any more, and its memory would never be given back.
func TestStopDropsWhatCannotBeStored(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"without a strand": func(*Config) {},
		"of a strand": func(cfg *Config) {
			cfg.Broken = func(*queue.Delivery, *Job) {} // of a dispatcher that has ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				c := newCluster()
				c.refuse = func(m *rocketmq.OutgoingMessage) error {
					if m.Topic == "a-of-T" {
						return rocketmq.ErrInvalidMessage
					}
					return nil
				}
				s, stop := c.stoppable(t, change)
				_, ds := messages("silent", 100)
				failAll(s, ds)
				o, flies := strandJob([]string{"a-of-T", "silent-2-of-T"})
				of, waits := strandJob([]string{"a-of-T", "silent-of-T"})
				if name == "without a strand" {
					flies.Items[0].D.Strand, waits.Items[0].D.Strand = 0, 0
				}
				s.Submit(flies)
				s.Submit(waits)
				pass(time.Second)
				stop()
				if _, pending, _ := s.Status(); o.Active() != 0 || of.Active() != 0 || pending != 0 {
					t.Errorf("left: %d and %d messages, %d jobs", o.Active(), of.Active(), pending)
				}
			})
		})
	}
}

// A later answer has a message of a strand that waits for a silent broker, and one of another strand. That one does not wait, nor
// does what comes after it.
func TestAStrandThatWaitsHoldsNoOther(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		s := c.settler(t)
		o, first := strandJob([]string{"silent-of-T"})
		s.Submit(first)
		for n := range 3 {
			_, later := strandJob([]string{"silent-of-T"}, []string{"a-of-T"})
			for i := range later.Items {
				later.Items[i].D.Own, later.Items[i].D.Offset = o, int64(2*n+i+1)
			}
			later.Items[1].D.Strand = later.Items[0].D.Strand + 1
			s.Submit(later)
		}
		pass(5 * time.Second)
		if n := len(c.stored()); n != 3 {
			t.Errorf("%d outputs of another strand are stored, want 3", n)
		}
	})
}

// Of an answer with outputs for two brokers one is silent, and busy with much else, and the other refuses once. It is asked again
// after a pause, whatever the silent one does.
func TestARefusedOutputDoesNotWaitForASilentBroker(t *testing.T) {
	for name, strand := range map[string]uint32{"no order": 0, "order": 1} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				c := newCluster()
				var asked atomic.Int64
				c.refuse = func(m *rocketmq.OutgoingMessage) error {
					if m.Topic == "a-of-T" && asked.Add(1) == 1 {
						return &rocketmq.ResponseError{Remark: "busy"}
					}
					return nil
				}
				limit := int64(1)
				s := c.settler(t, func(cfg *Config) { cfg.OutputLimit = func() int64 { return limit } })
				_, ds := messages("silent", 500)
				failAll(s, ds)
				o, j := strandJob([]string{"silent-of-T"}, []string{"a-of-T"}, []string{"a-of-T", "silent-of-T"})
				for i := range j.Items {
					j.Items[i].D.Strand = strand * uint32(1+i)
				}
				s.Submit(j)
				pass(10 * time.Second)
				if n := len(c.stored()); n != 1 {
					t.Errorf("%d outputs are stored, want the one of the message that has none for the silent broker", n)
				}
				if n := o.Active(); n != 2 {
					t.Errorf("%d messages are not settled, want the 2 with outputs for the silent broker", n)
				}
				if !s.Full() {
					t.Error("the memory of an answer is free while outputs of it wait")
				}
			})
		})
	}
}

// What waits together for its turn begins when the turn of each comes, and goes out together where it can.
func TestWhatWaitsTogetherNeedNotBeginTogether(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c := newCluster()
		var busy atomic.Bool
		busy.Store(true)
		c.refuse = func(m *rocketmq.OutgoingMessage) error {
			if m.Topic == "a-of-T" && busy.Load() {
				return &rocketmq.ResponseError{Remark: "busy"}
			}
			return nil
		}
		s := c.settler(t)
		o, first := strandJob([]string{"silent-of-T"}, []string{"a-of-T"}, []string{"a-of-T"})
		_, later := strandJob([]string{"silent-of-T"}, []string{"a-of-T"}, []string{"a-of-T"}, nil)
		for i := range later.Items {
			later.Items[i].D.Own, later.Items[i].D.Offset = o, int64(3+i)
		}
		for i := range 3 {
			first.Items[i].D.Strand, later.Items[i].D.Strand = uint32(1+i), uint32(1+i)
		}
		later.Items[3].D.Strand = 2 // acked without outputs, after one that has some
		s.Submit(first)
		s.Submit(later)
		pass(5 * time.Second)
		if n := len(c.stored()); n != 0 {
			t.Fatalf("%d outputs are stored, the broker is busy", n)
		}
		busy.Store(false)
		pass(5 * time.Second)
		if got := c.stored(); len(got) != 4 {
			t.Errorf("%d outputs are stored, want 4", len(got))
		}
		if _, n, _ := s.Status(); n != 2 {
			t.Errorf("%d jobs are left, want the 2 of the strand that the silent broker holds", n)
		}
	})
}

// Parts are what a strand, or a sharding key of one topic, binds together, over others too.
func TestPartsOfAJob(t *testing.T) {
	_, j := strandJob([]string{"a-of-T"}, []string{"a-of-T", "b-of-T"}, []string{"b-of-T"}, []string{"a-of-T"}, nil, nil, []string{"a-of-T"})
	j.Results.OutputShardingKey = []string{"k", "k", "l", "l", "l", "", ""}
	for i, strand := range []uint32{1, 2, 3, 4, 5, 5, 0} {
		j.Items[i].D.Strand = strand
	}
	s := New(Config{Policy: func() *Policy { return &Policy{} }, Broker: newCluster(), Now: time.Now})
	s.Submit(j)
	var got [][]int64
	for _, part := range s.parts(j) {
		var offsets []int64
		for _, it := range part {
			offsets = append(offsets, it.D.Offset)
		}
		got = append(got, offsets)
	}
	if want := [][]int64{{0, 1, 2}, {3}, {4, 5}, {6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("parts %v, want %v", got, want)
	}
}
