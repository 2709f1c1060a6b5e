package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// house is what the tables share: built programs and the brokers, started when first asked for.
type house struct {
	o       options
	dir     string
	goPeer  string
	plugin  string
	ledger  string
	streamd []string // the first is measured, the others are shown beside it in the drain's table
	places  map[string]*place
	names   int
	ends    []func() // of what is no cluster
}

// place is a cluster with an mqadmin.
type place struct {
	*cluster.Cluster
	admin  *cluster.Admin
	loaded string // topic with the backlog
}

func newHouse(ctx context.Context, o options) (*house, error) {
	dir, err := os.MkdirTemp("", "streamd-bench")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	h := &house{
		o: o, dir: dir, goPeer: filepath.Join(dir, "gopeer"), plugin: filepath.Join(dir, "bench-plugin"), ledger: filepath.Join(dir, "ledger-plugin"),
		places: map[string]*place{},
	}
	for bin := range strings.SplitSeq(o.bin, ",") {
		path := filepath.Join(bin, "streamd")
		if _, err := os.Stat(path); err != nil {
			return nil, errors.Join(fmt.Errorf("looking for streamd: %w; run make build", err), os.RemoveAll(dir))
		}
		h.streamd = append(h.streamd, path)
	}
	interop := filepath.Join(cluster.Root(), "test", "interop")
	for path, pkg := range map[string]string{h.goPeer: "./gopeer", h.plugin: "./plugins/bench", h.ledger: "./plugins/ledger"} {
		if err := h.goTool(ctx, interop, "build", "-trimpath", "-o", path, pkg); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return h, nil
}

func (h *house) close() {
	for _, p := range h.places {
		p.admin.Close()
		p.Close()
	}
	for _, end := range h.ends {
		end()
	}
	if err := os.RemoveAll(h.dir); err != nil {
		note("removing %s: %v", h.dir, err)
	}
}

// place starts a broker of that name once.
func (h *house) place(ctx context.Context, name string, settings map[string]string) (*place, error) {
	if p := h.places[name]; p != nil {
		return p, nil
	}
	note("starting the %s broker", name)
	dir := filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	all := map[string]string{"waitTimeMillsInSendQueue": "5000"} // a busy machine must not end a load; consumers do not notice
	maps.Copy(all, settings)
	c, err := cluster.Run(ctx, cluster.Options{Dir: dir, Broker: all})
	if err != nil {
		return nil, err
	}
	admin, err := c.RunAdmin(ctx)
	if err != nil {
		c.Close()
		return nil, err
	}
	p := &place{Cluster: c, admin: admin}
	h.places[name] = p
	return p, nil
}

// plain is the broker as RocketMQ delivers it.
func (h *house) plain(ctx context.Context) (*place, error) { return h.place(ctx, "default", nil) }

// topic makes a topic and waits until the name server gives its route: clients that ask earlier fail.
func (p *place) topic(ctx context.Context, topic string, queues int) error {
	if err := p.admin.CreateTopic(ctx, topic, queues); err != nil {
		return err
	}
	for {
		out, err := p.admin.Run(ctx, "topicRoute", "-t", topic)
		if err == nil && strings.Contains(out, "brokerDatas") {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("waiting for the route of %s: %w; the last answer: %s", topic, errors.Join(ctx.Err(), err), out)
		}
	}
}

// name makes a name that nothing had before: groups and topics of a run.
func (h *house) name(kind string) string {
	h.names++
	return fmt.Sprintf("bench-%s-%d", kind, h.names)
}

// load starts the Go client as a producer; rate 0 sends batches of 64 as fast as it goes.
func (h *house) load(p *place, topic string, count, rate int) (*cluster.Process, error) {
	batch := 1
	if rate == 0 {
		batch = 64
	}
	return cluster.Start("load", exec.Command(h.goPeer, "load", p.Addr, topic, fmt.Sprint(count), "1024", fmt.Sprint(batch), fmt.Sprint(rate))) //nolint:noctx // ended by its owner
}

// peer starts the Go client as a consumer.
func (h *house) peer(args ...string) (*cluster.Process, error) {
	return cluster.Start("gopeer", exec.Command(h.goPeer, args...)) //nolint:noctx // ended by its owner
}

func is(line string) func(string) bool {
	return func(l string) bool { return strings.HasPrefix(l, line) }
}

// pause waits; false means that ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note tells on stderr what goes on.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// machine is the heading of the output.
func machine(now time.Time) string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	load := "?"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%s, %d CPUs (%s), %s %s/%s, RocketMQ %s, load average at start %s\n",
		now.UTC().Format(time.DateOnly), goruntime.NumCPU(), model, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH, cluster.Main, load)
}
