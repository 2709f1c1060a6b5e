package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ProducerSpec is a group of producers that send in transactions.
type ProducerSpec struct {
	Group string
	// Check tells how the transaction of a half message of the group ended: of any member's, since a broker asks whom it
	// finds. It runs on its own goroutine. What it has not answered when its context ends counts as OutcomeUnknown: the
	// broker asks again, 15 times in all as a rule.
	Check        func(ctx context.Context, half *HalfMessage) Outcome
	CheckTimeout time.Duration // 20 s
	// Answered, unless nil, hears what the broker was told and how that went, after each question: a commit or a roll back
	// has happened when it went well. It runs on the goroutine of the question, several at a time.
	Answered func(half *HalfMessage, outcome Outcome, err error)
}

// producers are the producer groups that this client is a member of.
type producers struct {
	mu    sync.Mutex
	specs map[string]ProducerSpec
}

func (p *producers) add(spec ProducerSpec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.specs[spec.Group]; taken {
		return fmt.Errorf("%w: %s; a client is a member of a group once", ErrDuplicateGroup, spec.Group)
	}
	if p.specs == nil {
		p.specs = map[string]ProducerSpec{}
	}
	p.specs[spec.Group] = spec
	return nil
}

func (p *producers) remove(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, there := p.specs[group]
	delete(p.specs, group)
	return there
}

func (p *producers) get(group string) (ProducerSpec, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec, ok := p.specs[group]
	return spec, ok
}

// names lists the groups, sorted.
func (p *producers) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.specs))
}

// member tells that this client is a member of a group, so that its connections are kept up.
func (c *Client) member() bool { return c.groups.any() || len(c.producers.names()) > 0 }

// JoinProducers makes this client a member of a producer group, until LeaveProducers: brokers learn it by heartbeat, at
// once where they are connected and else on the first connection, and may ask it about the group's transactions from then
// on. It fails, and the group is not joined, when brokers are known and none of them took the heartbeat.
func (c *Client) JoinProducers(ctx context.Context, spec ProducerSpec) error {
	if err := c.running(); err != nil {
		return err
	}
	if err := wire.ValidateGroup(spec.Group); err != nil {
		return fmt.Errorf("joining a producer group: %w", err)
	}
	if spec.Check == nil {
		return fmt.Errorf("joining producer group %s: %w", spec.Group, errNoCheck)
	}
	preset(&spec.CheckTimeout, defaultCheckTimeout)
	if err := c.producers.add(spec); err != nil {
		return err
	}
	if err := anyOf(c.beatAll(ctx)); err != nil {
		c.producers.remove(spec.Group)
		return fmt.Errorf("joining producer group %s: %w", spec.Group, err)
	}
	return nil
}

var errNoCheck = errors.New("it has no check: a broker could not learn how its transactions ended")

// anyOf is nil when one of the results is, or when there is none.
func anyOf(results []error) error {
	for _, err := range results {
		if err == nil {
			return nil
		}
	}
	return errors.Join(results...)
}

// LeaveProducers unregisters a producer group at every broker (35). The group is left whatever the result. What is not
// ended yet, another member of the group is asked about.
func (c *Client) LeaveProducers(ctx context.Context, group string) error {
	if !c.producers.remove(group) {
		return fmt.Errorf("leaving producer group %s: %w", group, ErrNotJoined)
	}
	if err := c.running(); err != nil {
		return err
	}
	if err := c.unregister(ctx, &wire.UnregisterClientRequest{ClientID: c.cfg.ClientID, ProducerGroup: wire.Some(group)}); err != nil {
		return fmt.Errorf("leaving producer group %s: %w", group, err)
	}
	return nil
}

// leaveAllProducers is LeaveProducers for all groups of a client that closes.
func (c *Client) leaveAllProducers(ctx context.Context) (failed error) {
	for _, group := range c.producers.names() {
		c.producers.remove(group)
		failed = errors.Join(failed, c.unregister(ctx, &wire.UnregisterClientRequest{ClientID: c.cfg.ClientID, ProducerGroup: wire.Some(group)}))
	}
	return failed
}

// producerData lists the producer groups of a heartbeat.
func (c *Client) producerData() []wire.ProducerData {
	data := []wire.ProducerData{{GroupName: c.cfg.ProducerGroup}}
	for _, group := range c.producers.names() {
		if group != c.cfg.ProducerGroup {
			data = append(data, wire.ProducerData{GroupName: group})
		}
	}
	return data
}

// transactionChecked answers 39: the group's check says how it ended, and 37 goes to the broker that asked.
func (c *Client) transactionChecked(ctx context.Context, addr string, req *wire.Command, h *wire.CheckTransactionRequest) *wire.Command {
	var m wire.Message
	if _, err := m.Decode(req.Body); err != nil {
		c.log.Warn("a broker's question about a transaction cannot be read", "addr", addr, "error", err)
		return wire.NewResponse(req, wire.RespSystemError, fmt.Sprintf("reading the message: %v", err))
	}
	property, _ := m.Property(wire.PropProducerGroup)
	group := c.plain(string(property))
	spec, ok := c.producers.get(group)
	if !ok {
		return c.notMember(req, group)
	}
	half := c.checkedHalf(addr, &m, h)
	half.Group = spec.Group
	outcome := c.check(ctx, spec, half)
	err := c.EndTransaction(ctx, half, outcome)
	if err != nil {
		c.log.Warn("a broker's question about a transaction is not answered; it asks again", "addr", addr, "unique_key", half.MessageID, "outcome", outcome.String(), "error", err)
	}
	if spec.Answered != nil {
		spec.Answered(half, outcome, err)
	}
	return wire.NewResponse(req, wire.RespSuccess, "")
}

// checkedHalf is the half message that a broker asks about. The question's own fields go back to it: they name the copy
// that it stored for this question (vectors/README.md 5.8), and its topic is the half topic's (4.15).
func (c *Client) checkedHalf(addr string, m *wire.Message, h *wire.CheckTransactionRequest) *HalfMessage {
	half := &HalfMessage{
		MessageID: m.ID(), Message: m, broker: BrokerAddr{Addr: addr, Name: h.BrokerName.Or(c.routes.nameOf(addr))},
		header: wire.EndTransactionRequest{
			Topic: h.Topic, QueueOffset: h.QueueOffset, LogOffset: h.LogOffset, FromCheck: wire.Some(true), TransactionID: h.TransactionID,
		},
	}
	half.header.BrokerName = h.BrokerName
	half.Queue.Topic, half.Queue.Broker, half.Queue.ID = c.plain(string(m.Topic)), half.broker.Name, m.QueueID
	if times, ok := m.Property(wire.PropCheckTimes); ok {
		half.Times, _ = strconv.Atoi(string(times)) // only told to people
	}
	return half
}

// check asks the group's check, which has its time and no more.
func (c *Client) check(ctx context.Context, spec ProducerSpec, half *HalfMessage) Outcome {
	ctx, cancel := context.WithTimeout(ctx, spec.CheckTimeout)
	defer cancel()
	answer := make(chan Outcome, 1)
	c.calls.enter()
	go func() {
		defer c.calls.leave()
		outcome := OutcomeUnknown
		defer func() {
			if r := recover(); r != nil {
				c.log.Error("a transaction's check panicked", "group", spec.Group, "unique_key", half.MessageID, "panic", fmt.Sprint(r))
				outcome = OutcomeUnknown
			}
			answer <- outcome
		}()
		outcome = spec.Check(ctx, half)
	}()
	select {
	case outcome := <-answer:
		return outcome
	case <-ctx.Done():
		c.log.Warn("a transaction's check took too long; the broker asks again", "group", spec.Group, "unique_key", half.MessageID, "limit", spec.CheckTimeout)
		return OutcomeUnknown
	}
}
