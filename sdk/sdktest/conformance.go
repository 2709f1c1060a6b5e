package sdktest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Run checks in process what every component must do, with a config that is usable. It looks at no verdict's kind: what
// the component does with the messages is its own business, that it answers each of them exactly once is not.
func Run(t *testing.T, spec sdk.Spec, config string) {
	t.Helper()
	conform(t, func(t *testing.T) *Plugin { t.Helper(); return Start(t, spec) }, map[string]string{spec.Name: config})
}

// RunBinary checks a plugin binary in a process of its own, as streamd starts it. configs gives each component a config
// that is usable; one that is not named is configured with {}.
func RunBinary(t *testing.T, path string, configs map[string]string) {
	t.Helper()
	conform(t, func(t *testing.T) *Plugin { t.Helper(); return StartBinary(t, path) }, configs)
}

func conform(t *testing.T, start func(*testing.T) *Plugin, configs map[string]string) {
	t.Helper()
	for _, c := range start(t).Describe().GetComponents() {
		t.Run(c.GetName(), func(t *testing.T) {
			config, ok := configs[c.GetName()]
			if !ok {
				config = "{}"
			}
			checkDescription(t, c)
			t.Run("config", func(t *testing.T) { checkConfig(t, start(t), c.GetName(), config) })
			if c.GetKind() == pluginv1.Component_KIND_HANDLER {
				checkHandler(t, start, c.GetName(), config)
			}
		})
	}
}

func checkDescription(t *testing.T, c *pluginv1.Component) {
	t.Helper()
	if c.GetKind() == pluginv1.Component_KIND_UNSPECIFIED {
		t.Error("the component has no kind")
	}
	if s := c.GetConfigSchema(); s != "" && !json.Valid([]byte(s)) {
		t.Errorf("the config's schema is not JSON: %s", s)
	}
}

// checkConfig wants the good config taken, and two faults named: no JSON, and a key that nobody can mean.
func checkConfig(t *testing.T, p *Plugin, component, config string) {
	t.Helper()
	if got := p.Check(component, `{"`); len(got) == 0 {
		t.Error("a config that is not JSON was taken")
	}
	if got := p.Check(component, `{"sdktest_no_such_key": true}`); !hasPointer(got, "/sdktest_no_such_key") {
		t.Errorf("an unknown key was not named by its JSON pointer: %+v", got)
	}
	p.Configure(component, config)
}

func hasPointer(found []sdk.Diagnostic, pointer string) bool {
	for _, d := range found {
		if d.Pointer == pointer {
			return true
		}
	}
	return false
}

func checkHandler(t *testing.T, start func(*testing.T) *Plugin, component, config string) {
	t.Helper()
	configured := func(t *testing.T) *Handler { t.Helper(); return start(t).Configure(component, config) }
	t.Run("answers each message once", func(t *testing.T) {
		h := configured(t)
		for _, n := range []int{1, 2, 256, 1024} {
			deliver(t, h, Options{Credits: 4096}, sample(n))
		}
	})
	t.Run("odd messages", func(t *testing.T) {
		deliver(t, configured(t), Options{}, []Message{
			{ID: "empty", Body: []byte{}},
			{ID: "large", Body: make([]byte, 5<<20)},
			{ID: "binary", Body: []byte("\x00\xff\x01\x02")},
			{ID: "\xff", Keys: []string{"\xff"}, Properties: map[string]string{"": "", "a": "\xff"}},
			{ID: "late", Attempt: 17},
		})
	})
	t.Run("strands", func(t *testing.T) {
		batch := sample(60)
		for i := range batch {
			batch[i].Strand = uint32(i%3) + 1
		}
		deliver(t, configured(t), Options{}, batch)
	})
	t.Run("gives credits back", func(t *testing.T) {
		lane := configured(t).Open(Options{Credits: 16})
		for range 8 {
			wait(lane, lane.Send(sample(16)...), 16)
		}
		lane.Credits(16 + 7*16)
		lane.Drain()
	})
	t.Run("drains", func(t *testing.T) {
		lane := configured(t).Open(Options{Concurrency: 1})
		seq := lane.Send(sample(100)...)
		lane.Drain()
		lane.Wait(seq, 100)
	})
	t.Run("several lanes", func(t *testing.T) {
		h := configured(t)
		first, second := h.Open(Options{}), h.Open(Options{Lane: 1})
		a, b := first.Send(sample(10)...), second.Send(sample(10)...)
		wait(second, b, 10)
		wait(first, a, 10)
		first.Drain()
		second.Drain()
	})
	t.Run("survives a host that goes", func(t *testing.T) {
		h := configured(t)
		lane := h.Open(Options{})
		lane.Send(sample(50)...)
		lane.Close()
		deliver(t, h, Options{}, sample(3))
	})
	t.Run("refuses garbage and lives on", func(t *testing.T) {
		h := configured(t)
		for _, garbage := range [][]byte{
			{0xff, 0xff}, // no protobuf
			{0x12, 0x05, 0x12, 0x03, 0x5a, 0x01, 0x00},              // a batch whose ends are cut short
			{0x12, 0x06, 0x12, 0x04, 0x6a, 0x02, 'h', 'i'},          // a payload that no record has
			{0x9a, 0x06, 0x01, 'x'},                                 // a frame that nobody knows
			{0x0a, 0x00},                                            // Open, a second time
			append([]byte{0x12, 0x80, 0x80, 0x40}, 0x08, 0x01, 0x1), // a length that is not there
		} {
			lane := h.Open(Options{})
			lane.SendRaw(garbage)
			lane.Ended()
		}
		deliver(t, h, Options{}, sample(3))
	})
	t.Run("deadline", func(t *testing.T) {
		deliver(t, configured(t), Options{Deadline: 20 * time.Millisecond}, sample(3))
	})
}

// deliver wants an answer for each message. Buffering handlers answer when they are flushed.
func deliver(t *testing.T, h *Handler, o Options, messages []Message) {
	t.Helper()
	lane := h.Open(o)
	wait(lane, lane.Send(messages...), len(messages))
	lane.Drain()
}

func wait(lane *Lane, seq uint64, n int) {
	lane.t.Helper()
	lane.Flush()
	lane.Wait(seq, n)
}

func sample(n int) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i] = Message{ID: fmt.Sprintf("sdktest-%d", i), Body: make([]byte, 10), QueueID: int32(i % 4), Offset: int64(i)}
	}
	return out
}
