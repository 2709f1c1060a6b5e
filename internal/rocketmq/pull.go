package rocketmq

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Pull asks for messages of one queue and waits up to the hold time when there are none. The request is bounded by hold
// time + Config.PullMargin, so that a broker's tick does not look like a failure (PullMargin's floor). When ctx ends first
// the pull is abandoned: a late answer is dropped and its buffer reused.
//
// It goes to the replica that the broker suggested last for this group and queue, else to the master, else to whichever
// is reachable. The offset is never committed by a pull. The caller must call Release on the result, whatever its status.
// A filter that the broker refuses is a *FilterError.
func (c *Client) Pull(ctx context.Context, req *PullRequest) (*PullResult, error) {
	list, err := c.replicas(ctx, req.Queue.Broker, req.Queue.Topic)
	if err != nil {
		return nil, fmt.Errorf("pulling from %s for group %s: %w", req.Queue, req.Group, err)
	}
	to := c.choose(list, c.suggested.get(pullKey{req.Group, req.Queue}))
	r := inQueue(req.Queue, pullHeader(req))
	r.within, r.held, r.fast = req.Hold+c.cfg.PullMargin, req.Hold > 0, len(list) > 1
	if err := c.introduce(ctx, to, req, r.fast); err != nil {
		return nil, fmt.Errorf("pulling from %s for group %s: %w", req.Queue, req.Group, err)
	}
	reply, err := c.send(ctx, to, r)
	if err != nil {
		return nil, fmt.Errorf("pulling from %s at offset %d for group %s: %w", req.Queue, req.Offset, req.Group, err)
	}
	return c.finishPull(req, r, to, reply)
}

func (c *Client) finishPull(req *PullRequest, r request, to BrokerAddr, reply *remoting.Reply) (*PullResult, error) {
	result, err := c.pulled(req, r, to, reply)
	if err != nil {
		reply.Release()
		return nil, fmt.Errorf("pulling from %s at offset %d for group %s: %w", req.Queue, req.Offset, req.Group, filterRefusal(req.Subscription, c.note(err, req.Queue.Topic)))
	}
	c.suggested.put(pullKey{req.Group, req.Queue}, result.suggested)
	return &result.PullResult, nil
}

func pullHeader(req *PullRequest) *wire.PullRequest {
	h := &wire.PullRequest{
		Group: req.Group, Topic: req.Queue.Topic, QueueID: req.Queue.ID, Offset: req.Offset,
		MaxMessages: int32(min(req.MaxMessages, 1<<16)), //nolint:gosec // bounded
		SysFlag:     wire.PullSubscription, Subscription: wire.Some(req.Subscription.Expression),
		SubscriptionMillis: req.Subscription.Version, ExpressionType: wire.Some(string(req.Subscription.filterType())),
		Common: named(req.Queue.Broker),
	}
	if req.MaxBytes > 0 {
		h.MaxBytes = wire.Some(int32(min(req.MaxBytes, 1<<24))) //nolint:gosec // bounded
	}
	if req.Hold > 0 {
		h.SysFlag |= wire.PullSuspend
		h.SuspendMillis = req.Hold.Milliseconds()
	}
	return h
}

func (s *Subscription) filterType() FilterType {
	if s.Type == "" {
		return FilterTag
	}
	return s.Type
}

// choose picks a replica: the suggested one, then the master, then the others; one that is known to be down comes last.
func (c *Client) choose(list []BrokerAddr, suggested int64) BrokerAddr {
	if len(list) == 1 {
		return list[0]
	}
	ordered := slices.Clone(list)
	slices.SortStableFunc(ordered, func(a, b BrokerAddr) int { return rank(a, suggested) - rank(b, suggested) })
	for _, a := range ordered {
		if known := c.brokers.known(a.Addr); known == nil || !known.down() {
			return a
		}
	}
	return ordered[0]
}

func rank(a BrokerAddr, suggested int64) int {
	switch a.ID {
	case suggested:
		return 0
	case masterID:
		return 1
	default:
		return 2
	}
}

type pullOutcome struct {
	PullResult
	suggested int64
}

// pulled maps an answer to its status (consumer-semantics.md 3.4). It keeps reply when it returns no error.
func (c *Client) pulled(req *PullRequest, r request, to BrokerAddr, reply *remoting.Reply) (*pullOutcome, error) {
	out := &pullOutcome{PullResult: PullResult{Release: reply.Release, Broker: to}}
	switch reply.ResponseCode() {
	case wire.RespSuccess:
		out.Status, out.Body = PullFound, reply.Body
	case wire.RespPullNotFound:
		out.Status = PullNoNew
	case wire.RespPullRetryImmediately:
		out.Status = PullNoMatch
	case wire.RespPullOffsetMoved:
		out.Status = PullOffsetIllegal
	default:
		return nil, c.responseError(r, to, reply)
	}
	var h wire.PullResponse
	if err := decodeHeader(wire.ReqPullMessage, to.Name, reply, &h); err != nil {
		return nil, err
	}
	out.Next, out.Min, out.Max, out.suggested = h.NextOffset, h.MinOffset, h.MaxOffset, h.SuggestBrokerID
	if out.Status == PullOffsetIllegal {
		out.Reset = reply.Remark == "OFFSET_RESET" || req.Offset >= h.MinOffset && req.Offset <= h.MaxOffset
	}
	if out.Next < 0 || out.Status == PullFound && out.Next <= req.Offset {
		return nil, fmt.Errorf("%w: next offset %d after offset %d", ErrProtocol, out.Next, req.Offset)
	}
	if out.Status != PullOffsetIllegal {
		out.Next = max(out.Next, req.Offset) // only 21 sends anybody back; a replica that lags must not
	}
	return out, nil
}

// pullKey is what a broker's suggestion of a replica is for.
type pullKey struct {
	group string
	queue sdk.Queue
}

// suggestions remembers from which replica to pull next.
type suggestions struct {
	mu  sync.Mutex
	ids map[pullKey]int64 // without entry: the master
}

func (s *suggestions) get(key pullKey) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[key]
}

func (s *suggestions) put(key pullKey, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case id == masterID:
		delete(s.ids, key)
	case s.ids == nil:
		s.ids = map[pullKey]int64{key: id}
	default:
		s.ids[key] = id
	}
}

// forget drops what a group left.
func (s *suggestions) forget(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.ids {
		if key.group == group {
			delete(s.ids, key)
		}
	}
}

// introduce heartbeats before a pull with a subscription version that the broker was not told yet: a pull that overtakes
// the heartbeat is refused with 25 by brokers that look at the registered one (vectors/README.md 5.3).
func (c *Client) introduce(ctx context.Context, to BrokerAddr, req *PullRequest, fast bool) error {
	topic, version := req.Queue.Topic, req.Subscription.Version
	one, err := c.brokers.peer(to.Addr)
	if err != nil || one.advertised.covers(req.Group, topic, version) || version == 0 || !c.groups.joined(req.Group) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, req.Hold+c.cfg.PullMargin)
	defer cancel()
	conn, err := one.get(ctx, fast) // connecting heartbeats too
	if err != nil {
		return c.note(err, topic)
	}
	if one.advertised.covers(req.Group, topic, version) {
		return nil
	}
	told, end := context.WithTimeout(ctx, c.cfg.CallTimeout) // a group that leaves waits for the heartbeats under way
	defer end()
	if err := c.beat(told, one, conn); err != nil {
		return c.note(err, topic)
	}
	one.advertised.set(req.Group, topic, version) // the spec may list another version; asking once is enough
	return nil
}
