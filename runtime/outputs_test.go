package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// emits gives each record three outputs: a plain one, one with a tag, keys and a property, and two with a sharding key.
func emits(_ context.Context, rec clustertest.Record) clustertest.Answer {
	n, _ := strconv.Atoi(rec.Body)
	key := fmt.Sprint("key-", n%3)
	out := func(body string) frame.Record { return frame.Record{Topic: "Out", Body: []byte(body)} }
	rich := out(rec.Body + "/rich")
	rich.Tag, rich.Keys, rich.Properties = "tag", "k1 k2", []byte("p\x01v\x02")
	return clustertest.Answer{
		Outputs:  []frame.Record{out(rec.Body + "/plain"), rich, out(rec.Body + "/first"), out(rec.Body + "/second")},
		Sharding: []string{"", "", key, key},
	}
}

// parts are the outputs of each input.
func parts() []string { return []string{"/plain", "/rich", "/first", "/second"} }

// storedOutputs counts the outputs that the broker holds.
func (w *wired) storedOutputs() map[string]int {
	n := map[string]int{}
	for _, m := range w.broker.Messages("Out") {
		n[string(m.Body)]++
	}
	return n
}

// settledHaveOutputs wants every output of each input that is committed. Inputs of queue 0 count from 0.
func (w *wired) settledHaveOutputs() {
	w.t.Helper()
	committed, _ := w.broker.Committed(group, topicName, 0) // read first: outputs only get more
	stored := w.storedOutputs()
	for i := range committed {
		for _, part := range parts() {
			if body := fmt.Sprint(i, part); stored[body] == 0 {
				w.t.Errorf("offset %d is committed and output %s is not stored", i, body)
			}
		}
	}
}

// Outputs are refused, their answers are lost, connections are cut, the broker is away and comes back, each in the middle of
// the work: no input is settled before all its outputs are stored, and only an answer that did not come repeats an output.
func TestNoInputIsSettledBeforeItsOutputs(t *testing.T) {
	sends := []wire.RequestCode{wire.ReqSendMessageV2, wire.ReqSendBatchMessage}
	for name, c := range map[string]struct {
		action  func() broker.Action
		skip    int
		repeats bool
	}{
		"busy":                {func() broker.Action { return broker.Refuse(wire.RespSystemBusy, "busy") }, 7, false},
		"part is refused":     {func() broker.Action { return broker.Refuse(wire.RespServiceNotAvailable, "full") }, 2, false},
		"requests are lost":   {broker.DropRequest, 5, false},
		"answers are lost":    {broker.DropAnswer, 5, true},
		"connections break":   {broker.Cut, 3, true}, // with the answers that were on their way
		"answers come late":   {func() broker.Action { return broker.Delay(4 * time.Second) }, 4, true},
		"the broker restarts": {nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				w := newWired(t, 1, emits)
				defer w.close()
				w.broker.CreateTopic("Out", 4)
				_, stop := w.member("10.0.0.2@1#1")
				at := 0
				for round := range 2 {
					w.put(0, at, at+30)
					at += 30
					var hit *broker.Injection
					if c.action != nil {
						hit = w.broker.Faults().Inject(broker.Fault{Codes: sends, Skip: c.skip, Do: c.action()})
					} else {
						wait(time.Duration(round) * time.Millisecond)
						if err := w.broker.Restart(); err != nil {
							t.Error(err)
						}
					}
					for range 5 {
						wait(3 * time.Second)
						w.settledHaveOutputs()
					}
					if hit != nil {
						hit.Lift()
					}
				}
				wait(time.Minute)
				w.settledHaveOutputs()
				w.committed(1)
				stored := w.storedOutputs()
				if len(stored) != at*len(parts()) {
					t.Errorf("%d different outputs, want %d", len(stored), at*len(parts()))
				}
				twice := 0
				for _, n := range stored {
					if n > 1 {
						twice++
					}
				}
				if twice > 0 && !c.repeats {
					t.Errorf("%d outputs are stored again, although every answer said what was stored", twice)
				}
				w.shardsAreInOrder()
				stop()
			})
		})
	}
}

// shardsAreInOrder wants the outputs of a sharding key in one queue, and those of an input in the order in which they were
// emitted.
func (w *wired) shardsAreInOrder() {
	w.t.Helper()
	queues, seen := map[string]map[int32]bool{}, map[string]bool{}
	for _, m := range w.broker.Messages("Out") {
		body := string(m.Body)
		key := m.Properties[wire.PropShardingKey]
		switch {
		case strings.HasSuffix(body, "/rich"):
			if m.Properties["TAGS"] != "tag" || m.Properties["KEYS"] != "k1 k2" || m.Properties["p"] != "v" {
				w.t.Errorf("output %s has properties %v", body, m.Properties)
			}
			continue
		case key == "":
			continue
		}
		if queues[key] == nil {
			queues[key] = map[int32]bool{}
		}
		queues[key][m.Queue] = true
		input, second := strings.CutSuffix(body, "/second")
		if second && !seen[input+"/first"] {
			w.t.Errorf("%s is stored before %s/first", body, input)
		}
		seen[body] = true
	}
	for _, key := range slices.Sorted(maps.Keys(queues)) {
		if len(queues[key]) != 1 {
			w.t.Errorf("the outputs of %s are in queues %v", key, queues[key])
		}
	}
	if len(queues) != 3 {
		w.t.Errorf("%d sharding keys, want 3", len(queues))
	}
}

// A broker that takes no outputs is back-pressure: pulling ends when the window is full, nothing fails, nothing is dead-lettered.
func TestOutputsThatNobodyTakesHoldTheStream(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWired(t, 1, emits)
		defer w.close()
		w.broker.CreateTopic("Out", 4)
		hit := w.broker.Faults().Inject(broker.Fault{
			Codes: []wire.RequestCode{wire.ReqSendMessageV2, wire.ReqSendBatchMessage}, Do: broker.Refuse(wire.RespSystemBusy, "busy"),
		})
		e, stop := w.member("10.0.0.2@1#1")
		w.put(0, 0, 1500)
		wait(20 * time.Second)
		if got, _ := w.broker.Committed(group, topicName, 0); got > 0 {
			t.Errorf("committed %d while no output is stored", got)
		}
		st := e.Status().Streams[0]
		if st.Settling > 1100 || len(w.handler.Handled()) > 1100 || len(w.broker.DeadLetters(group)) != 0 {
			t.Errorf("settling %d, handled %d, dead letters %d", st.Settling, len(w.handler.Handled()), len(w.broker.DeadLetters(group)))
		}
		hit.Lift()
		wait(time.Minute)
		w.committed(1)
		if got := len(w.storedOutputs()); got != 1500*len(parts()) {
			t.Errorf("%d outputs, want %d", got, 1500*len(parts()))
		}
		stop()
	})
}

// A topic that nobody serves does not keep the outputs of another topic waiting, nor their messages.
func TestOutputsToOneTopicDoNotHoldThoseToAnother(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWired(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			return clustertest.Answer{Outputs: []frame.Record{{Topic: "Dead", Body: []byte(rec.Body)}, {Topic: "Out", Body: []byte(rec.Body)}}}
		})
		defer w.close()
		w.broker.CreateTopic("Out", 1)
		w.broker.CreateTopic("Dead", 1)
		hit := w.broker.Faults().Inject(broker.Fault{
			Codes: []wire.RequestCode{wire.ReqSendMessageV2, wire.ReqSendBatchMessage},
			Match: func(r broker.Request) bool { return r.Fields.Get("b") == "Dead" }, Do: broker.DropRequest(),
		})
		_, stop := w.member("10.0.0.2@1#1")
		w.put(0, 0, 40)
		wait(time.Minute)
		if got := len(w.broker.Messages("Out")); got != 40 {
			t.Errorf("%d outputs to the topic that works, want 40", got)
		}
		hit.Lift()
		wait(time.Minute)
		w.committed(1)
		if got := len(w.broker.Messages("Dead")); got < 40 {
			t.Errorf("%d outputs to the topic that was dead, want 40", got)
		}
		stop()
	})
}

// texts are the bodies that a topic holds, in the order in which they were stored.
func (r *rig) texts(topic string) (bodies []string) {
	for _, m := range r.cluster.Messages(topic) {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

// refuse makes the first n sends to a topic fail, or fewer if it is lifted before.
func (r *rig) refuse(topic string, n int32) (lift func()) {
	var refused atomic.Int32
	r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
		if op == "Send" && q.Topic == topic && refused.Add(1) <= n {
			return errors.New("busy")
		}
		return nil
	}
	return func() { refused.Store(n) }
}

// perKey emits one output to a topic of the message's key, under that key.
func perKey(_ context.Context, rec clustertest.Record) clustertest.Answer {
	key := fmt.Sprint("k", rec.Offset%2)
	return clustertest.Answer{Outputs: []frame.Record{{Topic: "Out-" + key, Body: []byte(rec.Body)}}, Sharding: []string{key}}
}

// What the messages of a key emit is stored in their order, though each is answered by itself and a broker refuses the first
// for a while. Another key does not wait for that.
func TestOutputsOfAKeyAreStoredInItsOrder(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		q := clustertest.Queue(topicName, 0)
		r := newRig(t, 1, perKey)
		r.putKeyed(q, 40, 2)
		r.refuse("Out-k0", 3)
		e := r.start(r.config("c1", ordered(runtime.OrderKey)))
		wait(700 * time.Millisecond) // the first refusals pass 200 ms after each other and longer
		if k0, k1 := r.texts("Out-k0"), r.texts("Out-k1"); len(k0) != 0 || len(k1) != 20 {
			t.Errorf("while the topic of k0 is refused it has %d outputs, the other %d", len(k0), len(k1))
		}
		wait(time.Minute)
		for key := range 2 {
			var want []string
			for i := key; i < 40; i += 2 {
				want = append(want, fmt.Sprint(i))
			}
			if got := r.texts(fmt.Sprint("Out-k", key)); !slices.Equal(got, want) {
				t.Errorf("outputs of k%d: %v", key, got)
			}
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// What waits for its turn when a member stops is given up with what it waits for, and comes again.
func TestOutputsThatWaitForTheirTurnEndWithTheMember(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		q := clustertest.Queue(topicName, 0)
		r := newRig(t, 1, perKey)
		r.putKeyed(q, 40, 2)
		lift := r.refuse("Out-k0", 1000)
		short := func(s *runtime.StreamConfig) { s.DrainLimit = time.Second }
		e := r.start(r.config("c1", ordered(runtime.OrderKey), short))
		wait(5 * time.Second)
		if got := r.cluster.Committed(group, q); got != 0 {
			t.Errorf("committed %d over the first message, whose output is not stored", got)
		}
		stopping := time.Now()
		if err := e.Stop(t.Context()); err == nil {
			t.Error("the stop does not tell what it left")
		}
		if took := time.Since(stopping); took > 30*time.Second {
			t.Errorf("the stop took %s", took)
		}
		lift()
		e = r.start(r.config("c1", ordered(runtime.OrderKey)))
		wait(2 * time.Minute) // the lock has to run out
		r.committedAll(1)
		if got := r.texts("Out-k0"); len(got) != 20 || !slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) {
			t.Errorf("outputs %v", got)
		}
		r.stop(e)
	})
}

// Outputs that no broker takes are held in memory until one does. Handlers that make much of little get nothing more to do
// meanwhile, long before their queue's window is full.
func TestOutputsThatWaitBoundWhatIsHandled(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		const size = 64 << 10
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			return clustertest.Answer{Outputs: []frame.Record{{Topic: "Out", Body: append(make([]byte, size), rec.Body...)}}}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 500)
		lift := r.refuse("Out", 1<<30)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) {
			s.Batch.Max, s.Concurrency, s.Window.StreamBytes = 4, 4, 1<<20
		}))
		wait(20 * time.Second)
		st := e.Status()
		if got := len(r.handler.Handled()); got < 16 || got > 16+32+4 { // a megabyte, and what the handler had by then
			t.Errorf("%d messages are handled, with %d KiB of outputs each and nowhere to put them", got, size>>10)
		}
		if !holds(st, runtime.HoldSettle) {
			t.Errorf("the status does not say so: %+v", st.Streams[0].Holds)
		}
		lift()
		wait(2 * time.Minute)
		r.committedAll(1)
		if got := len(r.texts("Out")); got != 500 {
			t.Errorf("%d outputs, want 500", got)
		}
		for id, n := range r.bodies() {
			if n > 1 {
				t.Errorf("message %s was handled %d times", id, n)
			}
		}
		r.stop(e)
	})
}
