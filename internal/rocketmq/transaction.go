package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Outcome is how a transaction ended.
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown  Outcome = iota // not known yet: the broker asks again
	OutcomeCommit                  // consumers get the message
	OutcomeRollback                // nobody gets it
)

// String is the outcome's name.
func (o Outcome) String() string {
	switch o {
	case OutcomeCommit:
		return "commit"
	case OutcomeRollback:
		return "rollback"
	default:
		return "unknown"
	}
}

func (o Outcome) sysFlag() int32 {
	switch o {
	case OutcomeCommit:
		return wire.SysFlagCommit
	case OutcomeRollback:
		return wire.SysFlagRollback
	default:
		return 0
	}
}

// HalfMessage is a message that its broker has stored and shows to nobody until its transaction ends
// (remoting-protocol.md 2.10).
type HalfMessage struct {
	Group     string // of the producers that may end it
	MessageID string // UNIQ_KEY; the same for every question about it
	Queue     sdk.Queue
	// Message is what a broker sends along with its question; nil for one that was just prepared. Valid during the check.
	Message *wire.Message
	// Times is how often its producers have been asked; 0 for one that was just prepared.
	Times int

	broker BrokerAddr // who asked; empty: the master of Queue's broker
	header wire.EndTransactionRequest
}

// Prepare stores m as a half message of a group that JoinProducers joined. The caller then does what the message tells of
// and says how that went by EndTransaction; whoever does not is asked, by way of ProducerSpec.Check.
//
// An attempt is repeated only while the broker is known not to have stored the message. After an error with
// IsUnknownOutcome a half message may stand: the check, asked for it, has to answer OutcomeRollback, because nothing was
// done for it. A message that is stored with less certainty than configured is rolled back and is an error, as in Java.
func (c *Client) Prepare(ctx context.Context, group string, m *OutgoingMessage) (*HalfMessage, error) {
	if _, ok := c.producers.get(group); !ok {
		return nil, fmt.Errorf("preparing a message of producer group %s: %w: a broker has to know whom to ask about it", group, ErrNotJoined)
	}
	o, err := c.prepareHalf(group, m)
	if err != nil {
		return nil, fmt.Errorf("preparing a message for topic %s: %w", m.Topic, err)
	}
	results, err := c.sendParts(ctx, []*outgoing{o})
	if err != nil {
		return nil, fmt.Errorf("preparing message %s for topic %s: %w", o.id, o.topic, err)
	}
	half, err := preparedHalf(group, o, &results[0])
	if err != nil {
		return nil, fmt.Errorf("preparing message %s for topic %s: %w", o.id, o.topic, err)
	}
	if results[0].Status != SendOK {
		err = fmt.Errorf("preparing message %s for topic %s: %w", o.id, o.topic, errNotAsSafe)
		return nil, errors.Join(err, c.EndTransaction(ctx, half, OutcomeRollback))
	}
	return half, nil
}

var errNotAsSafe = errors.New("the broker stored it with less certainty than configured, so it is rolled back")

func (c *Client) prepareHalf(group string, m *OutgoingMessage) (*outgoing, error) {
	half := *m
	half.Properties = make(map[string]string, len(m.Properties)+2)
	maps.Copy(half.Properties, m.Properties)
	half.Properties[wire.PropHalfMessage], half.Properties[wire.PropProducerGroup] = "true", c.wired(group)
	o, err := c.prepare(&half)
	switch {
	case err != nil:
		return nil, err
	case o.timer || o.delayed:
		return nil, fmt.Errorf("%w: a message of a transaction cannot be delayed", ErrInvalidMessage)
	case wire.IsRetryTopic(o.topic) || wire.IsDLQTopic(o.topic):
		return nil, fmt.Errorf("%w: topic %s takes no transactions", ErrInvalidMessage, o.topic)
	}
	o.group, o.half, o.sysFlag = group, true, o.sysFlag|wire.SysFlagPrepared
	return o, c.compress(o)
}

func preparedHalf(group string, o *outgoing, r *SendResult) (*HalfMessage, error) {
	_, logOffset, err := wire.ParseOffsetID(r.OffsetMessageID)
	if err != nil {
		return nil, fmt.Errorf("%w: reading where the half message is stored: %w", ErrProtocol, err)
	}
	half := &HalfMessage{
		Group: group, MessageID: o.id, Queue: r.Queue,
		header: wire.EndTransactionRequest{
			Topic: wire.Some(o.topic), QueueOffset: r.Offset, LogOffset: logOffset, FromCheck: wire.Some(false), Common: named(r.Queue.Broker),
		},
	}
	if r.TransactionID != "" { // 4.9 says none
		half.header.TransactionID = wire.Some(r.TransactionID)
	}
	return half, nil
}

// EndTransaction tells the broker how the transaction of a half message ended (37). For commit and rollback it waits for
// the broker's word; OutcomeUnknown is sent one-way, since no broker answers it. After a failure the broker asks the
// group's check later. It must not be repeated after IsUnknownOutcome: RocketMQ stores a message that is committed twice
// twice (vectors/README.md 5.8).
func (c *Client) EndTransaction(ctx context.Context, half *HalfMessage, outcome Outcome) error {
	header := half.header
	header.ProducerGroup, header.MessageID, header.Outcome = half.Group, half.MessageID, outcome.sysFlag()
	err := c.endTransaction(ctx, half, &header)
	if err != nil {
		return fmt.Errorf("ending the transaction of message %s of topic %s (%s): %w", half.MessageID, half.Queue.Topic, outcome, err)
	}
	return nil
}

func (c *Client) endTransaction(ctx context.Context, half *HalfMessage, header *wire.EndTransactionRequest) error {
	to := half.broker
	if to.Addr == "" {
		master, err := c.master(ctx, half.Queue.Broker, half.Queue.Topic)
		if err != nil {
			return err
		}
		to = master
	}
	r := inQueue(half.Queue, header)
	if header.Outcome == OutcomeUnknown.sysFlag() {
		return c.post(ctx, to, r)
	}
	reply, err := c.send(ctx, to, r)
	if err != nil {
		return err
	}
	if err := c.refusal(r, to, reply); err != nil {
		return err
	}
	reply.Release()
	return nil
}

// post sends r one-way.
func (c *Client) post(ctx context.Context, to BrokerAddr, r request) error {
	if err := c.running(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	conn, err := c.conn(ctx, to.Addr, r.fast)
	if err != nil {
		return err
	}
	return conn.Post(ctx, wire.NewRequest(r.header, r.body)) //nolint:wrapcheck // names address and request
}

// defaultCheckTimeout is shorter than the pause between a broker's questions (30 s, before 5.1.1 60 s).
const defaultCheckTimeout = 20 * time.Second
