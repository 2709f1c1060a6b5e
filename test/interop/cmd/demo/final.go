package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// final is what the broker says after the members have stopped.
type final struct {
	produced int64 // orders stored
	dead     int64 // messages in the dead-letter topic
	waiting  int64 // not consumed yet: of the topic and of the retry topic
}

func (d *demo) readFinal(ctx context.Context) (f final, err error) {
	broker := d.cluster.Brokers[0].Name
	if f.produced, err = extent(ctx, d.client, broker, topic); err != nil {
		return f, err
	}
	if f.dead, err = extent(ctx, d.client, broker, wire.DLQTopic(group)); err != nil {
		return f, err
	}
	stats, err := d.client.ConsumeStats(ctx, broker, group, "")
	if err != nil {
		return f, fmt.Errorf("reading what is not consumed: %w", err)
	}
	for _, o := range stats.Offsets {
		f.waiting += o.BrokerOffset - max(0, o.ConsumerOffset)
	}
	return f, nil
}

// extent counts the messages of a topic; one that does not exist has none.
func extent(ctx context.Context, c *rocketmq.Client, broker, topic string) (n int64, err error) {
	stats, err := c.TopicStats(ctx, broker, topic)
	var refused *rocketmq.ResponseError
	switch {
	case errors.As(err, &refused) && refused.Code == wire.RespTopicNotExist:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("counting %s: %w", topic, err)
	}
	for _, o := range stats.Offsets {
		n += o.MaxOffset - o.MinOffset
	}
	return n, nil
}

// settle reads until what is not settled and what waits in the broker are the same, which takes as long as the delay of
// a retry: a delayed message is in no queue that the group reads yet.
func (d *demo) settle(ctx context.Context) (final, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := d.readFinal(ctx)
		handled, _, _ := d.tally.counts()
		if err != nil || f.produced-int64(handled)-f.dead == f.waiting {
			return f, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return f, nil // they differ: the sums say so
		}
	}
}

// sum prints the account. A loss is an error: it must never be the end of a quiet run.
func (d *demo) sum(f final) error {
	handled, duplicates, dropped := d.tally.counts()
	missing := f.produced - int64(handled) - f.dead - f.waiting
	lost, again := max(0, missing), max(0, -missing)
	d.screen.print(fmt.Sprintf(" produced %d  handled %d  dead %d  waiting in the broker %d  lost %d  duplicates %d", f.produced, handled, f.dead, f.waiting, lost, duplicates))
	switch {
	case dropped > 0:
		d.screen.print(fmt.Sprintf(" %d lines of the plugin's log were not kept, so handled is too low by up to so many, and lost too high", dropped))
		return nil
	case again > 0:
		d.screen.print(fmt.Sprintf(" %d of the handled ones will come again: their commit was not stored", again))
	}
	if lost > 0 {
		return fmt.Errorf("%d orders are neither handled nor dead-lettered nor in the broker", lost)
	}
	return nil
}
