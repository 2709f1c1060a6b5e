package pluginhost_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
)

// gate is a limiter that holds a process back before it is made: the host has decided to start it, and has nothing yet
// that it could stop.
type gate struct {
	memlimit.Watcher
	reached chan struct{}
	open    chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) Group(name string, limit int64) (memlimit.Group, error) {
	g.once.Do(func() {
		close(g.reached)
		<-g.open
	})
	return g.Watcher.Group(name, limit)
}

// A plugin that is removed between the decision to start it and its process is not started, and nobody waits for it.
func TestRemove_beforeThereIsAProcess(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := newBench(t, func(c *pluginhost.Config) { c.Limiter = g })
	if err := b.host.Apply(t.Context(), spec(t, "acme", "ok")); err != nil {
		t.Fatal(err)
	}
	<-g.reached
	removed := make(chan error, 1)
	go func() { removed <- b.host.Remove("acme") }()
	eventually(t, "the host stops it", func() bool { return b.logs.Has("from=starting to=draining") })
	close(g.open)
	select {
	case err := <-removed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the host waits for a process that it forgot to stop")
	}
	if b.logs.Has("plugin ready") || b.logs.Has("level=ERROR") {
		t.Error("it was started after all, or its end is told as a failure")
	}
}

// Close does not wait for a swap whose new version does not come up.
func TestClose_givesUpASwap(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	hangs := spec(t, "acme", "hangs") // it never sends its handshake
	hangs.StartTimeout = time.Hour
	swapped := make(chan error, 1)
	go func() { swapped <- b.host.Apply(context.WithoutCancel(t.Context()), hangs) }()
	eventually(t, "the new version starts", func() bool { return b.logs.Has("generation=2 from=probing to=starting") })
	closed := make(chan error, 1)
	go func() { closed <- b.host.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Close waits for the new version")
	}
	if err := <-swapped; err == nil {
		t.Error("swapped")
	}
}
