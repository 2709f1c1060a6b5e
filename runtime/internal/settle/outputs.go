package settle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// produce stores the outputs of a job that are not stored yet. What was stored is taken out of the items, so that the
// next try sends only the rest. Plain outputs of one topic go as one batch.
func (s *Settler) produce(ctx context.Context, j *Job) error {
	batches := make(map[string]*batch)
	var order []*batch
	var failed error
	for i := range j.Items {
		for _, o := range j.Items[i].Outputs {
			m, err := s.output(j.Results, o)
			if err != nil {
				j.Items[i].invalid = err.Error()
				failed = err
				continue
			}
			key := m.Topic
			if m.Delay > 0 || m.ShardingKey != "" { // cannot share a batch
				key = fmt.Sprintf("%s\x00%d", m.Topic, o)
			}
			b := batches[key]
			if b == nil {
				b = &batch{topic: m.Topic}
				batches[key] = b
				order = append(order, b)
			}
			b.messages = append(b.messages, m)
			b.from = append(b.from, place{item: i, output: o})
		}
	}
	for _, b := range order {
		if err := s.store(ctx, j, b); err != nil {
			failed = err
		}
	}
	return failed
}

// batch is outputs that are stored together.
type batch struct {
	topic    string
	messages []*rocketmq.OutgoingMessage
	from     []place
}

type place struct{ item, output int }

func (s *Settler) store(ctx context.Context, j *Job, b *batch) error {
	done := spanOf(j.Items[b.from[0].item].D, "send", b.topic)
	var err error
	var results []rocketmq.SendResult
	if len(b.messages) == 1 {
		results = make([]rocketmq.SendResult, 1)
		results[0], err = s.cfg.Broker.Send(ctx, b.messages[0])
	} else {
		results, err = s.cfg.Broker.SendBatch(ctx, b.topic, b.messages)
	}
	done(err)
	var rest batch
	for i, p := range b.from {
		if err == nil || i < len(results) && results[i].Status != 0 {
			s.count(func(c *Counters) { c.OutputsStored++ })
			j.Items[p.item].stored(p.output)
			continue
		}
		rest.messages, rest.from = append(rest.messages, b.messages[i]), append(rest.from, p)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("storing %d outputs in %s: %w", len(b.messages), b.topic, err)
	switch {
	case !unstorable(err):
		return err
	case len(b.messages) == 1:
		j.Items[b.from[0].item].invalid = err.Error()
		return err
	}
	rest.topic = b.topic
	return s.storeEach(ctx, j, &rest) // find out which of them it is
}

func (s *Settler) storeEach(ctx context.Context, j *Job, b *batch) (failed error) {
	for i := range b.messages {
		if err := s.store(ctx, j, &batch{topic: b.topic, messages: b.messages[i : i+1], from: b.from[i : i+1]}); err != nil {
			failed = err
		}
	}
	return failed
}

// unstorable tells that the message itself is refused, by the client or by the broker: no later try can help.
func unstorable(err error) bool {
	var resp *rocketmq.ResponseError
	return errors.Is(err, rocketmq.ErrInvalidMessage) || errors.As(err, &resp) && resp.Code == wire.RespMessageIllegal
}

func (it *Item) stored(output int) {
	rest := it.Outputs[:0]
	for _, o := range it.Outputs {
		if o != output {
			rest = append(rest, o)
		}
	}
	it.Outputs = rest
}

func (s *Settler) output(r *frame.Results, i int) (*rocketmq.OutgoingMessage, error) {
	m := &rocketmq.OutgoingMessage{
		Topic: r.Outputs.TopicOf(i), Tag: r.Outputs.TagOf(i), Body: r.Outputs.Body(i),
		Properties: wire.PropertyMap(r.Outputs.Properties(i)),
	}
	if m.Topic == "" {
		m.Topic = s.cfg.Policy().OutputTopic
	}
	if m.Topic == "" {
		return nil, errors.New("output without a topic, and the stream's outputs.topic is not set")
	}
	m.Keys = strings.Fields(string(r.Outputs.Keys(i)))
	if len(r.OutputDelay) > i {
		m.Delay = r.OutputDelay[i]
	}
	if len(r.OutputShardingKey) > i {
		m.ShardingKey = r.OutputShardingKey[i]
	}
	return m, nil
}
