package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// drained is one drain of the backlog.
type drained struct {
	took         time.Duration // from the first message to the last
	host, plugin time.Duration // CPU; a peer has no plugin
}

// drainRow is one row of the table on one broker.
type drainRow struct {
	name string
	run  func(ctx context.Context, p *place, group string) (drained, error)
}

const drainLimit = 3 * time.Minute

func (h *house) drainRows() []drainRow {
	streamd := func(s setup) func(context.Context, *place, string) (drained, error) {
		return func(ctx context.Context, p *place, group string) (drained, error) {
			s.group, s.topic, s.count = group, p.loaded, h.o.n
			return h.drainStreamd(ctx, p, s)
		}
	}
	const wide = ", batch: {max: 256, bytes: 1MiB}" + widePull
	rows := []drainRow{
		{"Java default", h.drainJava("default")},
		{"Java tuned", h.drainJava("tuned")},
		{"Go default", h.drainGo("default")},
		{"Go tuned", h.drainGo("tuned")},
	}
	for i, bin := range h.streamd {
		name := "streamd"
		if i > 0 {
			name = "streamd of " + filepath.Dir(bin)
		}
		rows = append(rows,
			drainRow{name + " default", streamd(setup{bin: bin, use: "drain"})},
			drainRow{name + " default, gRPC", streamd(setup{bin: bin, use: "drain", border: overGRPC})},
			drainRow{name + " tuned", streamd(setup{bin: bin, use: "drain_batch", stream: wide})},
			drainRow{name + " tuned, gRPC, tls: off", streamd(setup{bin: bin, use: "drain_batch", border: overGRPC + ", tls: off", stream: wide})},
			drainRow{name + " tuned, gRPC", streamd(setup{bin: bin, use: "drain_batch", border: overGRPC, stream: wide})})
	}
	return rows
}

// overGRPC has a plugin's lanes in its gRPC connection, which is encrypted unless tls is off.
const overGRPC = ", datapath: grpc"

// widePull is what a tuned stream asks a broker for at once; one that is not tuned gives its 32 anyway.
const widePull = ", pull: {max: 1024, bytes: 2MiB}, window: {messages: 4000, span: 8000}"

// tunedBroker lets a pull bring more than 32 messages.
func tunedBroker() map[string]string {
	return map[string]string{"maxTransferCountOnMessageInMemory": "4096", "maxTransferBytesOnMessageInMemory": strconv.Itoa(8 << 20)}
}

func (h *house) drain(ctx context.Context) error {
	brokers := []string{"default", "tuned"}
	settings := map[string]map[string]string{"default": nil, "tuned": tunedBroker()}
	brokers = slices.DeleteFunc(brokers, func(name string) bool {
		return !slices.ContainsFunc(h.drainRows(), func(r drainRow) bool { return h.wanted(r.name + " on " + name) })
	})
	for _, name := range brokers {
		p, err := h.place(ctx, name, settings[name])
		if err != nil {
			return err
		}
		if err := h.backlog(ctx, p); err != nil {
			return err
		}
	}
	got := map[string][]drained{}
	for run := range h.times(3) {
		for _, name := range brokers {
			for _, row := range h.drainRows() {
				if !h.wanted(row.name + " on " + name) {
					continue
				}
				limited, cancel := context.WithTimeout(ctx, drainLimit)
				d, err := row.run(limited, h.places[name], h.name("drain"))
				cancel()
				if err != nil {
					return fmt.Errorf("%s, run %d, %s broker: %w", row.name, run+1, name, err)
				}
				note("drain %d, %s broker, %s: %s msg/s, %.2f + %.2f CPU s per M", run+1, name, row.name, count(h.rate(d)), h.perMillion(d.host), h.perMillion(d.plugin))
				got[name+row.name] = append(got[name+row.name], d)
			}
		}
	}
	fmt.Printf("%d stored messages of 1 KiB, one topic of 8 queues, medians of %d interleaved runs\n\n", h.o.n, h.times(3))
	fmt.Println("| broker | client | msg/s (min–max) | CPU s per M (client, or host + plugin) |\n|---|---|---|---|")
	for _, name := range brokers {
		for _, row := range h.drainRows() {
			if all := got[name+row.name]; len(all) > 0 {
				fmt.Printf("| %s | %s | %s | %s |\n", name, row.name, spread(all, h.rate, count), h.cpu(all))
			}
		}
	}
	return nil
}

func (h *house) rate(d drained) float64 { return float64(h.o.n) / d.took.Seconds() }

func (h *house) perMillion(cpu time.Duration) float64 { return cpu.Seconds() * 1e6 / float64(h.o.n) }

func (h *house) cpu(all []drained) string {
	host := median(all, func(d drained) float64 { return h.perMillion(d.host) })
	plugin := median(all, func(d drained) float64 { return h.perMillion(d.plugin) })
	total := median(all, func(d drained) float64 { return h.perMillion(d.host + d.plugin) })
	if plugin == 0 {
		return fmt.Sprintf("%.2f", total)
	}
	return fmt.Sprintf("%.2f (%.2f + %.2f)", total, host, plugin)
}

// backlog stores the messages once.
func (h *house) backlog(ctx context.Context, p *place) error {
	topic := "Backlog"
	if err := p.topic(ctx, topic, 8); err != nil {
		return err
	}
	note("loading %d messages", h.o.n)
	l, err := h.load(p, topic, h.o.n, 0)
	if err != nil {
		return err
	}
	defer l.Kill()
	if _, err := l.WaitLine(ctx, is("#done")); err != nil {
		return fmt.Errorf("loading the backlog: %w", err)
	}
	p.loaded = topic
	return nil
}

func (h *house) drainJava(mode string) func(context.Context, *place, string) (drained, error) {
	return func(ctx context.Context, p *place, group string) (drained, error) {
		c, err := p.Java(ctx, "BenchConsume", p.Addr, group, p.loaded, fmt.Sprint(h.o.n), mode)
		if err != nil {
			return drained{}, err
		}
		defer c.Kill()
		line, err := c.WaitLine(ctx, is("result "))
		return peerResult(line, err)
	}
}

func (h *house) drainGo(mode string) func(context.Context, *place, string) (drained, error) {
	return func(ctx context.Context, p *place, group string) (drained, error) {
		c, err := h.peer("drain", p.Addr, group, p.loaded, fmt.Sprint(h.o.n), mode)
		if err != nil {
			return drained{}, err
		}
		defer c.Kill()
		line, err := c.WaitLine(ctx, is("result "))
		return peerResult(line, err)
	}
}

// peerResult reads "result NANOS CPUNANOS".
func peerResult(line string, err error) (d drained, _ error) {
	if err != nil {
		return d, err
	}
	n, err := numbers(strings.Fields(line)[1:], 2)
	if err != nil {
		return d, err
	}
	return drained{took: time.Duration(n[0]), host: time.Duration(n[1])}, nil
}

func (h *house) drainStreamd(ctx context.Context, p *place, s setup) (d drained, err error) {
	if h.o.profile != "" {
		s.profile = filepath.Join(h.o.profile, strings.Trim(strings.NewReplacer(", ", "-", ": ", "-", " ", "-").Replace(s.group+"-"+s.use+s.border), "-"))
		if err := os.MkdirAll(s.profile, 0o750); err != nil {
			return d, fmt.Errorf("making a folder: %w", err)
		}
	}
	m, err := h.member(ctx, p, s)
	if err != nil {
		return d, err
	}
	defer m.Kill()
	first, err := m.noted(ctx, "first")
	if err == nil && s.profile != "" {
		err = m.saveProfile(ctx, 3*time.Second, filepath.Join(s.profile, "streamd.pprof"))
	}
	if err != nil {
		return d, err
	}
	last, err := m.noted(ctx, "last")
	if err != nil {
		return d, err
	}
	a, err := numbers(first, 3)
	if err != nil {
		return d, err
	}
	b, err := numbers(last, 3)
	if err != nil {
		return d, err
	}
	return drained{took: time.Duration(b[0] - a[0]), host: time.Duration(b[1] - a[1]), plugin: time.Duration(b[2] - a[2])}, m.Stop(30 * time.Second)
}
