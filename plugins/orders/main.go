// Command orders is a plugin with a handler of sample orders, as JSON: {"id": "A-1042", "amount": 12.5}. It fails some
// orders on their first attempt and rejects some for good, so that retries and dead letters can be seen.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config says how much goes wrong.
type Config struct {
	FailOnce uint32       `json:"fail_once" default:"50" doc:"one order in so many fails on its first attempt; 0 = none"`
	Reject   uint32       `json:"reject" default:"1000" doc:"one order in so many is of an unknown customer; 0 = none"`
	Delay    sdk.Duration `json:"delay" default:"1s" min:"0s" doc:"how long a failed order waits"`
}

type order struct {
	ID     string  `json:"id"`
	Amount float64 `json:"amount"`
}

var (
	errDatabase = errors.New("db timeout")
	errCustomer = errors.New("no such customer")
)

// chosen picks one id in n, the same ones on every attempt.
func chosen(id string, n, salt uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	return n > 0 && (h.Sum32()^salt)%n == 0
}

func newOrders(_ context.Context, c Config, env sdk.Env) (sdk.Handler, error) {
	return sdk.HandlerFunc(func(ctx context.Context, m *sdk.Message) error {
		var o order
		if err := json.Unmarshal(m.Body(), &o); err != nil {
			return sdk.Reject("bad_json", fmt.Errorf("reading an order: %w", err))
		}
		switch {
		case chosen(o.ID, c.Reject, 1):
			return sdk.Reject("no_customer", fmt.Errorf("order %s: %w", o.ID, errCustomer))
		case m.Attempt() == 1 && chosen(o.ID, c.FailOnce, 2):
			return sdk.RetryAfter(sdk.WithClass("transient", fmt.Errorf("order %s: %w", o.ID, errDatabase)), c.Delay.Std())
		}
		env.Logger.DebugContext(ctx, "order handled", "order", o.ID, "attempt", m.Attempt())
		return nil
	}), nil
}

func main() {
	serve.Main(sdk.Info{Name: "orders", Version: "0.1.0"},
		sdk.Component("orders", newOrders).WithSummary("handles sample orders; some fail once, some are rejected"))
}
