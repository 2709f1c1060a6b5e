package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// idleLength is how long an idle member is watched, after as long a time to settle.
const idleLength = 20 * time.Second

// idle measures what a member costs that has nothing to do: it owns all queues of a topic that nobody sends to.
func (h *house) idle(ctx context.Context) error {
	p, err := h.plain(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("One member that owns every queue of an empty topic, %s long after %s of settling; with its plugin's and strategy's processes. Medians of %d interleaved runs\n\n", idleLength, idleLength, h.times(3))
	fmt.Println("| queues | client | memory | CPU s a minute |\n|---|---|---|---|")
	for _, queues := range []int{256, 2048} {
		topic := h.name("idle")
		if err := p.topic(ctx, topic, min(queues, 1024)); err != nil {
			return err
		}
		topics := []string{topic}
		if queues > 1024 { // more than mqadmin makes in one topic
			more := h.name("idle")
			if err := p.topic(ctx, more, queues-1024); err != nil {
				return err
			}
			topics = append(topics, more)
		}
		if err := h.idleRows(ctx, p, queues, topics); err != nil {
			return err
		}
	}
	return nil
}

type idleCost struct{ memory, cpu float64 }

func (h *house) idleRows(ctx context.Context, p *place, queues int, topics []string) error {
	rows := []struct {
		name  string
		start func(ctx context.Context) (*cluster.Process, error)
	}{
		{"streamd", func(ctx context.Context) (*cluster.Process, error) {
			m, err := h.member(ctx, p, setup{bin: h.streamd[0], group: h.name("group"), topic: strings.Join(topics, "}, {topic: "), use: "drain"})
			if err != nil {
				return nil, err
			}
			return m.Process, nil
		}},
		{"Java", func(ctx context.Context) (*cluster.Process, error) {
			c, err := p.Java(ctx, "BenchDeliveries", p.Addr, h.name("group"), strings.Join(topics, ","))
			return ready(ctx, c, err)
		}},
		{"Go", func(ctx context.Context) (*cluster.Process, error) {
			c, err := h.peer("deliveries", p.Addr, h.name("group"), strings.Join(topics, ","))
			return ready(ctx, c, err)
		}},
	}
	got := make([][]idleCost, len(rows))
	for range h.times(3) {
		for i, row := range rows {
			if !h.wanted(row.name) {
				continue
			}
			c, err := row.start(ctx)
			if err != nil {
				return fmt.Errorf("%s with %d queues: %w", row.name, queues, err)
			}
			cost, err := watch(ctx, c)
			c.Kill()
			if err != nil {
				return fmt.Errorf("%s with %d queues: %w", row.name, queues, err)
			}
			note("idle, %d queues, %s: %s, %.2f s a minute", queues, row.name, mebibytes(cost.memory), cost.cpu)
			got[i] = append(got[i], cost)
		}
	}
	for i, row := range rows {
		if len(got[i]) > 0 {
			fmt.Printf("| %d | %s | %s | %s |\n", queues, row.name, spread(got[i], func(c idleCost) float64 { return c.memory }, mebibytes),
				spread(got[i], func(c idleCost) float64 { return c.cpu }, func(v float64) string { return fmt.Sprintf("%.2f", v) }))
		}
	}
	return nil
}

// ready waits until a peer says so.
func ready(ctx context.Context, c *cluster.Process, err error) (*cluster.Process, error) {
	if err != nil {
		return nil, err
	}
	if _, err := c.WaitLine(ctx, is("#ready")); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// watch lets a process settle, and adds up what it and its children cost.
func watch(ctx context.Context, c *cluster.Process) (idleCost, error) {
	if !pause(ctx, idleLength) {
		return idleCost{}, ctx.Err()
	}
	before, _, err := family(c.PID())
	if err != nil {
		return idleCost{}, err
	}
	if !pause(ctx, idleLength) {
		return idleCost{}, ctx.Err()
	}
	after, memory, err := family(c.PID())
	return idleCost{memory, (after - before).Seconds() * float64(time.Minute) / float64(idleLength)}, err
}

// family adds up CPU time and resident memory of a process and its children.
func family(parent int) (cpu time.Duration, memory float64, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, 0, err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return 0, 0, err
		}
		pid := filepath.Base(filepath.Dir(path))
		// pid (name) state parent … utime is the 12th field after the name, stime the 13th, in hundredths of a second.
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		if pid != strconv.Itoa(parent) && (len(f) < 13 || f[1] != strconv.Itoa(parent)) {
			continue
		}
		n, err := numbers(f[11:13], 2)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(n[0]+n[1]) * 10 * time.Millisecond
		id, err := strconv.Atoi(pid)
		if err != nil {
			return 0, 0, err
		}
		bytes, err := resident(id)
		if err != nil {
			return 0, 0, err
		}
		memory += bytes
	}
	return cpu, memory, nil
}
