package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

const (
	redelivered = 200
	// firstLevel is the delay of a first retry: the tests' brokers have a second for each level, and it is the third.
	firstLevel = 3 * time.Second
)

// redelivery measures how much later than its delay level says a failed message comes again, beside Java.
func (h *house) redelivery(ctx context.Context) error {
	p, err := h.plain(ctx)
	if err != nil {
		return err
	}
	rows := []struct {
		name  string
		start func(ctx context.Context, group, topic, file string) (*cluster.Process, error)
	}{
		{"streamd", func(ctx context.Context, group, topic, file string) (*cluster.Process, error) {
			m, err := h.member(ctx, p, setup{bin: h.streamd[0], group: group, topic: topic, notes: file, ledger: true})
			if err != nil {
				return nil, err
			}
			return m.Process, nil
		}},
		{"Java", func(ctx context.Context, group, topic, file string) (*cluster.Process, error) {
			c, err := p.Java(ctx, "Member", p.Addr, group, topic, file, "none")
			return ready(ctx, c, err)
		}},
	}
	got := make([][]ages, len(rows))
	for range h.times(3) {
		for i, row := range rows {
			if !h.wanted(row.name) {
				continue
			}
			a, err := h.redeliveryRun(ctx, p, row.start)
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			note("redelivery, %s: p50 %s, p99 %s late", row.name, millis(float64(a.p50)), millis(float64(a.p99)))
			got[i] = append(got[i], a)
		}
	}
	fmt.Printf("From the end of attempt 1 to the start of attempt 2, less the level's %s; %d messages that fail once, medians of %d interleaved runs\n\n", firstLevel, redelivered, h.times(3))
	fmt.Println("| client | p50 | p99 |\n|---|---|---|")
	for i, row := range rows {
		if len(got[i]) > 0 {
			fmt.Printf("| %s | %s | %s |\n", row.name, spread(got[i], func(a ages) float64 { return float64(a.p50) }, millis), spread(got[i], func(a ages) float64 { return float64(a.p99) }, millis))
		}
	}
	return nil
}

func (h *house) redeliveryRun(ctx context.Context, p *place, start func(ctx context.Context, group, topic, file string) (*cluster.Process, error)) (ages, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	topic, group := h.name("redelivery"), h.name("group")
	if err := p.topic(ctx, topic, 8); err != nil {
		return ages{}, err
	}
	file := filepath.Join(h.dir, h.name("ledger"))
	c, err := start(ctx, group, topic, file)
	if err != nil {
		return ages{}, err
	}
	defer c.Kill()
	bodies := make([]string, redelivered)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("fail-1 %d", i)
	}
	path := file + ".bodies"
	if err := os.WriteFile(path, []byte(strings.Join(bodies, "\n")+"\n"), 0o600); err != nil {
		return ages{}, err
	}
	produce, err := cluster.Start("produce", exec.Command(h.streamd[0], "produce", "-n", p.Addr, "--topic", topic, "--file", path, "--rate", "50")) //nolint:noctx // ended below
	if err != nil {
		return ages{}, err
	}
	defer produce.Kill()
	entries, err := ledger.Wait(ctx, file, func(e []ledger.Entry) bool { return len(ledger.Handled(e)) >= redelivered })
	if err != nil {
		return ages{}, err
	}
	failed := map[string]int64{}
	var late []int64
	for _, e := range entries {
		switch {
		case e.Event == ledger.End && e.Attempt == 1:
			failed[e.Body] = e.At
		case e.Event == ledger.Start && e.Attempt == 2:
			late = append(late, e.At-failed[e.Body]-int64(firstLevel))
		}
	}
	slices.Sort(late)
	return ages{p50: percentile(late, 0.5), p99: percentile(late, 0.99)}, nil
}
