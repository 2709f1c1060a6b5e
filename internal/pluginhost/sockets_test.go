package pluginhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
)

// openSockets counts this process's descriptors of sockets without a path, which those of lanes are.
func openSockets(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// Lanes that end, whoever ends them, leave no descriptor behind, neither here nor there. Not parallel: it counts.
func TestSockets_areClosedWithTheirLanes(t *testing.T) {
	b := newBench(t, nil)
	plugin := author(t)
	plugin.Datapath = pluginhost.DatapathSocketPair
	b.apply(plugin)
	before := openSockets(t)
	for i := range 80 { // more than a process has lanes
		l := b.open(laneSpec("author"))
		l.until(frame.EventCredit)
		l.send("a")
		l.acked(1)
		if i%2 == 0 {
			l.Abort(errors.New("enough"))
			if lost, _ := l.lost(); lost.Cause != frame.CauseStopped {
				t.Fatalf("%+v", lost)
			}
			continue
		}
		if err := l.Drain(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the sockets of ended lanes are closed", func() bool { return openSockets(t) <= before })
	l := b.open(laneSpec("author"))
	pid := l.Info().PID
	eventually(t, "the plugin has closed its ends", func() bool {
		fds, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		return err == nil && len(fds) < 30
	})
}

// A plugin that takes no sockets gets its lanes over gRPC, and the log says so.
func TestSockets_pluginsWithoutThemGetGRPC(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	plugin := spec(t, "plain", "ok")
	plugin.Datapath = pluginhost.DatapathSocketPair
	b.apply(plugin)
	l := b.open(laneSpec("plain"))
	l.until(frame.EventCredit)
	l.send("a")
	l.acked(1)
	if !b.logs.Has("they go over gRPC") {
		t.Error("nobody is told")
	}
}
