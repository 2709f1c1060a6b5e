package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
)

// orders makes sample orders without an end. It implements produce.Source.
type orders struct{ n int }

// Next makes the next order.
func (s *orders) Next() (*rocketmq.OutgoingMessage, error) {
	id := orderID(s.n)
	body, err := json.Marshal(map[string]any{
		"id": id, "amount": float64(500+s.n*37%20000) / 100, "currency": "EUR", "customer": fmt.Sprintf("C-%03d", s.n*7%311),
	})
	if err != nil {
		return nil, fmt.Errorf("making an order: %w", err)
	}
	s.n++
	return &rocketmq.OutgoingMessage{Topic: topic, Tag: "created", Keys: []string{id}, Body: body, Properties: map[string]string{}}, nil
}

// load sends orders at a steady rate.
type load struct {
	done chan struct{}
	err  error // valid after done
}

// startLoad sends until ctx ends; what is in flight then is waited for. A failed sending is not tried again: it would hide
// whose duplicate it is.
func (d *demo) startLoad(ctx context.Context) *load {
	l := &load{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		_, err := produce.Run(ctx, d.client, &orders{}, produce.Options{Rate: float64(d.o.Rate), InFlight: 4, Trace: true}, func(r produce.Result) {
			mayBe := r.Err != nil && rocketmq.IsUnknownOutcome(r.Err)
			if r.Err != nil && !mayBe && ctx.Err() != nil {
				return // made and never sent: the load was stopped before its turn
			}
			d.ledger.sent(r.N-1, time.Now(), r.Err, mayBe)
		})
		if ctx.Err() == nil {
			l.err = fmt.Errorf("sending orders: %w", err)
		}
	}()
	return l
}
