// Command orders is a plugin with a handler of sample orders, as JSON: {"id": "A-1042", "amount": 12.5}. It fails some
// orders once, some on every attempt, and rejects some for good, so that retries and dead letters can be seen.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config says how much goes wrong, and what work there is.
type Config struct {
	FailOnce   uint32       `json:"fail_once" default:"50" doc:"one order in so many fails on its first attempt; 0 = none"`
	FailAlways uint32       `json:"fail_always" default:"0" doc:"one order in so many is of an unknown customer and fails on every attempt; 0 = none"`
	Reject     uint32       `json:"reject" default:"1000" doc:"one order in so many is canceled and rejected at once; 0 = none"`
	Delay      sdk.Duration `json:"delay" default:"1s" min:"0s" doc:"how long a failed order waits"`
	Takes      sdk.Duration `json:"takes" default:"0s" min:"0s" doc:"how long the work on one order takes"`
	Journal    string       `json:"journal" doc:"file that gets a JSON line for each attempt: order, attempt, outcome, error"`
}

type order struct {
	ID     string  `json:"id"`
	Amount float64 `json:"amount"`
}

var (
	errDatabase = errors.New("db timeout")
	errCustomer = errors.New("no such customer")
	errCanceled = errors.New("canceled")
)

// chosen picks one id in n, the same ones on every attempt.
func chosen(id string, n, salt uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	return n > 0 && (h.Sum32()^salt)%n == 0
}

// handler is one configured handler of orders.
type handler struct {
	config  Config
	env     sdk.Env
	journal *journal
}

func newOrders(_ context.Context, c Config, env sdk.Env) (*handler, error) {
	h := &handler{config: c, env: env}
	if c.Journal != "" {
		var err error
		if h.journal, err = openJournal(c.Journal); err != nil {
			return nil, sdk.At("/journal", err)
		}
	}
	return h, nil
}

// Handle works on one order. What it does outside, the journal, is done before its verdict: a verdict that is lost on the
// way brings the order once more, never too seldom.
func (h *handler) Handle(ctx context.Context, m *sdk.Message) error {
	var o order
	if err := json.Unmarshal(m.Body(), &o); err != nil {
		return sdk.Reject("bad_json", fmt.Errorf("reading an order: %w", err))
	}
	if err := work(ctx, h.config.Takes.Std()); err != nil {
		return err
	}
	outcome, err := h.judge(o, m.Attempt())
	if err != nil {
		err = fmt.Errorf("order %s: %w", o.ID, err)
	}
	if e := h.journal.write(o.ID, m.Attempt(), outcome, err); e != nil {
		return sdk.WithClass("journal", e)
	}
	switch outcome {
	case handled:
		h.env.Logger.DebugContext(ctx, "order handled", "order", o.ID, "attempt", m.Attempt())
		return nil
	case rejected:
		return sdk.Reject("canceled", err)
	default:
		return sdk.RetryAfter(sdk.WithClass(class(err), err), h.config.Delay.Std())
	}
}

// judge decides what goes wrong.
func (h *handler) judge(o order, attempt int) (outcome, error) {
	switch {
	case chosen(o.ID, h.config.Reject, 1):
		return rejected, errCanceled
	case chosen(o.ID, h.config.FailAlways, 3):
		return failed, errCustomer
	case attempt == 1 && chosen(o.ID, h.config.FailOnce, 2):
		return failed, errDatabase
	}
	return handled, nil
}

// class is the class of a failure that may pass.
func class(err error) string {
	if errors.Is(err, errCustomer) {
		return "no_customer"
	}
	return "transient"
}

// Close ends the journal.
func (h *handler) Close() error { return h.journal.close() }

// work takes its time.
func work(ctx context.Context, takes time.Duration) error {
	if takes <= 0 {
		return nil
	}
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func main() {
	serve.Main(sdk.Info{Name: "orders", Version: "0.1.0"},
		sdk.Component("orders", newOrders).WithSummary("handles sample orders; some fail once, some always, some are rejected"))
}
