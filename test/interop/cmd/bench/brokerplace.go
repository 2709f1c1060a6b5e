package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/streamd/streamd/test/interop/cluster"
)

// embedded starts "streamd broker" with a data folder.
func (h *house) embedded(ctx context.Context, flush string) (subject, error) {
	port, err := cluster.FreePort(ctx)
	if err != nil {
		return subject{}, err
	}
	name := "embedded-" + flush
	address, dir := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return subject{}, fmt.Errorf("making a folder: %w", err)
	}
	note("starting the %s broker", name)
	var process *cluster.Process
	start := func(ctx context.Context) error {
		cmd := exec.Command(h.streamd[0], "broker", "--listen", address, "--data", filepath.Join(dir, "data"), "--flush", flush) //nolint:noctx // ended with the house
		p, err := cluster.Start(name, cmd)
		if err != nil {
			return err
		}
		process = p
		_, err = p.WaitLine(ctx, func(l string) bool { return strings.Contains(l, address) })
		return err
	}
	if err := start(ctx); err != nil {
		return subject{}, err
	}
	tools, err := cluster.Tools(ctx, dir, address)
	if err != nil {
		process.Kill()
		return subject{}, err
	}
	admin, err := tools.RunAdmin(ctx)
	if err != nil {
		process.Kill()
		return subject{}, err
	}
	p := &place{Cluster: tools, admin: admin}
	h.places[name], h.ends = p, append(h.ends, func() { process.Kill() })
	return subject{"embedded, " + flush, p, func() *cluster.Process { return process }, start}, nil
}

// brokerMemory is the resident memory of the broker's process: at rest, and when it has 10,000 queues.
func (h *house) brokerMemory(ctx context.Context, all []subject) error {
	measure := func(_ context.Context, s subject) (float64, error) { return resident(s.process().PID()) }
	if err := h.row(ctx, "memory at rest", all, 1, mebibytes, measure); err != nil {
		return err
	}
	return h.row(ctx, "memory with 10,000 queues", all, 1, mebibytes, func(ctx context.Context, s subject) (float64, error) {
		for range 10 {
			if err := s.place.admin.CreateTopic(ctx, h.name("many"), 1000); err != nil {
				return 0, err
			}
		}
		return measure(ctx, s)
	})
}

// resident reads VmRSS, in bytes.
func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d says nothing of its memory", pid)
}

func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
