package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/streamd/streamd/internal/msgtrace"
	"github.com/streamd/streamd/internal/plain"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
)

// tracer writes RocketMQ's own trace of what a command sends; nil when none is wanted. Why records are lost is told to people.
func (c *clusterFlags) tracer(w io.Writer) *msgtrace.Tracer {
	if c.msgtrace == "" {
		return nil
	}
	return msgtrace.New(msgtrace.Config{Topic: c.msgtrace, Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

// closeTrace writes what is queued and tells what was lost.
func closeTrace(ctx context.Context, t *msgtrace.Tracer, w io.Writer) error {
	if t == nil {
		return nil
	}
	err := t.Close(ctx)
	if c := t.Counts(); c.Dropped+c.Failed > 0 {
		fmt.Fprintf(w, "RocketMQ's message trace: %s written, %d lost\n", plain.Count(c.Written, "record"), c.Dropped+c.Failed)
	}
	return err //nolint:wrapcheck // says what it did
}

// traced marks what is sent for RocketMQ's own trace.
type traced struct {
	produce.Sender
	on bool
}

// Send implements produce.Sender.
func (t traced) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	m.Traced = t.on
	return t.Sender.Send(ctx, m) //nolint:wrapcheck // passed on
}

// SendBatch implements produce.Sender.
func (t traced) SendBatch(ctx context.Context, topic string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	for _, m := range ms {
		m.Traced = t.on
	}
	return t.Sender.SendBatch(ctx, topic, ms) //nolint:wrapcheck // as above
}
