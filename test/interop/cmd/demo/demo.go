package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/cluster"
)

// demo is one run. Its fields are set by the main goroutine; only what mu guards is touched by the second Ctrl-C.
type demo struct {
	o       options
	screen  *screen
	tally   *tally
	dir     string
	config  string // path
	http    *http.Client
	cluster *cluster.Cluster
	client  *rocketmq.Client
	members []*member

	pid      int // of the first member's orders plugin, at the last reading
	inFlight int // of all members, at the last reading

	mu       sync.Mutex
	children []*child
}

func newDemo(o options, s *screen) (*demo, error) {
	dir, err := os.MkdirTemp("", "streamd-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the demo: %w", err)
	}
	return &demo{o: o, screen: s, tally: newTally(), dir: dir, config: filepath.Join(dir, "streamd.yaml"),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, nil
}

func (d *demo) clean() { _ = os.RemoveAll(d.dir) } // a folder in the place for temporary files

func (d *demo) add(c *child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children = append(d.children, c)
}

// kill ends every child at once. The broker's processes end with this one.
func (d *demo) kill() {
	d.mu.Lock()
	children := d.children
	d.mu.Unlock()
	for _, c := range children {
		c.kill()
	}
}

// secondAfter is when the second member joins; tickEvery is how often the members are read.
const (
	secondAfter = 6 * time.Second
	tickEvery   = time.Second
	drainLimit  = 40 * time.Second // longer than shutdown_timeout
)

// run shows everything until ctx ends or the time is over, then stops and sums up.
func (d *demo) run(ctx context.Context) error {
	defer d.kill()
	if err := d.startBroker(ctx); err != nil {
		return ended(ctx, err)
	}
	defer d.cluster.Close()
	defer d.closeClient()
	m1, err := d.startMember("m1")
	if err != nil {
		return err
	}
	d.members = append(d.members, m1)
	if err := m1.waitReady(ctx); err != nil {
		return ended(ctx, err)
	}
	d.table(ctx)
	d.screen.say("member", "m1 owns all %d queues of %s", queues, topic)
	loading, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	load, err := d.startLoad(loading, d.cluster.Addr)
	if err != nil {
		return err
	}
	d.add(load.child)
	d.screen.say("load", "%d orders a second by `streamd produce`; one in %d fails once, one in %d is of an unknown customer", d.o.rate, failOnce, reject)
	failed := d.show(ctx)
	stopLoad()
	return errors.Join(failed, d.finish(load))
}

// ended turns what an interrupted start returns into a plain end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *demo) startBroker(ctx context.Context) error {
	d.screen.say("broker", "RocketMQ %s starts; the first time Maven fetches it", cluster.Main)
	var err error
	d.cluster, err = cluster.Run(ctx, cluster.Options{Dir: filepath.Join(d.dir, "rocketmq"), Broker: map[string]string{"messageDelayLevel": delays}})
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	if err := d.openClient(ctx); err != nil {
		d.cluster.Close()
		return err
	}
	d.screen.say("broker", "RocketMQ %s at %s  data %s  DEMO (delay levels shortened)", cluster.Main, d.cluster.Addr, d.dir)
	return d.writeConfig(d.cluster.Addr)
}

// openClient opens the demo's own client, which makes the topic and counts at the end.
func (d *demo) openClient(ctx context.Context) error {
	var err error
	if d.client, err = rocketmq.New(rocketmq.Config{NameServers: []string{d.cluster.Addr}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err = d.client.Start(ctx); err == nil {
		err = d.createTopic(ctx)
	}
	if err != nil {
		d.closeClient()
		return fmt.Errorf("making the topic: %w", err)
	}
	return nil
}

// createTopic tries for a minute: servers that have just started may be slow on a busy machine.
func (d *demo) createTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := d.client.CreateTopic(ctx, topic, queues, 0)
		if err == nil {
			return nil
		}
		pause := time.NewTimer(time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

func (d *demo) closeClient() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = d.client.Close(ctx) // the broker is killed next
}

// show draws the table, starts the second member, and returns when it is time to end. The error is that a member ended.
func (d *demo) show(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	second := time.NewTimer(secondAfter)
	defer second.Stop()
	var over <-chan time.Time
	if d.o.length > 0 {
		t := time.NewTimer(d.o.length)
		defer t.Stop()
		over = t.C
	}
	settled := make(<-chan struct{})
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-second.C:
			d.tally.resetQueues()
			m2, err := d.startMember("m2")
			if err != nil {
				return err
			}
			d.screen.say("member", "m2 starts")
			d.members, settled = append(d.members, m2), m2.ready
		case <-settled:
			settled = nil
			d.rebalanced(ctx)
		case <-tick.C:
			d.table(ctx)
		}
		for _, m := range d.members {
			select {
			case <-m.done:
				return fmt.Errorf("%s ended: %w", m.child.name, m.err)
			default:
			}
		}
	}
}

// rebalanced tells what the second member's coming changed, when every queue that moves has moved, and what to try next.
func (d *demo) rebalanced(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := 0; n < queues/2; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, _ = d.tally.moved()
	}
	n, gap := d.tally.moved()
	d.screen.say("member", "m2 joined: rebalance, %d queues moved, gap %.1fs", n, gap.Seconds())
	d.table(ctx)
	d.screen.print(d.next()...)
}

// finish stops the load and both members, and sums up.
func (d *demo) finish(l *load) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	d.table(ctx)
	d.screen.freeze()
	d.screen.say("stop", "draining; Ctrl-C again stops at once")
	inFlight := d.inFlight
	d.tally.resetQueues()
	begin := time.Now()
	errs := make([]error, len(d.members))
	var all sync.WaitGroup
	for i, m := range d.members {
		all.Go(func() {
			if err := m.stop(drainLimit); err != nil {
				errs[i] = fmt.Errorf("stopping %s: %w", m.child.name, err)
			}
		})
	}
	stored, err := l.finish()
	all.Wait()
	took := time.Since(begin)
	if stored != "" {
		d.screen.say("load", "%s", stored)
	}
	if err = errors.Join(append(errs, err)...); err != nil {
		return err
	}
	confirmed, unconfirmed := d.tally.commits()
	d.screen.say("drained", "%d in flight in %.1fs · offsets confirmed %d/%d · exit 0", inFlight, took.Seconds(), confirmed, confirmed+unconfirmed)
	f, err := d.settle(ctx)
	if err != nil {
		return err
	}
	return d.sum(f)
}
