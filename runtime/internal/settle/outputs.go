package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// output is one output of a message on its way.
type output struct {
	item   *Item
	d      *queue.Delivery // item.D
	number int             // in Results.Outputs
	strand line            // of its message; zero: it is in none
	key    string          // topic and sharding key, of which it must not overtake others; empty = none

	stored  bool
	invalid string // why nobody may store it
}

// progress queues what outputs of a job may go out now. Each goes out once; when none is left the job is done, or tried again.
func (s *Settler) progress(j *Job) {
	s.split(j)
	given := s.over || !j.live()
	if !given {
		s.spoil(j) // not at the end: nobody would take the job that it makes
	}
	s.goOn(s.lines.leave(j, j.items))
	if !given {
		for _, c := range s.plan(j) {
			s.enqueue(c)
		}
	}
	if j.calls > 0 {
		return
	}
	for _, it := range j.items {
		it.tried = it.tried[:0]
	}
	why := j.why
	j.why = ""
	switch {
	case len(j.items) == 0:
		s.finish(j, func(*Counters) {})
	case given:
		s.drop(j)
	default:
		s.again(j, OutcomeRefused, why)
	}
}

// check finds the messages one of whose outputs nobody may store: they store none, and so does what follows them in their strand.
func (s *Settler) check(j *Job) {
	if j.checked {
		return
	}
	j.checked = true
	for _, it := range j.items {
		for _, o := range it.Outputs {
			m, err := s.output(j.Results, o)
			if err == nil {
				if err = rocketmq.CheckMessage(m); err != nil {
					err = fmt.Errorf("an output to topic %s: %w", m.Topic, err)
				}
			}
			if err != nil {
				it.invalid = err.Error()
				break
			}
		}
	}
}

// chain is outputs that are stored in their order: those of the messages of a strand, or those of a sharding key.
type chain struct {
	call    *call // that has all of them that are not stored
	blocked bool  // nothing more of it can go now
}

// admits tells that an output may go with a call: what has to be stored before it is, or goes before it in the same one.
func (ch *chain) admits(c *call) bool {
	return ch == nil || !ch.blocked && (ch.call == nil || ch.call == c)
}

func (ch *chain) add(c *call) {
	if !ch.admits(c) || c == nil {
		ch.blocked = true
	}
	ch.call = c
}

// plan makes calls, one for each broker and topic, of the outputs of a job that may go now and did not since its last pause.
func (s *Settler) plan(j *Job) (calls []*call) {
	strands, keys := make(map[line]*chain), make(map[string]*chain)
	for _, it := range j.items {
		l, bound := lineOf(it.D)
		before := strands[l] // nil: it is the first of its strand, or bound by none
		next := chain{}
		if before != nil {
			next = *before
		}
		next.blocked = next.blocked || it.invalid != ""
		for _, o := range it.Outputs {
			topic, sharding := s.address(j.Results, o)
			out := &output{item: it, d: it.D, number: o, strand: l, key: s.keyOf(j.Results, o)}
			var ofKey *chain
			if out.key != "" {
				if ofKey = keys[out.key]; ofKey == nil {
					ofKey = &chain{}
					keys[out.key] = ofKey
				}
			}
			var c *call
			if it.invalid == "" && !slices.Contains(it.tried, o) {
				at, made := s.callTo(calls, j, topic, sharding)
				if before.admits(at) && ofKey.admits(at) {
					c = at
					if made {
						calls = append(calls, at)
					}
					at.outputs = append(at.outputs, out)
					it.tried = append(it.tried, o)
					it.flying++
				}
			}
			if ofKey != nil && it.invalid == "" {
				ofKey.add(c)
			}
			next.add(c)
		}
		if bound {
			strands[l] = &next
		}
	}
	return calls
}

// callTo finds the call for a broker and topic, or makes it.
func (s *Settler) callTo(calls []*call, j *Job, topic, sharding string) (c *call, made bool) {
	to := s.placeOf(topic, sharding)
	for _, c := range calls {
		if c.to == to && c.step.Topic == topic {
			return c, false
		}
	}
	return &call{job: j, step: Step{Kind: StepProduce, Topic: topic}, to: to}, true
}

// produced takes in what a call stored.
func (s *Settler) produced(c *call) {
	j := c.job
	for _, o := range c.outputs {
		o.item.flying--
		switch {
		case o.stored:
			s.count(func(n *Counters) { n.OutputsStored++ })
			o.item.stored(o.number)
		case o.invalid != "":
			o.item.invalid = o.invalid
		}
	}
	if c.text != "" {
		j.why = c.text
	}
	for _, part := range s.partsOf(c) {
		s.progress(part)
	}
	s.progress(j)
}

// produce stores the outputs of a call, which are of one topic. Plain ones go as one batch. What is stored after another because
// of its strand or sharding key does not go out while that is not stored.
func (s *Settler) produce(ctx context.Context, c *call) (failed error) {
	var held holds
	order, failed := s.batches(c)
	for _, b := range order {
		b = held.filter(b)
		if len(b.messages) == 0 {
			continue
		}
		if err := s.store(ctx, b, &held); err != nil {
			failed = err
		}
	}
	return failed
}

// holds are the strands and sharding keys of which an output could not be stored.
type holds struct {
	strands map[line]bool
	keys    map[string]bool
}

// hold notes an output that is not stored.
func (h *holds) hold(o *output) {
	if h.strands == nil {
		h.strands, h.keys = make(map[line]bool), make(map[string]bool)
	}
	if o.strand != (line{}) {
		h.strands[o.strand] = true
	}
	if o.key != "" {
		h.keys[o.key] = true
	}
}

// filter leaves out what is held.
func (h *holds) filter(b *batch) *batch {
	if h.strands == nil {
		return b
	}
	rest := &batch{topic: b.topic}
	for i, o := range b.from {
		if !h.strands[o.strand] && (o.key == "" || !h.keys[o.key]) {
			rest.add(b.messages[i], o)
		}
	}
	return rest
}

// batch is outputs that are stored together.
type batch struct {
	topic    string
	messages []*rocketmq.OutgoingMessage
	from     []*output
}

func (b *batch) add(m *rocketmq.OutgoingMessage, from *output) {
	b.messages, b.from = append(b.messages, m), append(b.from, from)
}

// batches divides the outputs of a call: plain ones share a batch, unless it would be stored before another that has an earlier
// output of their strand. The error is that of an output which nobody may store, as the check could not know: nothing of its
// strand comes after it.
func (s *Settler) batches(c *call) (order []*batch, failed error) {
	shared := -1
	last, over := make(map[line]int), make(map[line]bool) // by strand: the last batch with an output of it
	for _, o := range c.outputs {
		if over[o.strand] {
			continue
		}
		m, err := s.output(c.job.Results, o.number)
		if err != nil { // the stream's topic for outputs was taken away
			o.invalid, failed = err.Error(), err
			over[o.strand] = o.strand != (line{})
			continue
		}
		at := shared
		if !shares(m) || at < 0 || o.strand != (line{}) && at < last[o.strand] {
			at = len(order)
			order = append(order, &batch{topic: c.step.Topic})
			if shares(m) {
				shared = at
			}
		}
		order[at].add(m, o)
		last[o.strand] = max(last[o.strand], at)
	}
	return order, failed
}

// shares tells whether a message can be one of several in a batch. One whose properties are so long that with what the client adds
// they may be too long is sent alone: of a batch the others would be stored, also those behind it in its strand.
func shares(m *rocketmq.OutgoingMessage) bool {
	size := len(m.Tag)
	for _, key := range m.Keys {
		size += len(key) + 1
	}
	for name, value := range m.Properties {
		size += len(name) + len(value) + 2
	}
	return m.Delay == 0 && m.ShardingKey == "" && size < wire.MaxProperties/2
}

func (s *Settler) store(ctx context.Context, b *batch, held *holds) error {
	done := spanOf(b.from[0].d, "send", b.topic)
	var err error
	var results []rocketmq.SendResult
	if len(b.messages) == 1 {
		results = make([]rocketmq.SendResult, 1)
		results[0], err = s.cfg.Broker.Send(ctx, b.messages[0])
	} else {
		results, err = s.cfg.Broker.SendBatch(ctx, b.topic, b.messages)
	}
	done(err)
	rest := &batch{topic: b.topic}
	for i, o := range b.from {
		if o.stored = err == nil || i < len(results) && results[i].Status != 0; !o.stored {
			rest.add(b.messages[i], o)
		}
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("storing %d outputs in %s: %w", len(b.messages), b.topic, err)
	if unstorable(err) && len(b.messages) > 1 {
		return s.storeEach(ctx, rest, held) // find out which of them it is
	}
	if unstorable(err) {
		b.from[0].invalid = err.Error()
	}
	for _, o := range rest.from {
		held.hold(o)
	}
	return err
}

func (s *Settler) storeEach(ctx context.Context, b *batch, held *holds) (failed error) {
	for i := range b.messages {
		one := held.filter(&batch{topic: b.topic, messages: b.messages[i : i+1], from: b.from[i : i+1]})
		if len(one.messages) == 0 {
			continue
		}
		if err := s.store(ctx, one, held); err != nil {
			failed = err
		}
	}
	return failed
}

// unstorable tells that the message itself is refused, by the client or by the broker: no later try can help.
func unstorable(err error) bool {
	var resp *rocketmq.ResponseError
	return errors.Is(err, rocketmq.ErrInvalidMessage) || errors.Is(err, rocketmq.ErrUnsupported) || errors.As(err, &resp) && resp.Code == wire.RespMessageIllegal
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

// address is where an output goes: its topic, empty when it has none and the stream neither, and its sharding key.
func (s *Settler) address(r *frame.Results, i int) (topic, shardingKey string) {
	if topic = r.Outputs.TopicOf(i); topic == "" {
		topic = s.cfg.Policy().OutputTopic
	}
	if len(r.OutputShardingKey) > i {
		shardingKey = r.OutputShardingKey[i]
	}
	return topic, shardingKey
}

// keyOf names the outputs among which an output must not overtake others: those of its topic and sharding key; empty = it has none.
func (s *Settler) keyOf(r *frame.Results, i int) string {
	topic, sharding := s.address(r, i)
	if sharding == "" {
		return ""
	}
	return topic + "\x00" + sharding
}

func (s *Settler) output(r *frame.Results, i int) (*rocketmq.OutgoingMessage, error) {
	m := &rocketmq.OutgoingMessage{
		Tag: r.Outputs.TagOf(i), Body: r.Outputs.Body(i), Properties: wire.PropertyMap(r.Outputs.Properties(i)), Traced: true,
	}
	if m.Topic, m.ShardingKey = s.address(r, i); m.Topic == "" {
		return nil, errors.New("output without a topic, and the stream's outputs.topic is not set")
	}
	m.Keys = strings.Fields(string(r.Outputs.Keys(i)))
	if len(r.OutputDelay) > i {
		m.Delay = r.OutputDelay[i]
	}
	return m, nil
}
