package pluginhost_test

import (
	"syscall"
	"testing"
)

// Each plugin's first start is generation 1, whatever else the host has started, and each start after it one more.
func TestGeneration_countsFromOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, name := range []string{"acme", "other"} {
		b.apply(spec(t, name, "ok"))
		if got := b.open(laneSpec(name)).Info().Generation; got != 1 {
			t.Errorf("the first start of plugin %s is generation %d", name, got)
		}
	}
	l := b.open(laneSpec("acme"))
	if err := syscall.Kill(l.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.lost()
	if got := b.open(laneSpec("acme")).Info().Generation; got != 2 {
		t.Errorf("the second start of plugin acme is generation %d", got)
	}
	if err := b.host.Remove("acme"); err != nil {
		t.Fatal(err)
	}
	b.apply(spec(t, "acme", "ok"))
	if got := b.open(laneSpec("acme")).Info().Generation; got != 3 {
		t.Errorf("a plugin that came back is generation %d", got)
	}
}
