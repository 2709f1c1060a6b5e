package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

const (
	handOverQueues = 16
	handOverRate   = 2000
	// after is how long an event is watched: what takes longer is not a hand-over but an outage.
	after = 8 * time.Second
)

// follower is a member whose deliveries can be read.
type follower interface {
	lines() ([]string, error)
	stop() error // gracefully
	kill() error // kill -9 of the member
	end()        // whatever it takes
}

type handOverRow struct {
	name  string
	start func(ctx context.Context, p *place, group, topic string) (follower, error)
}

type event struct {
	name  string
	begin int // members at the start
	do    func(ctx context.Context, members []follower, start func() (follower, error)) (follower, error)
}

func events() []event {
	last := func(m []follower) follower { return m[len(m)-1] }
	return []event{
		{"graceful stop of one of two", 2, func(_ context.Context, m []follower, _ func() (follower, error)) (follower, error) {
			return nil, last(m).stop()
		}},
		{"kill -9 of one of two", 2, func(_ context.Context, m []follower, _ func() (follower, error)) (follower, error) {
			return nil, last(m).kill()
		}},
		{"a member joins", 1, func(_ context.Context, _ []follower, start func() (follower, error)) (follower, error) {
			return start()
		}},
	}
}

func (h *house) handOverRows() []handOverRow {
	return []handOverRow{
		{"Java", func(ctx context.Context, p *place, group, topic string) (follower, error) {
			c, err := p.Java(ctx, "BenchDeliveries", p.Addr, group, topic)
			return readyPeer(ctx, c, err)
		}},
		{"Go", func(ctx context.Context, p *place, group, topic string) (follower, error) {
			c, err := h.peer("deliveries", p.Addr, group, topic)
			return readyPeer(ctx, c, err)
		}},
		{"streamd", func(ctx context.Context, p *place, group, topic string) (follower, error) {
			m, err := h.member(ctx, p, setup{bin: h.streamd[0], group: group, topic: topic, use: "deliveries"})
			if err != nil {
				return nil, err
			}
			return streamdFollower{m}, nil
		}},
	}
}

func (h *house) handover(ctx context.Context) error {
	p, err := h.plain(ctx)
	if err != nil {
		return err
	}
	got := map[string][]handOver{}
	for run := range h.times(3) {
		for _, e := range events() {
			for _, row := range h.handOverRows() {
				if !h.wanted(row.name + ", " + e.name) {
					continue
				}
				o, err := h.handOverRun(ctx, p, row, e)
				if err != nil {
					return fmt.Errorf("%s, %s, run %d: %w", row.name, e.name, run+1, err)
				}
				note("hand-over %d, %s, %s: gap %s, between members %s, %d duplicates, %d lost", run+1, e.name, row.name, seconds(float64(o.gap)), seconds(float64(o.moved)), o.duplicates, o.lost)
				got[e.name+row.name] = append(got[e.name+row.name], o)
			}
		}
	}
	fmt.Printf("%d queues, %d msg/s of 1 KiB; longest time without a delivery of any one queue in the %s after the event; medians of %d interleaved runs\n\n", handOverQueues, handOverRate, after, h.times(3))
	fmt.Println("| event | client | longest gap | of it between two owners | duplicates | lost |\n|---|---|---|---|---|---|")
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	for _, e := range events() {
		for _, row := range h.handOverRows() {
			if all := got[e.name+row.name]; len(all) > 0 {
				fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", e.name, row.name,
					spread(all, func(o handOver) float64 { return float64(o.gap) }, seconds),
					spread(all, func(o handOver) float64 { return float64(o.moved) }, seconds),
					spread(all, func(o handOver) float64 { return float64(o.duplicates) }, whole),
					spread(all, func(o handOver) float64 { return float64(o.lost) }, whole))
			}
		}
	}
	return nil
}

func (h *house) handOverRun(ctx context.Context, p *place, row handOverRow, e event) (o handOver, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	group, topic := h.name("group"), h.name("handover")
	if err := p.topic(ctx, topic, handOverQueues); err != nil {
		return o, err
	}
	var members []follower
	defer func() {
		for _, m := range members {
			m.end()
		}
	}()
	start := func() (follower, error) { return row.start(ctx, p, group, topic) }
	for range e.begin {
		m, err := start()
		if err != nil {
			return o, err
		}
		members = append(members, m)
	}
	load, err := h.load(p, topic, handOverRate*180, handOverRate)
	if err != nil {
		return o, err
	}
	defer load.Kill()
	if err := shared(ctx, members); err != nil {
		return o, err
	}
	from := time.Now()
	joined, err := e.do(ctx, members, start)
	if joined != nil {
		members = append(members, joined)
	}
	if err != nil {
		return o, err
	}
	if !pause(ctx, after) {
		return o, ctx.Err()
	}
	to := time.Now()
	load.Kill()
	if !pause(ctx, time.Second) { // what is stored is delivered
		return o, ctx.Err()
	}
	all, err := read(members)
	if err != nil {
		return o, err
	}
	return judge(all, from.UnixNano(), to.Add(-time.Second).UnixNano()), nil
}

// shared waits until for two seconds every queue had one owner and all members the same number.
func shared(ctx context.Context, members []follower) error {
	for {
		if !pause(ctx, 3*time.Second) {
			return fmt.Errorf("waiting until %d members share the queues: %w", len(members), ctx.Err())
		}
		all, err := read(members)
		if err != nil {
			return err
		}
		n := shares(all, time.Now().Add(-2*time.Second).UnixNano(), len(members))
		if slices.Min(n) == handOverQueues/len(members) {
			return nil
		}
	}
}

// read collects the deliveries of all members, in order of time.
func read(members []follower) ([]delivery, error) {
	var all []delivery
	for i, m := range members {
		lines, err := m.lines()
		if err != nil {
			return nil, err
		}
		ds, err := deliveries(i, lines)
		if err != nil {
			return nil, err
		}
		all = append(all, ds...)
	}
	slices.SortStableFunc(all, func(a, b delivery) int { return int(a.at - b.at) })
	return all, nil
}

// peerFollower is a Java or Go peer: it prints its deliveries and ends at a line of input.
type peerFollower struct{ *cluster.Process }

func readyPeer(ctx context.Context, c *cluster.Process, err error) (follower, error) {
	if err != nil {
		return nil, err
	}
	if _, err := c.WaitLine(ctx, is("#ready")); err != nil {
		c.Kill()
		return nil, err
	}
	return peerFollower{c}, nil
}

func (f peerFollower) lines() ([]string, error) { return f.Lines(), nil }
func (f peerFollower) stop() error              { return f.Write("stop") }
func (f peerFollower) end()                     { f.Kill() }
func (f peerFollower) kill() error              { return f.Signal(syscall.SIGKILL) }

// streamdFollower is a streamd whose plugin writes the deliveries.
type streamdFollower struct{ *member }

func (f streamdFollower) lines() ([]string, error) {
	text, err := os.ReadFile(f.notes)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plugin's notes: %w", err)
	}
	whole, _, _ := cutLast(string(text), "\n") // the last line may be half written
	return strings.Split(whole, "\n"), nil
}

func (f streamdFollower) stop() error { return f.Signal(syscall.SIGTERM) }
func (f streamdFollower) end()        { f.Kill() }
func (f streamdFollower) kill() error { return f.Signal(syscall.SIGKILL) }

func cutLast(s, sep string) (before, rest string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}
