package serve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

// A frame that the host does not take ends the lane, and what it answered comes again, and again: many small outputs are to
// pass, in whatever form they are.
func TestOutputsThatAreNextToNothingPass(t *testing.T) {
	const n, each = 256, 16
	for name, o := range map[string]sdk.Output{
		"bodies":        {Body: []byte("1")},
		"topics":        {Topic: "Out", Tag: "t", Body: []byte("1")},
		"delays":        {Topic: "Out", Tag: "t", Body: []byte("1"), Delay: 1},
		"sharding keys": {Topic: "Out", Tag: "t", Body: []byte("1"), ShardingKey: "k"},
		"nothing":       {Topic: "Out", Tag: "t"},
	} {
		t.Run(name, func(t *testing.T) {
			lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
				for i := range each * min(1, len(m.Body())) {
					out := o
					if i > 0 { // one of them has it, so that all have the column
						out.Delay, out.ShardingKey = 0, ""
					}
					m.Emit(out)
				}
				return nil
			}), sdktest.Options{OutputBytes: -1, Concurrency: 1})
			seq := lane.Send(append(messages(n), sdktest.Message{ID: "last"})...)
			lane.WaitFor(seq, n) // all have been handled, so that they come in one frame
			lane.Grant(1 << 20)
			got := lane.Wait(seq, n)
			allAcked(t, got)
			for i, r := range got {
				if len(r.Outputs) != each {
					t.Fatalf("message %d has %d outputs, want %d", i, len(r.Outputs), each)
				}
			}
			lane.Drain()
		})
	}
}

// What no frame can carry is the message's failure, not the lane's: its neighbors are answered.
func TestOutputsThatNoFrameCarriesAreAFailure(t *testing.T) {
	body := make([]byte, 4<<20)
	h := sdktest.Start(t, handler(func(_ context.Context, m *sdk.Message) error {
		if m.ID() == "1" {
			for range 17 {
				m.Emit(sdk.Output{Body: body})
			}
		}
		return nil
	})).Configure("h", "")
	got := h.Deliver(messages(3)...)
	if got[1].Kind != sdktest.Retried || got[1].Class != "output" || !strings.Contains(got[1].Text, "17 outputs") {
		t.Errorf("outputs of 68 MiB: %+v", got[1])
	}
	if got[0].Kind != sdktest.Acked || got[2].Kind != sdktest.Acked {
		t.Errorf("its neighbors: %+v, %+v", got[0], got[2])
	}
}

// The host gives back what came in the payload, keys included: a plugin that counts less has more credit after each output.
func TestKeysOfOutputsCountAsCredit(t *testing.T) {
	lane := open(t, handler(func(_ context.Context, m *sdk.Message) error {
		if m.ID() != "9" {
			m.Emit(sdk.Output{Body: []byte("b"), Keys: []string{strings.Repeat("k", 60), strings.Repeat("l", 60)}})
		}
		return nil
	}), sdktest.Options{OutputBytes: 150, Concurrency: 1})
	seq := lane.Send(messages(10)...)
	lane.WaitFor(seq, 9)
	if n := lane.Answered(); n > 3 {
		t.Errorf("%d answers with credit for two messages' outputs", n)
	}
	lane.Grant(1 << 20)
	lane.Wait(seq, 10)
	lane.Drain()
}
