package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// subject is a broker under measurement: the embedded one or a real one.
type subject struct {
	name  string
	place *place
	// process is the broker's; kill and start end it as kill -9 does and bring it back on what it has stored.
	process func() *cluster.Process
	start   func(ctx context.Context) error
}

// brokers measures the embedded broker beside a real one: the same clients, the same machine, in turns.
func (h *house) brokers(ctx context.Context) error {
	var all []subject
	for _, flush := range []string{"async", "sync"} {
		e, err := h.embedded(ctx, flush)
		if err != nil {
			return err
		}
		r, err := h.realBroker(ctx, flush)
		if err != nil {
			return err
		}
		all = append(all, e, r)
	}
	fmt.Println("| what | embedded, async | RocketMQ, async | embedded, sync | RocketMQ, sync |\n|---|---|---|---|---|")
	for _, table := range []func(context.Context, []subject) error{h.brokerMemory, h.brokerProduce, h.brokerDrain, h.brokerLatency, h.brokerRestart} {
		if err := table(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

func (h *house) realBroker(ctx context.Context, flush string) (subject, error) {
	p, err := h.place(ctx, "real-"+flush, map[string]string{"flushDiskType": strings.ToUpper(flush) + "_FLUSH"})
	if err != nil {
		return subject{}, err
	}
	b := p.Brokers[0]
	return subject{"RocketMQ, " + flush, p, func() *cluster.Process { return b.Process }, b.Start}, nil
}

// row prints one measurement of all subjects, medians of what measure gives.
func (h *house) row(ctx context.Context, what string, all []subject, runs int, show func(float64) string, measure func(context.Context, subject) (float64, error)) error {
	if !h.wanted(what) {
		return nil
	}
	got := make([][]float64, len(all))
	for run := range runs {
		for i, s := range all {
			limited, cancel := context.WithTimeout(ctx, drainLimit)
			v, err := measure(limited, s)
			cancel()
			if err != nil {
				return fmt.Errorf("%s, %s, run %d: %w", what, s.name, run+1, err)
			}
			note("%s %d, %s: %s", what, run+1, s.name, show(v))
			got[i] = append(got[i], v)
		}
	}
	fmt.Print("| ", what)
	for _, values := range got {
		fmt.Print(" | ", spread(values, func(v float64) float64 { return v }, show))
	}
	fmt.Println(" |")
	return nil
}

func (h *house) brokerProduce(ctx context.Context, all []subject) error {
	for _, c := range []struct {
		what         string
		count, batch int
	}{{"produce, 8 senders", h.o.n / 25, 1}, {"produce, 8 senders, batches of 64", h.o.n * 2 / 5, 64}} {
		err := h.row(ctx, c.what+", msg/s", all, h.times(2), count, func(ctx context.Context, s subject) (float64, error) {
			topic := h.name("produce")
			if err := s.place.topic(ctx, topic, 8); err != nil {
				return 0, err
			}
			p, err := h.peer("load", s.place.Addr, topic, fmt.Sprint(c.count), "1024", fmt.Sprint(c.batch), "0")
			if err != nil {
				return 0, err
			}
			defer p.Kill()
			nanos, err := result(ctx, p)
			return float64(c.count) / (nanos / 1e9), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// result reads the "result NANOS" line of a peer.
func result(ctx context.Context, p *cluster.Process) (float64, error) {
	line, err := p.WaitLine(ctx, is("result "))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.Fields(line)[1], 64)
}

func (h *house) brokerDrain(ctx context.Context, all []subject) error {
	if !h.wanted("drain") {
		return nil
	}
	for _, s := range all {
		if err := h.backlog(ctx, s.place); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return h.row(ctx, "drain, Go client, msg/s", all, h.times(2), count, func(ctx context.Context, s subject) (float64, error) {
		d, err := h.drainGo("tuned")(ctx, s.place, h.name("drain"))
		return h.rate(d), err
	})
}

func (h *house) brokerLatency(ctx context.Context, all []subject) error {
	if !h.wanted("latency") {
		return nil
	}
	got := make([][]ages, len(all))
	for range h.times(2) {
		for i, s := range all {
			a, err := h.latencyRun(ctx, s.place, latencyRow{"Go", h.latencyGo}, 1000)
			if err != nil {
				return fmt.Errorf("latency, %s: %w", s.name, err)
			}
			note("latency, %s: p50 %s, p99 %s, p99.9 %s", s.name, millis(float64(a.p50)), millis(float64(a.p99)), millis(float64(a.p999)))
			got[i] = append(got[i], a)
		}
	}
	for _, p := range []struct {
		name string
		of   func(ages) float64
	}{
		{"p50", func(a ages) float64 { return float64(a.p50) }},
		{"p99", func(a ages) float64 { return float64(a.p99) }},
		{"p99.9", func(a ages) float64 { return float64(a.p999) }},
	} {
		fmt.Print("| latency, Go client, 1000 msg/s, ", p.name)
		for _, values := range got {
			fmt.Print(" | ", spread(values, p.of, millis))
		}
		fmt.Println(" |")
	}
	return nil
}

// brokerRestart kills each broker with what the tables before have stored, and measures until it serves again.
func (h *house) brokerRestart(ctx context.Context, all []subject) error {
	return h.row(ctx, fmt.Sprintf("restart after kill -9, at least %d messages", h.o.n), all, 1, seconds, func(ctx context.Context, s subject) (float64, error) {
		s.process().Kill()
		began := time.Now()
		if err := s.start(ctx); err != nil {
			return 0, err
		}
		took := time.Since(began)
		return float64(took.Nanoseconds()), s.place.topic(ctx, h.name("after"), 1)
	})
}
