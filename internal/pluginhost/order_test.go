package pluginhost_test

import (
	"strings"
	"testing"
)

// A handler that says it cannot keep order gets no lane of a stream that wants it, whatever was found out before: its plugin may
// have come up late, or be another one than it was.
func TestOpen_refusesOrderThatTheHandlerDoesNotKeep(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "scatters", "unordered"))
	b.apply(spec(t, "good", "ok"))
	wanted := laneSpec("scatters")
	wanted.Ordered = true
	_, err := b.host.Open(within(t, patience), wanted)
	if err == nil || !strings.Contains(err.Error(), "handler scatters: the handler does not keep order (acknowledges before its workers are done says plugin scatters); write order: none") {
		t.Errorf("%v", err)
	}
	b.open(laneSpec("scatters"))
	wanted.Handler = "good"
	b.open(wanted)
}
