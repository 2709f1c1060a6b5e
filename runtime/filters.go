package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// checkFilter tells what is wrong with a subscription's filter, as far as that can be told without a broker.
func (s Subscription) checkFilter() error {
	if s.SQL == "" {
		_, err := parseTags(s.Tags)
		return err
	}
	if s.Tags != "" {
		return errors.New("tags and sql exclude each other: put the tags into the expression, as TAGS IN ('a', 'b')")
	}
	if strings.TrimSpace(s.SQL) == "" {
		return errors.New("sql is blank: leave it out for every message")
	}
	return nil
}

// subscription is s as it goes to brokers.
func (s Subscription) subscription(version int64) rocketmq.Subscription {
	switch {
	case s.SQL != "":
		return rocketmq.Subscription{Topic: s.Topic, Expression: s.SQL, Type: rocketmq.FilterSQL92, Version: version}
	case s.Tags != "":
		return rocketmq.Subscription{Topic: s.Topic, Expression: s.Tags, Type: rocketmq.FilterTag, Version: version}
	}
	return rocketmq.Subscription{Topic: s.Topic, Expression: wire.AllTags, Type: rocketmq.FilterTag, Version: version}
}

// filters remembers which brokers took the SQL92 filters of a stream. Every broker of a topic is asked once before its
// queues are pulled: one that cannot read an expression would let every message pass (vectors/README.md 4.4).
type filters struct {
	mu    sync.Mutex // held for memory work only
	taken map[filterKey]struct{}
}

type filterKey struct{ topic, expression, broker string }

func (f *filters) has(k filterKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.taken[k]
	return ok
}

func (f *filters) add(k filterKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken == nil {
		f.taken = map[filterKey]struct{}{}
	}
	f.taken[k] = struct{}{}
}

// checkFilters asks the brokers of all topics of c that are filtered by SQL92. Topics that are not there yet are looked at
// when they are.
func (s *stream) checkFilters(ctx context.Context, c *StreamConfig) error {
	for _, sub := range c.Subscriptions {
		if sub.SQL == "" {
			continue
		}
		queues, err := s.broker.Queues(ctx, sub.Topic)
		if errors.Is(err, rocketmq.ErrTopicNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for the brokers that filter topic %s: %w", sub.Topic, err)
		}
		if err := s.checkFilter(ctx, c.Group, sub, queues); err != nil {
			return err
		}
	}
	return nil
}

// checkFilter asks those brokers of a topic's queues that were not asked before. The filter is in order when one of them
// takes it and none refuses it: those that do not answer give no messages either, and are asked again.
func (s *stream) checkFilter(ctx context.Context, group string, sub Subscription, queues []Queue) error {
	var brokers []string
	for _, q := range queues {
		if !slices.Contains(brokers, q.Broker) {
			brokers = append(brokers, q.Broker)
		}
	}
	errs := make([]error, len(brokers))
	var wg sync.WaitGroup
	for i, broker := range brokers {
		key := filterKey{sub.Topic, sub.SQL, broker}
		if s.filters.has(key) {
			continue
		}
		wg.Go(func() {
			if errs[i] = s.broker.CheckFilter(ctx, group, broker, sub.subscription(s.version.Load())); errs[i] == nil {
				s.filters.add(key)
			}
		})
	}
	wg.Wait()
	answered := len(brokers) == 0
	for _, err := range errs {
		if _, refused := errors.AsType[*rocketmq.FilterError](err); refused {
			return err
		}
		answered = answered || err == nil
	}
	if answered {
		return nil
	}
	return errors.Join(errs...)
}

// filterOf is the SQL92 filter of a topic, if it has one.
func (s *StreamConfig) filterOf(topic string) (Subscription, bool) {
	for _, sub := range s.Subscriptions {
		if sub.Topic == topic && sub.SQL != "" {
			return sub, true
		}
	}
	return Subscription{}, false
}

// checkChanged asks for the filters that a reload brings, before anything changes.
func (p *plan) checkChanged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	for s, c := range p.change {
		if sameSubscriptions(s.config(), &c) {
			continue
		}
		if err := s.checkFilters(ctx, &c); err != nil {
			return fmt.Errorf("stream %s: %w", s.name, err)
		}
	}
	return nil
}
