package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
)

// settleLimit is how long the demo waits at the end for orders that are not done: a retry waits a second or two.
const settleLimit = 15 * time.Second

// finish stops the load and both members, the one with the broker last, and sums up.
func (d *demo) finish(hard context.Context, l *load) error {
	ctx, cancel := context.WithTimeout(hard, drainLimit+settleLimit)
	defer cancel()
	d.ask(ctx)
	d.drawNow()
	d.screen.freeze() // what was: the members leave now
	d.screen.say("stop", "no more orders; draining; Ctrl-C again stops at once")
	inFlight, begin := d.inFlight, time.Now()
	d.reset()
	errs := []error{nil, nil}
	others := make(chan struct{})
	go func() {
		defer close(others)
		for _, m := range d.members[1:] {
			errs[1] = m.stop(ctx)
		}
	}()
	errs[0] = errors.Join(d.settle(ctx, l, others), d.members[0].stop(ctx))
	<-others
	took := time.Since(begin)
	if err := d.readJournals(); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	sums, err := d.sum()
	confirmed, released := d.commits()
	d.screen.say("drained", "%d in flight in %.1fs · offsets confirmed %d/%d · exit %d", inFlight, took.Seconds(), confirmed, released, exitcode.Of(err))
	d.screen.print(sums)
	return err
}

// settle waits until the sending has ended, the other members have, and every order is done.
func (d *demo) settle(ctx context.Context, l *load, others <-chan struct{}) error {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	loaded := l.done
	for loaded != nil || others != nil || d.ledger.sums().open > 0 {
		select {
		case <-loaded:
			loaded = nil
		case <-others:
			others = nil
		case <-limit.C:
			return d.unsettled(ctx)
		case <-d.members[0].done:
			return d.members[0].gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if err := d.look(ctx, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsettled asks the broker which of the open orders are still to be consumed. Those are not lost.
func (d *demo) unsettled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for _, b := range d.client.Brokers() {
		stats, err := d.client.ConsumeStats(ctx, b.Name, group, "")
		if err != nil {
			return fmt.Errorf("reading what is not consumed: %w", err)
		}
		for _, o := range stats.Offsets {
			d.waiting += o.BrokerOffset - max(0, o.ConsumerOffset)
		}
	}
	return nil
}

// sum is the account. A loss is an error: it must never be the end of a quiet run.
func (d *demo) sum() (text string, err error) {
	t := d.ledger.sums()
	waiting := min(int64(t.open), d.waiting)
	lost := int64(t.open) - waiting
	text = fmt.Sprintf(" sent %s  handled %s  retried %s  dead %s  waiting %d  lost %d  duplicates %d",
		grouped(t.stored), grouped(t.handled), grouped(t.retried), grouped(t.dead), waiting, lost, t.duplicates)
	if t.unsure+t.refused > 0 {
		text += fmt.Sprintf("  not confirmed by the broker %d", t.unsure+t.refused)
	}
	if lost > 0 {
		err = exitcode.With(exitcode.Runtime, fmt.Errorf("%d orders are neither handled nor dead-lettered nor in the broker", lost))
	}
	return text, err
}
