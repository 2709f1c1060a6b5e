package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// invalidUntil has one message of a queue emit an output that no broker may store until its nth attempt. With each output to Out
// goes one to a second topic from every other message; some messages emit nothing.
func invalidUntil(offset uint64, attempt uint32, spoil func(*frame.Record)) func(context.Context, clustertest.Record) clustertest.Answer {
	return func(_ context.Context, rec clustertest.Record) clustertest.Answer {
		if rec.Offset%10 == 9 {
			return clustertest.Answer{}
		}
		a := clustertest.Answer{Outputs: []frame.Record{output(rec.Body)}, Sharding: []string{"k"}}
		if rec.Offset%2 == 0 {
			a.Outputs, a.Sharding = append(a.Outputs, output(rec.Body)), append(a.Sharding, "")
			a.Outputs[1].Topic = "Out2"
		}
		if rec.Offset == offset && rec.Attempt < attempt {
			spoil(&a.Outputs[0])
		}
		return a
	}
}

// In an ordered stream the outputs of a message are stored in the order of the messages also when one of them is refused
// before it is sent: what follows it comes again after it, and stores nothing before.
func TestInvalidOutputKeepsTheOrderOfOutputs(t *testing.T) {
	spoils := map[string]func(*frame.Record){
		"a bad topic":   func(r *frame.Record) { r.Topic = "no such/topic" },
		"no topic":      func(r *frame.Record) { r.Topic = "" },
		"no body":       func(r *frame.Record) { r.Body = nil },
		"too large":     func(r *frame.Record) { r.Body = make([]byte, 5<<20) },
		"bad property":  func(r *frame.Record) { r.Properties = []byte("a\x01" + strings.Repeat("x", 70000) + "\x02") },
		"long property": func(r *frame.Record) { r.Properties = []byte("a\x01" + strings.Repeat("x", 40000) + "\x02") },
		"of RocketMQ's": func(r *frame.Record) { r.Topic = "SCHEDULE_TOPIC_XXXX" },
	}
	for name, spoil := range spoils {
		for _, order := range []runtime.Order{runtime.OrderQueue, runtime.OrderKey} {
			bubbletest.Run(t, func(t *testing.T) {
				const n, bad = 40, 6
				r := newRig(t, 1, invalidUntil(bad, 3, spoil))
				r.cluster.CreateTopic("Out", 1)
				r.cluster.CreateTopic("Out2", 1)
				r.putKeyed(clustertest.Queue(topicName, 0), n, 1)
				e := r.start(r.config("c1", ordered(order)))
				wait(500 * time.Millisecond)
				if got := r.texts("Out"); !slices.Equal(got, numbers(0, bad, 1)) {
					t.Errorf("%s, order %s: before the bad one is tried again there are outputs %v", name, order, got)
				}
				if got := r.cluster.Committed(group, clustertest.Queue(topicName, 0)); got > bad {
					t.Errorf("%s, order %s: committed %d over the message that holds the queue", name, order, got)
				}
				wait(time.Minute)
				want := slices.DeleteFunc(numbers(0, n, 1), func(s string) bool { return strings.HasSuffix(s, "9") })
				if got := r.texts("Out"); !slices.Equal(got, want) {
					t.Errorf("%s, order %s: outputs %v", name, order, got)
				}
				if got := r.texts("Out2"); !slices.Equal(got, numbers(0, n, 2)) {
					t.Errorf("%s, order %s: outputs to the other topic %v", name, order, got)
				}
				if got := attempts(r.handler.Handled(), bad+1); got != 2 {
					t.Errorf("%s, order %s: the message after the bad one was handled %d times, want twice", name, order, got)
				}
				if got := attempts(r.handler.Handled(), 9); got != 2 {
					t.Errorf("%s, order %s: a message after the bad one, without outputs, was handled %d times, want twice", name, order, got)
				}
				r.committedAll(1)
				if got := e.Status().Streams[0]; got.Counters.Settle.InPlace != 2 || len(got.Heads) != 0 {
					t.Errorf("%s, order %s: counters %+v, heads %v", name, order, got.Counters.Settle, got.Heads)
				}
				r.stop(e)
			})
		}
	}
}

func numbers(from, to, step int) (all []string) {
	for i := from; i < to; i += step {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func attempts(handled []clustertest.Record, offset uint64) (n int) {
	for i := range handled {
		if handled[i].Offset == offset {
			n++
		}
	}
	return n
}

// The outputs of a key's messages come in answers of their own while the first is being stored or fails, the handler goes on with
// some of them for a while, and retries run out: whatever of it happens first, outputs are in order, and other keys go on.
func TestInvalidOutputWhileTheHandlerGoesOn(t *testing.T) {
	for _, pace := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 700 * time.Millisecond} {
		for _, on := range []runtime.OnExhausted{runtime.DeadLetter, runtime.Skip, runtime.Block} {
			bubbletest.Run(t, func(t *testing.T) {
				w := newWatch(t, byKey(2))
				do := invalidUntil(6, 1000, func(r *frame.Record) { r.Topic = "bad topic" })
				if on == runtime.Block {
					do = invalidUntil(6, 5, func(r *frame.Record) { r.Topic = "bad topic" })
				}
				r := newRig(t, 1, nil)
				r.handler.Do = func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
					return w.around(rec, 2, func() clustertest.Answer {
						nap(pace) // heeds no context
						return do(ctx, rec)
					})
				}
				r.cluster.CreateTopic("Out", 1)
				r.cluster.CreateTopic("Out2", 1)
				sends := &slowSends{}
				r.cluster.Fault = sends.fault
				q := clustertest.Queue(topicName, 0)
				r.putKeyed(q, 60, 2)
				e := r.start(r.config("c1", ordered(runtime.OrderKey), func(s *runtime.StreamConfig) {
					s.OnExhausted, s.Retry.MaxRetries = on, 2
				}))
				wait(10 * time.Minute)
				r.committedAll(1)
				if st := e.Status().Streams[0]; st.Settling != 0 || len(st.Heads) != 0 {
					t.Errorf("pace %s, %s: %d settling, heads %v", pace, on, st.Settling, st.Heads)
				}
				for _, topic := range []string{"Out", "Out2"} {
					for key := range 2 {
						var want []string
						for i := range 60 {
							emits := i%10 != 9 && (topic == "Out" || i%2 == 0)
							if i%2 == key && emits && (i != 6 || on == runtime.Block) {
								want = append(want, strconv.Itoa(i))
							}
						}
						got := slices.DeleteFunc(r.texts(topic), func(s string) bool { n, _ := strconv.Atoi(s); return n%2 != key })
						if !slices.Equal(got, want) {
							t.Errorf("pace %s, %s: outputs of key %d to %s: %v", pace, on, key, topic, got)
						}
					}
				}
				r.stop(e)
			})
		}
	}
}

// slowSends lets sends take time, and refuses some.
type slowSends struct {
	mu sync.Mutex
	n  int
}

func (s *slowSends) fault(op, _ string, q sdk.Queue) error {
	if op != "Send" {
		return nil
	}
	s.mu.Lock()
	s.n++
	n := s.n
	s.mu.Unlock()
	nap(time.Duration(n%4) * time.Millisecond)
	if n%7 == 3 {
		return fmt.Errorf("busy with %s", q.Topic)
	}
	return nil
}
