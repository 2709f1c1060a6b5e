package telemetry

import (
	"context"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

// Broker measures the requests the engine makes: messaging.client.operation.duration and messaging.client.sent.messages.
// Pulls are not measured: most of their time is the broker holding them.
func (t *Telemetry) Broker(b runtime.Broker) runtime.Broker { return measured{b, t.metrics} }

type measured struct {
	runtime.Broker
	m *metrics
}

// Commit measures an offset commit.
func (b measured) Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (bool, error) {
	start := time.Now()
	reset, err := b.Broker.Commit(ctx, group, q, offset)
	b.m.request("commit", "settle", group, q.Topic, err, time.Since(start))
	return reset, err
}

// SendBack measures a send-back, or a dead-lettering.
func (b measured) SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error {
	start := time.Now()
	err := b.Broker.SendBack(ctx, req)
	operation := operationSendBack
	if req.DelayLevel < 0 {
		operation = operationDeadLetter
	}
	b.m.request(operation, "settle", req.Group, req.OriginTopic, err, time.Since(start))
	return err
}

// Send measures and counts one message.
func (b measured) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	start := time.Now()
	r, err := b.Broker.Send(ctx, m)
	b.sent(m.Topic, 1, err, start)
	return r, err
}

// SendBatch measures and counts a batch.
func (b measured) SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	start := time.Now()
	r, err := b.Broker.SendBatch(ctx, topic, ms)
	b.sent(topic, len(ms), err, start)
	return r, err
}

func (b measured) sent(topic string, n int, err error, start time.Time) {
	b.m.request(operationSend, operationSend, "", topic, err, time.Since(start))
	b.m.sent.WithLabelValues(operationSend, topic, errorType(err)).Add(float64(n))
}
