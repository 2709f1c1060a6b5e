package deadletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Where redriven messages go.
const (
	ToRetry = "retry" // the group's own retry topic: no other group sees them
	ToTopic = "topic" // the topic that they came from: every group of it sees them
)

// What becomes of a dead letter that an earlier redrive was sending when it ended.
const (
	UncertainStop = "stop"
	UncertainSend = "send"
	UncertainSkip = "skip"
)

// Sender stores messages. *rocketmq.Client fills it; it must not try again by itself what may have been stored.
type Sender interface {
	Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
}

// Options say what a redrive does.
type Options struct {
	To        string
	DryRun    bool
	Again     bool    // also what the journal has as sent
	Uncertain string  // for what the journal has as being sent
	Rate      float64 // messages a second; 0 = as fast as they are stored
	Limit     int     // of messages sent; 0 = none
}

// Outcome is what became of one dead letter.
type Outcome struct {
	*Letter
	To    string `json:"to"` // topic
	NewID string `json:"new_id,omitempty"`
	State string `json:"state"` // sent, already, skipped, or would be sent
}

// The states of an Outcome.
const (
	Sent    = "sent"
	Already = "already sent"
	Skipped = "skipped: uncertain"
	Planned = "would be sent"
)

// Summary counts what became of those that were meant.
type Summary struct {
	Chosen  int `json:"chosen"`
	Sent    int `json:"sent"`
	Already int `json:"already_sent"`
	Skipped int `json:"skipped"`
	Planned int `json:"would_be_sent,omitempty"`
}

// UncertainError names dead letters that may have been redriven.
type UncertainError struct{ IDs []string }

// Error says what to do.
func (e *UncertainError) Error() string {
	return fmt.Sprintf("an earlier redrive ended while it sent %s: whether it was stored is not known. Look for a message with the property %s=%s, then run it again with "+
		"--uncertain skip (it was) or --uncertain send (it was not, or twice does no harm)", strings.Join(e.IDs, ", "), PropertyRedriven, e.IDs[0])
}

// sendLimit bounds one send, which a stop does not cut: its outcome would not be known.
const sendLimit = 15 * time.Second

// Redrive sends the dead letters that are meant, and tells of each. It ends at the first that is not stored, or when ctx
// does; running it again with the same journal goes on there. The journal may be nil for a dry run.
func (b *Box) Redrive(ctx context.Context, to Sender, j *Journal, filter Filter, o Options, tell func(Outcome)) (Summary, error) {
	r := &redrive{box: b, to: to, journal: j, options: o, tell: tell}
	if o.Uncertain == UncertainStop {
		if err := r.uncertain(ctx, filter); err != nil {
			return r.sum, err
		}
	}
	err := b.Each(ctx, filter, func(l *Letter) error { return r.one(ctx, l) })
	if errors.Is(err, errLimit) {
		err = nil
	}
	return r.sum, err
}

var errLimit = errors.New("as many as wanted were sent")

type redrive struct {
	box     *Box
	to      Sender
	journal *Journal
	options Options
	tell    func(Outcome)
	sum     Summary
	next    time.Time // with a rate: not before
}

// uncertain finds, before anything is sent, those of the chosen that may have been.
func (r *redrive) uncertain(ctx context.Context, filter Filter) error {
	var ids []string
	if r.journal != nil {
		for id, e := range r.journal.state {
			if e.State == stateSending {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var chosen []string
	err := r.box.Each(ctx, filter, func(l *Letter) error {
		if slices.Contains(ids, l.ID) {
			chosen = append(chosen, l.ID)
		}
		return nil
	})
	if err == nil && len(chosen) > 0 {
		err = &UncertainError{chosen}
	}
	return err
}

func (r *redrive) one(ctx context.Context, l *Letter) error {
	if o := r.options; o.Limit > 0 && r.sum.Sent+r.sum.Planned >= o.Limit {
		return errLimit
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	m, err := r.box.copyOf(l, r.options.To)
	if err != nil {
		return err
	}
	r.sum.Chosen++
	out := Outcome{Letter: l, To: m.Topic, State: r.decide(l)}
	switch out.State {
	case Already:
		r.sum.Already++
	case Skipped:
		r.sum.Skipped++
	case Planned:
		r.sum.Planned++
	default:
		if err := r.wait(ctx); err != nil {
			return err
		}
		if out.NewID, err = r.send(ctx, l, m); err != nil {
			return err
		}
		r.sum.Sent++
	}
	r.tell(out)
	return nil
}

// decide says what the journal leaves to do.
func (r *redrive) decide(l *Letter) string {
	var known entry
	if r.journal != nil {
		known = r.journal.state[l.ID]
	}
	switch {
	case known.State == stateSent && !r.options.Again:
		return Already
	case known.State == stateSending && r.options.Uncertain == UncertainSkip:
		return Skipped
	case r.options.DryRun:
		return Planned
	}
	return Sent
}

func (r *redrive) send(ctx context.Context, l *Letter, m *rocketmq.OutgoingMessage) (newID string, err error) {
	if err := r.journal.put(entry{ID: l.ID, State: stateSending, At: time.Now(), To: m.Topic}); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendLimit)
	defer cancel()
	result, err := r.to.Send(limited, m)
	if err != nil {
		err = fmt.Errorf("redriving dead letter %s: %w", l.ID, err)
		if rocketmq.IsUnknownOutcome(err) {
			return "", errors.Join(err, &UncertainError{[]string{l.ID}})
		}
		return "", errors.Join(err, r.journal.put(entry{ID: l.ID, State: stateRefused, At: time.Now(), To: m.Topic, Error: err.Error()}))
	}
	return result.OffsetMessageID, r.journal.put(entry{ID: l.ID, State: stateSent, At: time.Now(), To: m.Topic, NewID: result.OffsetMessageID})
}

// wait keeps to the rate.
func (r *redrive) wait(ctx context.Context) error {
	if r.options.Rate <= 0 {
		return nil
	}
	now := time.Now()
	if pause := r.next.Sub(now); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now = r.next
	}
	r.next = now.Add(time.Duration(float64(time.Second) / r.options.Rate))
	return nil
}

// copyOf is the message as it is sent: all properties but those that belong to where it was stored, or count its attempts.
func (b *Box) copyOf(l *Letter, to string) (*rocketmq.OutgoingMessage, error) {
	body, err := l.Body()
	if err != nil {
		return nil, err
	}
	if l.OriginTopic == "" {
		return nil, fmt.Errorf("dead letter %s does not say which topic it came from (no %s): it cannot be redriven; leave it out with --id, --key or --topic", l.ID, wire.PropRetryTopic)
	}
	if l.message.IsBatch() {
		return nil, fmt.Errorf("dead letter %s is a batch of messages, which cannot be redriven; leave it out with --id, --key or --topic", l.ID)
	}
	m := &rocketmq.OutgoingMessage{Topic: wire.RetryTopic(b.Group), Body: body, Flag: l.message.Flag, Properties: l.Properties()}
	for _, name := range ofThePlace() {
		delete(m.Properties, name)
	}
	m.Properties[PropertyRedriven] = l.ID
	m.Properties[wire.PropOriginMessageID] = l.OriginID
	if to == ToTopic {
		m.Topic = l.OriginTopic
		delete(m.Properties, wire.PropRetryTopic)
		m.ShardingKey = m.Properties[wire.PropShardingKey]
		return m, nil
	}
	m.Properties[wire.PropRetryTopic] = l.OriginTopic
	return m, nil
}

// ofThePlace are properties that a broker or a client sets for one stored copy.
func ofThePlace() []string {
	return []string{
		wire.PropDelayLevel, wire.PropWait, wire.PropRealTopic, wire.PropRealQueueID, wire.PropMinOffset, wire.PropMaxOffset, wire.PropCluster, wire.PropConsumeStartTime,
		wire.PropReconsumeTime, wire.PropMaxReconsumeTimes, wire.PropTimerDelaySeconds, wire.PropTimerDelayMillis, wire.PropTimerDeliver, wire.PropTimerOut,
		wire.PropHalfMessage, wire.PropProducerGroup, wire.PropTransactionID, wire.PropCheckTimes, wire.PropInstanceID, wire.PropCRC,
	}
}
