package settle

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// make makes a call, on its own goroutine. It touches the call, and of the job what the loop leaves alone meanwhile.
func (s *Settler) make(ctx context.Context, c *call) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var err error
	switch c.step.Kind {
	case StepProduce:
		err = s.produce(ctx, c)
	case StepSendBack:
		err = s.sendBack(ctx, c.job)
	default:
		err = s.resend(ctx, c.job)
	}
	c.outcome, c.answer = classify(err, c.step), answerOf(err)
	if err != nil {
		c.text = err.Error()
	}
	s.results <- c
}

func classify(err error, step Step) Outcome {
	var resp *rocketmq.ResponseError
	switch {
	case err == nil:
		return OutcomeDone
	case step.Kind == StepSendBack && rocketmq.IsOriginalGone(err):
		return OutcomeGone
	case step.Kind == StepSendBack && errors.As(err, &resp) && topicForbidden(resp):
		return OutcomeRetryOff
	case step.Kind == StepResend && wire.IsDLQTopic(step.Topic) && errors.Is(err, rocketmq.ErrTopicNotFound):
		return OutcomeNoTopic
	default:
		return OutcomeRefused
	}
}

// topicForbidden tells that the retry topic takes no messages, from a broker that as a whole is read-only for a while: code
// 16 is both, and only the remark differs (AbstractSendMessageProcessor; consumer-semantics.md 8.1 steps 3 and 6).
func topicForbidden(r *rocketmq.ResponseError) bool {
	return r.Code == wire.RespNoPermission && strings.Contains(r.Remark, "the topic[") && strings.Contains(r.Remark, "forbidden")
}

func (s *Settler) sendBack(ctx context.Context, j *Job) error {
	d, p := j.first(), s.cfg.Policy()
	operation, destination := "send_back", wire.RetryTopic(p.Group)
	if j.step.Level < 0 {
		operation, destination = "dead_letter", wire.DLQTopic(p.Group)
	}
	done := spanOf(d, operation, destination)
	err := s.cfg.Broker.SendBack(ctx, &rocketmq.SendBackRequest{
		Group: p.Group, Queue: d.Queue(), LogOffset: d.LogOffset, MessageID: d.MessageID(), OriginTopic: d.Topic,
		DelayLevel: j.step.Level, MaxRetries: p.MaxRetries, StoreHost: d.StoreHost().String(),
	})
	done(err)
	return err
}

func spanOf(d *queue.Delivery, operation, destination string) func(error) {
	if d.Span == nil {
		return func(error) {}
	}
	return d.Span.Settle(operation, destination)
}

// resend stores the message anew (310) with the properties of Java's fallback (consumer-semantics.md 5.4) and
// ORIGIN_MESSAGE_ID, which Java's client forgets (vectors/README.md 4.2), so that its attempts stay one message.
func (s *Settler) resend(ctx context.Context, j *Job) error {
	d, p := j.first(), s.cfg.Policy()
	m := &rocketmq.OutgoingMessage{Topic: j.step.Topic, Body: d.Body, Flag: d.Message().Flag, Properties: wire.PropertyMap(d.Props.Text)}
	for _, name := range brokersOwn() {
		delete(m.Properties, name)
	}
	times := d.Attempt
	operation := "send_back"
	switch {
	case wire.IsDLQTopic(j.step.Topic):
		operation = "dead_letter"
	case j.step.Level < 0:
		operation, times = "dead_letter", p.MaxRetries+1
	case j.step.Level > 0:
		m.DelayLevel = j.step.Level
	default:
		m.DelayLevel = min(3+d.Attempt-1, max(1, len(p.Levels)))
	}
	m.Properties[wire.PropRetryTopic] = d.Topic
	m.Properties[wire.PropOriginMessageID] = d.Identity()
	m.Properties[wire.PropReconsumeTime] = strconv.Itoa(times)
	m.Properties[wire.PropMaxReconsumeTimes] = strconv.Itoa(p.MaxRetries)
	done := spanOf(d, operation, j.step.Topic)
	_, err := s.cfg.Broker.Send(ctx, m)
	done(err)
	return err
}

// brokersOwn are properties that the broker sets for the place where a copy is stored; they do not belong on a new copy.
func brokersOwn() []string {
	return []string{
		wire.PropDelayLevel, wire.PropRealTopic, wire.PropRealQueueID, wire.PropMinOffset, wire.PropMaxOffset,
		wire.PropTimerDelaySeconds, wire.PropTimerDelayMillis, wire.PropTimerDeliver, wire.PropTimerOut, wire.PropCluster,
	}
}
