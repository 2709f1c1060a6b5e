package clustertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Client is one client of a cluster: it fills the engine's Broker seam.
type Client struct {
	c  *Cluster
	id string
}

// Client returns the client with an id.
func (c *Cluster) Client(id string) *Client { return &Client{c: c, id: id} }

func (b *Client) fault(op string, q sdk.Queue) error {
	if b.c.Fault == nil {
		return nil
	}
	return b.c.Fault(op, b.id, q)
}

// ClientID implements runtime.Broker.
func (b *Client) ClientID() string { return b.id }

// Join implements runtime.Broker.
func (b *Client) Join(_ context.Context, spec rocketmq.GroupSpec) error {
	if err := b.fault("Join", sdk.Queue{}); err != nil {
		return err
	}
	c := b.c
	c.mu.Lock()
	g := c.groups[spec.Name]
	if g == nil {
		g = &groupState{members: map[string]rocketmq.GroupSpec{}}
		c.groups[spec.Name] = g
	}
	if _, twice := g.members[b.id]; twice {
		c.mu.Unlock()
		return rocketmq.ErrDuplicateGroup
	}
	g.members[b.id] = spec
	if g.merge(tableOf(spec)) && len(g.members) > 1 {
		c.changes++
	}
	if retry := wire.RetryTopic(spec.Name); c.topics[retry] == nil {
		c.create(retry, 1)
	}
	notify := c.notified(g)
	c.mu.Unlock()
	for _, f := range notify {
		go f()
	}
	return nil
}

// Heartbeat implements runtime.Broker. A group keeps one table of subscriptions, in which the last heartbeat wins; a change
// of its topics is told to every member (consumer-semantics.md 9.2).
func (b *Client) Heartbeat(context.Context) error {
	if err := b.fault("Heartbeat", sdk.Queue{}); err != nil {
		return err
	}
	b.c.mu.Lock()
	specs := map[*groupState]rocketmq.GroupSpec{}
	for _, g := range b.c.groups {
		if spec, ok := g.members[b.id]; ok {
			specs[g] = spec
		}
	}
	b.c.mu.Unlock()
	for g, spec := range specs {
		next := tableOf(spec) // it may ask the member, which takes locks of its own
		b.c.mu.Lock()
		var notify []func()
		if g.merge(next) {
			notify = b.c.notified(g)
			b.c.changes++
		}
		b.c.mu.Unlock()
		for _, f := range notify {
			go f()
		}
	}
	return nil
}

// Registered implements runtime.Broker.
func (b *Client) Registered(_ context.Context, group string, _ []string) ([]rocketmq.Subscription, error) {
	if err := b.fault("Registered", sdk.Queue{}); err != nil {
		return nil, err
	}
	return b.c.Table(group), nil
}

// CheckFilter implements runtime.Broker. Expressions that contain "bad" cannot be read.
func (b *Client) CheckFilter(_ context.Context, _, _ string, s rocketmq.Subscription) error {
	if err := b.fault("CheckFilter", sdk.Queue{Topic: s.Topic}); err != nil {
		return err
	}
	if strings.Contains(s.Expression, "bad") {
		return &rocketmq.FilterError{Subscription: s, Err: &rocketmq.ResponseError{Request: wire.ReqCheckClientConfig, Code: wire.RespSubscriptionParseFailed, Remark: "cannot be parsed", Broker: Broker}}
	}
	return nil
}

// Leave implements runtime.Broker.
func (b *Client) Leave(_ context.Context, group string) error {
	if err := b.fault("Leave", sdk.Queue{}); err != nil {
		return err
	}
	b.c.mu.Lock()
	g := b.c.groups[group]
	var notify []func()
	if g != nil {
		delete(g.members, b.id)
		if len(g.members) == 0 {
			g.table = nil
		}
		notify = b.c.notified(g)
	}
	b.c.mu.Unlock()
	for _, f := range notify {
		go f()
	}
	return nil
}

// Queues implements runtime.Broker.
func (b *Client) Queues(_ context.Context, name string) ([]sdk.Queue, error) {
	if err := b.fault("Queues", sdk.Queue{Topic: name}); err != nil {
		return nil, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	t := b.c.topics[name]
	if t == nil || len(t.queues) == 0 { // a topic may have watchers before it is there
		return nil, fmt.Errorf("finding the queues of %s: %w", name, rocketmq.ErrTopicNotFound)
	}
	qs := make([]sdk.Queue, len(t.queues))
	for i := range qs {
		qs[i] = Queue(name, i)
	}
	return qs, nil
}

// WritableQueues implements runtime.Broker.
func (b *Client) WritableQueues(ctx context.Context, name string) ([]sdk.Queue, error) {
	qs, err := b.Queues(ctx, name)
	if err != nil {
		return nil, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return qs[:min(len(qs), b.c.topics[name].writable)], nil
}

// RetryQueues implements runtime.Broker.
func (b *Client) RetryQueues(_ context.Context, group, _ string) (int32, error) {
	if err := b.fault("RetryQueues", sdk.Queue{}); err != nil {
		return 0, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if b.c.noRetries[group] {
		return 0, nil
	}
	return 1, nil
}

// RouteChanged implements runtime.Broker.
func (b *Client) RouteChanged(name string, f func()) (stop func()) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	t := b.c.topics[name]
	if t == nil {
		t = &topic{watchers: map[int]func(){}}
		if name == "" {
			return func() {}
		}
		b.c.topics[name] = t
	}
	t.nextID++
	id := t.nextID
	t.watchers[id] = f
	return func() {
		b.c.mu.Lock()
		defer b.c.mu.Unlock()
		delete(t.watchers, id)
	}
}

// Members implements runtime.Broker.
func (b *Client) Members(_ context.Context, group, name string) ([]string, error) {
	if err := b.fault("Members", sdk.Queue{Topic: name}); err != nil {
		return nil, err
	}
	return b.c.Members(group), nil
}

// PeerInfo implements runtime.Broker.
func (b *Client) PeerInfo(ctx context.Context, group, id string) (*wire.ConsumerRunningInfo, error) {
	if err := b.fault("PeerInfo", sdk.Queue{}); err != nil {
		return nil, err
	}
	b.c.mu.Lock()
	var f func(bool) *wire.ConsumerRunningInfo
	if g := b.c.groups[group]; g != nil {
		f = g.members[id].RunningInfo
	}
	b.c.mu.Unlock()
	if f == nil {
		return nil, rocketmq.ErrMemberOffline
	}
	answer := make(chan *wire.ConsumerRunningInfo, 1)
	go func() { answer <- f(false) }()
	select {
	case info := <-answer:
		return info, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Committed implements runtime.Broker.
func (b *Client) Committed(_ context.Context, group string, q sdk.Queue) (int64, bool, error) {
	if err := b.fault("Committed", q); err != nil {
		return 0, false, err
	}
	o := b.c.Committed(group, q)
	return max(0, o), o >= 0, nil
}

// Commit implements runtime.Broker.
func (b *Client) Commit(_ context.Context, group string, q sdk.Queue, offset int64) (bool, error) {
	if err := b.fault("Commit", q); err != nil {
		return false, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if _, waits := b.c.resets[group][q]; waits {
		return true, nil
	}
	b.c.table(b.c.offsets, group)[q] = offset
	return false, nil
}

// MinOffset implements runtime.Broker.
func (b *Client) MinOffset(_ context.Context, q sdk.Queue) (int64, error) {
	if err := b.fault("MinOffset", q); err != nil {
		return 0, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return b.c.topics[q.Topic].queues[q.ID].min, nil
}

// MaxOffset implements runtime.Broker.
func (b *Client) MaxOffset(_ context.Context, q sdk.Queue) (int64, error) {
	if err := b.fault("MaxOffset", q); err != nil {
		return 0, err
	}
	return b.c.End(q), nil
}

// OffsetAt implements runtime.Broker.
func (b *Client) OffsetAt(_ context.Context, q sdk.Queue, at time.Time) (int64, error) {
	if err := b.fault("OffsetAt", q); err != nil {
		return 0, err
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	l := b.c.topics[q.Topic].queues[q.ID]
	for i, r := range l.messages {
		if r.StoreMillis >= at.UnixMilli() {
			return l.min + int64(i), nil
		}
	}
	return l.min + int64(len(l.messages)), nil
}

// Pull implements runtime.Broker.
func (b *Client) Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error) {
	b.c.begin(req.Queue)
	defer b.c.end(req.Queue)
	if err := b.fault("Pull", req.Queue); err != nil {
		return nil, err
	}
	hold := time.NewTimer(req.Hold)
	defer hold.Stop()
	for {
		b.c.mu.Lock()
		res, arrived := b.c.read(req), b.c.arrived
		b.c.mu.Unlock()
		if res.Status != rocketmq.PullNoNew {
			return res, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-hold.C:
			return res, nil
		case <-arrived:
		}
	}
}

// StartPull implements runtime.Broker.
func (b *Client) StartPull(req *rocketmq.PullRequest, done func(*rocketmq.PullResult, error)) (cancel func(), ok bool) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		done(b.Pull(ctx, req))
	}()
	return cancel, true
}

func (c *Cluster) begin(q sdk.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Pulls[q]++
	c.most[q] = max(c.most[q], c.Pulls[q])
}

func (c *Cluster) end(q sdk.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Pulls[q]--
}

// read is what a broker finds for a pull (consumer-semantics.md 3.7, 3.8). It filters by tag as brokers do, but exactly.
func (c *Cluster) read(req *rocketmq.PullRequest) *rocketmq.PullResult {
	l := c.topics[req.Queue.Topic].queues[req.Queue.ID]
	end := l.min + int64(len(l.messages))
	res := &rocketmq.PullResult{Next: req.Offset, Min: l.min, Max: end, Release: func() {}}
	if to, ok := c.resets[req.Group][req.Queue]; ok {
		delete(c.resets[req.Group], req.Queue)
		res.Status, res.Next, res.Reset = rocketmq.PullOffsetIllegal, to, true
		return res
	}
	switch {
	case req.Offset < l.min:
		res.Status, res.Next = rocketmq.PullOffsetIllegal, l.min
		return res
	case req.Offset > end:
		res.Status, res.Next = rocketmq.PullOffsetIllegal, end
		return res
	case req.Offset == end:
		res.Status = rocketmq.PullNoNew
		return res
	}
	matches := matcher(req.Subscription)
	found := 0
	for o := req.Offset; o < end && found < req.MaxMessages; o++ {
		r := l.messages[o-l.min]
		res.Next = o + 1
		if !matches(r) {
			continue
		}
		res.Body = append(res.Body, r.text...)
		found++
	}
	res.Status = rocketmq.PullFound
	if found == 0 {
		res.Status = rocketmq.PullNoMatch
	}
	if c.Garble != nil && found > 0 {
		res.Body = c.Garble(req.Queue, slices.Clone(res.Body))
	}
	return res
}

// matcher filters by tags exactly. Of SQL92 it knows "property = 'value'" alone, and lets everything pass where it cannot
// read it, as RocketMQ does.
func matcher(s rocketmq.Subscription) func(*record) bool {
	if s.Type == rocketmq.FilterSQL92 {
		name, value, ok := strings.Cut(s.Expression, " = ")
		return func(r *record) bool {
			return !ok || wire.PropertyMap(r.Properties)[name] == strings.Trim(value, "'")
		}
	}
	data, err := wire.NewSubscriptionData(s.Topic, wire.ExpressionTag, s.Expression, 1)
	if err != nil {
		panic(err)
	}
	return func(r *record) bool { return data.Matches(r.Tag()) }
}

// SendBack implements runtime.Broker (consumer-semantics.md 8.1).
func (b *Client) SendBack(_ context.Context, req *rocketmq.SendBackRequest) error {
	if err := b.fault("SendBack", req.Queue); err != nil {
		return err
	}
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noRetries[req.Group] {
		return nil // stored nowhere, as brokers do
	}
	original := c.log[req.LogOffset]
	if original == nil {
		return &rocketmq.ResponseError{Request: wire.ReqSendBack, Code: wire.RespSystemError, Remark: fmt.Sprintf("look message by offset failed, %d", req.LogOffset)}
	}
	properties := wire.PropertyMap(original.Properties)
	if properties[wire.PropRetryTopic] == "" {
		properties[wire.PropRetryTopic] = string(original.Topic)
	}
	if properties[wire.PropOriginMessageID] == "" {
		properties[wire.PropOriginMessageID] = original.OffsetID()
	}
	name, level := wire.RetryTopic(req.Group), req.DelayLevel
	switch {
	case level < 0 || int(original.ReconsumeTimes) >= req.MaxRetries:
		name, level = wire.DLQTopic(req.Group), 0
	case level == 0:
		level = 3 + int(original.ReconsumeTimes)
	}
	r := newRecord(&rocketmq.OutgoingMessage{Topic: name, Properties: properties, Body: original.Body, Flag: original.Flag})
	r.ReconsumeTimes = original.ReconsumeTimes + 1
	c.later(name, r, level)
	return nil
}

// later stores a record after its level's delay.
func (c *Cluster) later(name string, r *record, level int) {
	if c.topics[name] == nil || len(c.topics[name].queues) == 0 {
		c.create(name, 1)
	}
	if level <= 0 {
		c.store(Queue(name, 0), r, time.Now())
		return
	}
	d := time.Duration(level) * time.Second
	if c.Delay != nil {
		d = c.Delay(level)
	}
	time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.store(Queue(name, 0), r, time.Now())
	})
}

// Send implements runtime.Broker.
func (b *Client) Send(_ context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	if err := b.fault("Send", sdk.Queue{Topic: m.Topic}); err != nil {
		return rocketmq.SendResult{}, err
	}
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, *m)
	name := m.Topic
	r := newRecord(m)
	if times, err := strconv.Atoi(m.Properties[wire.PropReconsumeTime]); err == nil && wire.IsRetryTopic(name) {
		r.ReconsumeTimes = int32(times)
		if most, err := strconv.Atoi(m.Properties[wire.PropMaxReconsumeTimes]); err == nil && times > most {
			name = wire.DLQTopic(name[len(wire.RetryPrefix):])
		}
	}
	if c.topics[name] == nil && wire.IsDLQTopic(m.Topic) {
		return rocketmq.SendResult{}, rocketmq.ErrTopicNotFound
	}
	c.later(name, r, m.DelayLevel)
	return rocketmq.SendResult{Status: rocketmq.SendOK}, nil
}

// SendBatch implements runtime.Broker.
func (b *Client) SendBatch(ctx context.Context, _ string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	results := make([]rocketmq.SendResult, len(ms))
	var failed error
	for i, m := range ms {
		var err error
		if results[i], err = b.Send(ctx, m); err != nil {
			failed = err
		}
	}
	return results, failed
}

// StoredBy implements runtime.Broker.
func (b *Client) StoredBy(string, string) string { return Broker }

// Version implements runtime.Broker.
func (b *Client) Version(string) int32 { return 0 }

// Sent lists what was sent by 310, in order.
func (c *Cluster) Sent() []rocketmq.OutgoingMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}
