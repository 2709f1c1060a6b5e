package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/clustertest"
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
			synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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
