package pluginhost

import (
	"errors"
	"runtime/debug"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
)

// ended is a generation without a process.
func ended(t *testing.T) *generation {
	t.Helper()
	shared, err := newSharedPage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.close(); err != nil {
			t.Error(err)
		}
	})
	return &generation{
		host: &Host{now: time.Now}, name: "acme", shared: shared, page: shared.page, runner: &runner{},
		lanes: map[*Lane]struct{}{}, configs: map[string]*configured{}, dead: make(chan struct{}),
	}
}

// Streams open their lanes anew at the moment in which a process dies, and the slot may give them the dead one until it is
// cleared away: its page is no memory of the host's any more.
func TestOpenLane_leavesThePageOfADeadProcessAlone(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	g := ended(t)
	close(g.dead)
	g.work.Wait() // as release does
	if err := g.shared.close(); err != nil {
		t.Fatal(err)
	}
	if l, err := g.openLane(t.Context(), frame.LaneSpec{Handler: "acme"}); !errors.Is(err, errGone) {
		t.Errorf("opened %v, %v", l, err)
	}
}

// A page stays in place while a lane is being opened, also when the process dies meanwhile.
func TestTakeRow_keepsThePage(t *testing.T) {
	t.Parallel()
	g := ended(t)
	_, row, err := g.takeRow()
	if err != nil {
		t.Fatal(err)
	}
	close(g.dead)
	freed := make(chan struct{})
	go func() {
		g.work.Wait()
		close(freed)
	}()
	row.Begin(0)
	select {
	case <-freed:
		t.Error("the page is freed while a lane is being opened")
	default:
	}
	g.work.Done()
	<-freed
}

// Who drains a process, or what has an old config, must know of every lane: none comes after it has looked.
func TestAddLane_refusesWhatNobodyWouldDrain(t *testing.T) {
	t.Parallel()
	g := ended(t)
	g.configs["acme"] = &configured{hash: "new"}
	lane := func(hash string) *Lane {
		return &Lane{spec: frame.LaneSpec{Handler: "acme"}, info: frame.LaneInfo{ConfigHash: hash}}
	}
	if err := g.addLane(lane("old")); !errors.Is(err, errStale) {
		t.Errorf("a lane that was being opened while the config changed: %v", err)
	}
	if err := g.addLane(lane("new")); err != nil {
		t.Error(err)
	}
	g.leave()
	if err := g.addLane(lane("new")); !errors.Is(err, errLeaving) {
		t.Errorf("a lane that was being opened while the process began to drain: %v", err)
	}
	if n := len(g.openLanes()); n != 1 {
		t.Errorf("%d lanes", n)
	}
}
