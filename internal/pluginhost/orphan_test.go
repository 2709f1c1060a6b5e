package pluginhost_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
)

// hostMode makes the test binary a host of its own, so that it can be killed.
const hostMode = "PLUGINHOST_TEST_HOST"

// doomedHost is what such a host is told, and what it tells.
type doomedHost struct {
	RunDir string
	Plugin string
	PID    int
}

// runHost starts a plugin, says its pid, and waits to be killed.
func runHost() {
	var d doomedHost
	err := json.Unmarshal([]byte(os.Getenv(hostMode)), &d)
	if err == nil {
		err = d.run()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (d *doomedHost) run() error {
	h, err := pluginhost.New(pluginhost.Config{Logger: slog.New(slog.DiscardHandler), RunDir: d.RunDir})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := h.Apply(ctx, pluginhost.PluginSpec{Name: "acme", Command: []string{d.Plugin, "ok"}}); err != nil {
		return err
	}
	if _, err := h.Configure(ctx, pluginhost.HandlerSpec{Name: "acme", Plugin: "acme", Use: "main"}); err != nil {
		return err
	}
	l, err := h.Open(ctx, frame.LaneSpec{Handler: "acme", Stream: "orders", Credits: 4})
	if err != nil {
		return err
	}
	d.PID = l.Info().PID
	if err := json.NewEncoder(os.Stdout).Encode(d); err != nil {
		return err
	}
	select {}
}

// kill -9 of the host leaves no process, and the next host sweeps its sockets.
func TestHost_killedLeavesNothing(t *testing.T) {
	t.Parallel()
	run, err := os.MkdirTemp(scratch, "k") //nolint:usetesting // the name of a test makes the path of a socket too long
	if err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(doomedHost{RunDir: run, Plugin: faulty(t)})
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), hostMode+"="+string(order))
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var told doomedHost
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&told); err != nil {
		t.Fatal(err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed: its error is the kill
	eventually(t, "the plugin is gone", func() bool { return gone(told.PID) })
	if left, err := filepath.Glob(filepath.Join(run, "h-*", "g*")); err != nil || len(left) == 0 {
		t.Fatalf("the killed host left no sockets to sweep (%v): the test shows nothing", err)
	}
	next, err := pluginhost.New(pluginhost.Config{Logger: slog.New(slog.DiscardHandler), RunDir: run})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(run, "h-*")); err != nil || len(left) != 1 {
		t.Errorf("directories of hosts: %v, %v; want only the new one's", left, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// gone tells whether a process has ended; a zombie that nobody reaps has.
func gone(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
