package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// warmUp is left out of a latency run: a JVM compiles, queues get their owners.
const warmUp = 2 * time.Second

// ages are the percentiles of one run, in nanoseconds.
type ages struct{ p50, p99, p999 int64 }

type latencyRow struct {
	name string
	// run calls load when the consumer is ready, and returns the words of its "latency" line.
	run func(ctx context.Context, p *place, group, topic string, n int, load func() error) ([]string, error)
}

func (h *house) latencyRows() []latencyRow {
	return []latencyRow{{"Java", h.latencyJava}, {"Go", h.latencyGo}, {"streamd", h.latencyStreamd("")}, {"streamd, gRPC", h.latencyStreamd(overGRPC)}}
}

func (h *house) latency(ctx context.Context) error {
	p, err := h.plain(ctx)
	if err != nil {
		return err
	}
	got := map[string][]ages{}
	key := func(rate int, row string) string { return fmt.Sprint(rate, row) }
	for run := range h.times(5) {
		for _, rate := range h.o.rates {
			for _, row := range h.latencyRows() {
				if !h.wanted(row.name) {
					continue
				}
				a, err := h.latencyRun(ctx, p, row, rate)
				if err != nil {
					return fmt.Errorf("%s at %d msg/s, run %d: %w", row.name, rate, run+1, err)
				}
				note("latency %d, %d msg/s, %s: p50 %s, p99 %s, p99.9 %s", run+1, rate, row.name, millis(float64(a.p50)), millis(float64(a.p99)), millis(float64(a.p999)))
				got[key(rate, row.name)] = append(got[key(rate, row.name)], a)
			}
		}
	}
	fmt.Printf("Producer's clock to handler, 1 KiB, one topic of 8 queues, %s a run after %s of warming up, medians of %d interleaved runs\n\n", h.o.length, warmUp, h.times(5))
	fmt.Println("| rate | client | p50 | p99 | p99.9 |\n|---|---|---|---|---|")
	for _, rate := range h.o.rates {
		for _, row := range h.latencyRows() {
			if all := got[key(rate, row.name)]; len(all) > 0 {
				fmt.Printf("| %d msg/s | %s | %s | %s | %s |\n", rate, row.name,
					spread(all, func(a ages) float64 { return float64(a.p50) }, millis),
					spread(all, func(a ages) float64 { return float64(a.p99) }, millis),
					spread(all, func(a ages) float64 { return float64(a.p999) }, millis))
			}
		}
	}
	return nil
}

func (h *house) latencyRun(ctx context.Context, p *place, row latencyRow, rate int) (ages, error) {
	ctx, cancel := context.WithTimeout(ctx, h.o.length+2*time.Minute)
	defer cancel()
	topic := h.name("latency")
	if err := p.topic(ctx, topic, 8); err != nil {
		return ages{}, err
	}
	skip := int(warmUp.Seconds()) * rate
	n := skip + int(h.o.length.Seconds()*float64(rate))
	load := func() error {
		l, err := h.load(p, topic, n, rate)
		if err != nil {
			return err
		}
		defer l.Kill()
		_, err = l.WaitLine(ctx, is("#done"))
		return err
	}
	words, err := row.run(ctx, p, h.name("group"), topic, n, load)
	if err != nil {
		return ages{}, err
	}
	all, err := numbers(words, n)
	if err != nil {
		return ages{}, err
	}
	all = all[skip:]
	slices.Sort(all)
	return ages{percentile(all, 0.5), percentile(all, 0.99), percentile(all, 0.999)}, nil
}

func (h *house) latencyJava(ctx context.Context, p *place, group, topic string, n int, load func() error) ([]string, error) {
	c, err := p.Java(ctx, "BenchLatency", p.Addr, group, topic, fmt.Sprint(n))
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	return printed(ctx, c.WaitLine, load)
}

func (h *house) latencyGo(ctx context.Context, p *place, group, topic string, n int, load func() error) ([]string, error) {
	c, err := h.peer("latency", p.Addr, group, topic, fmt.Sprint(n))
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	return printed(ctx, c.WaitLine, load)
}

func printed(ctx context.Context, wait func(context.Context, func(string) bool) (string, error), load func() error) ([]string, error) {
	if _, err := wait(ctx, is("#ready")); err != nil {
		return nil, err
	}
	if err := load(); err != nil {
		return nil, fmt.Errorf("producing: %w", err)
	}
	line, err := wait(ctx, is("latency "))
	if err != nil {
		return nil, err
	}
	return strings.Fields(line)[1:], nil
}

func (h *house) latencyStreamd(border string) func(ctx context.Context, p *place, group, topic string, n int, load func() error) ([]string, error) {
	return func(ctx context.Context, p *place, group, topic string, n int, load func() error) ([]string, error) {
		m, err := h.member(ctx, p, setup{bin: h.streamd[0], group: group, topic: topic, use: "latency", count: n, border: border})
		if err != nil {
			return nil, err
		}
		defer m.Kill()
		if err := load(); err != nil {
			return nil, fmt.Errorf("producing: %w", err)
		}
		words, err := m.noted(ctx, "latency")
		if err != nil {
			return nil, err
		}
		return words, m.Stop(30 * time.Second)
	}
}
