package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
)

// demo is one run. Its fields belong to the goroutine of show, but for those that guard themselves.
type demo struct {
	o       Options
	dir     string
	address string // of name server and broker
	screen  *screen
	ledger  *ledger
	stories *stories
	*handover
	http    *http.Client
	client  *rocketmq.Client
	dead    *deadLetters
	members []*member
	began   time.Time // of the load

	rows     []row // of the last reading
	pid      int   // of the first member's sample plugin, at the last reading
	inFlight int
	first    bool // the first handled order was told

	waiting int64 // orders that the broker still holds at the end
}

// errAtOnce ends everything without a drain.
var errAtOnce = exitcode.With(exitcode.Signaled(int(syscall.SIGINT)), errors.New("stopped at once, nothing was summed up"))

// Run shows streamd at work on out until a signal comes or the time is over, drains, and sums up. A second signal stops at
// once. Errors carry their exit code; a loss is one.
func Run(o Options, out *os.File, signals <-chan os.Signal) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "streamd-demo-")
	if err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("making a folder for the demo: %w", err))
	}
	d := &demo{
		o: o, dir: dir, screen: newScreen(out), ledger: newLedger(), stories: newStories(), handover: newHandover(),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	hard, atOnce := context.WithCancelCause(context.Background())
	defer atOnce(nil)
	soft, drain := context.WithCancel(hard)
	defer drain()
	done := make(chan error, 1)
	go func() { done <- d.run(soft, hard) }()
	for asked := false; ; {
		select {
		case err := <-done:
			return d.end(err)
		case s := <-signals:
			if asked && s != syscall.SIGPIPE { // who closed the pipe writes into it again
				atOnce(errAtOnce)
			}
			asked = true
			drain()
		}
	}
}

// end removes the folder, unless it holds what explains an error.
func (d *demo) end(err error) error {
	if err != nil && !errors.Is(err, errAtOnce) {
		return fmt.Errorf("%w\nThe members' logs are kept: %s", err, filepath.Join(d.dir, "*.log"))
	}
	if e := os.RemoveAll(d.dir); e != nil {
		err = errors.Join(err, fmt.Errorf("removing the demo's folder: %w", e))
	}
	return err
}

// secondAfter is when the second member joins, counted from the first order.
const (
	secondAfter = 6 * time.Second
	lookEvery   = 200 * time.Millisecond // at what the handlers wrote
	askEvery    = 5                      // looks until the members and the broker are asked
	drainLimit  = 40 * time.Second       // longer than shutdown_timeout
)

// run shows everything until soft ends or the time is over, then stops and sums up; hard cuts it off.
func (d *demo) run(soft, hard context.Context) (err error) {
	defer func() {
		for _, m := range d.members {
			m.kill()
			m.journal.close()
			err = errors.Join(err, m.log.Close())
		}
		if cause := context.Cause(hard); errors.Is(cause, errAtOnce) {
			err = cause
		}
	}()
	if err := d.open(soft); err != nil {
		return ended(soft, err)
	}
	defer d.closeClient() //nolint:contextcheck // the way out has a time of its own
	m1, err := d.startMember("m1", d.o.NameServer == "")
	if err != nil {
		return err
	}
	if err := d.awaitFirst(soft, m1); err != nil {
		return ended(soft, errors.Join(err, m1.stopUnready(hard)))
	}
	loading, stopLoad := context.WithCancel(soft)
	defer stopLoad()
	d.began = time.Now()
	l := d.startLoad(loading)
	d.screen.say("load", "%d orders a second to %s; some fail once, some always", d.o.Rate, topic)
	failed := d.show(soft, l)
	stopLoad()
	return errors.Join(failed, d.finish(hard, l))
}

// ended turns what an interrupted start returns into a plain end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to end
	}
	return err
}

// open finds the broker's address and opens the demo's own client.
func (d *demo) open(ctx context.Context) error {
	if d.address = d.o.NameServer; d.address == "" {
		address, usual, err := freeAddress(ctx, wanted)
		if err != nil {
			return err
		}
		if d.address = address; !usual {
			d.screen.say("broker", "port %d is taken by another program, so the broker uses another", wanted)
		}
	}
	client, err := rocketmq.New(rocketmq.Config{
		NameServers: []string{d.address}, Logger: slog.New(slog.DiscardHandler),
		BackoffMin: 20 * time.Millisecond, BackoffMax: 200 * time.Millisecond, // the broker is about to start
	})
	if err != nil {
		return exitcode.With(exitcode.Usage, fmt.Errorf("making a client: %w", err))
	}
	d.client, d.dead = client, newDeadLetters(client)
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("starting a client: %w", err)
	}
	if d.o.NameServer == "" {
		return nil
	}
	if err := d.createTopic(ctx); err != nil {
		return err
	}
	d.screen.say("broker", "RocketMQ at %s", d.address)
	return nil
}

// createTopic tries for a while: a broker that has just started may not be registered yet.
func (d *demo) createTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := d.client.CreateTopic(ctx, topic, queues, 0)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return exitcode.With(exitcode.Environment, fmt.Errorf("making the topic %s at %s: %w", topic, d.address, err))
		}
	}
}

func (d *demo) closeClient() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = d.client.Close(ctx) // the demo is over
}

// awaitFirst waits until the first member is at work.
func (d *demo) awaitFirst(ctx context.Context, m *member) error {
	if err := m.waitReady(ctx); err != nil {
		return err
	}
	d.ask(ctx)
	d.screen.say("member", "m1 is ready and owns %s", d.rows[0].queues)
	return nil
}

// stopUnready ends a member whose start failed or was interrupted, which is no news any more.
func (m *member) stopUnready(hard context.Context) error {
	if m.ended() {
		return nil
	}
	ctx, cancel := context.WithTimeout(hard, drainLimit)
	defer cancel()
	return m.stop(ctx)
}

// show starts the second member, keeps the picture current, and returns when it is time to end. The error is that something
// ended that should not.
func (d *demo) show(ctx context.Context, l *load) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	second := time.NewTimer(secondAfter)
	defer second.Stop()
	over := after(d.o.For)
	defer over.Stop()
	var joined *member // until its coming is told
	told := false
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-over.C:
			return nil
		case <-l.done:
			return ended(ctx, l.err)
		case <-second.C:
			d.reset()
			m2, err := d.startMember("m2", false)
			if err != nil {
				return err
			}
			d.screen.say("member", "m2 starts")
			joined = m2
		case <-look.C:
			if err := d.look(ctx, n%askEvery == 0); err != nil {
				return ended(ctx, err)
			}
		}
		if joined != nil && d.rebalanced(joined) {
			joined = nil
		}
		if !told && len(d.members) > 1 && joined == nil && (d.stories.example() != nil || time.Since(d.began) > hintsAfter) {
			told = true
			d.screen.print(d.next()...)
		}
		for _, m := range d.members {
			if m.ended() {
				return m.gone()
			}
		}
	}
}

// hintsAfter is when the hints come at the latest, though there is no dead letter to name.
const hintsAfter = 20 * time.Second

// after is a timer that runs for ever when there is no time.
func after(length time.Duration) *time.Timer {
	if length == 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(length)
}

// rebalanced tells what the second member's coming changed, once every queue that moves has moved.
func (d *demo) rebalanced(m *member) bool {
	select {
	case <-m.ready:
	default:
		return false
	}
	n, gap := d.moved()
	if n < queues/2 {
		return false
	}
	d.screen.say("member", "m2 joined: rebalance, %d queues moved, gap %.1fs", n, gap.Seconds())
	return true
}

// add notes a member that has been started.
func (d *demo) add(m *member) { d.members = append(d.members, m) }
