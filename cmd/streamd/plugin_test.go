package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// ordersConfig is the config of the test plugin's handlers.
type ordersConfig struct {
	Currency string       `json:"currency"`
	Token    string       `json:"token,omitempty" secret:"true"`
	Slow     sdk.Duration `json:"slow,omitempty"`
	File     string       `json:"file,omitempty"` // gets a line for each message: topic, body
}

// ordersConfigV2 is what its second version wants.
type ordersConfigV2 struct {
	Country string `json:"country" required:"true"`
	File    string `json:"file,omitempty"`
}

type orders struct {
	config ordersConfig
	env    sdk.Env
}

func newOrders(ctx context.Context, c ordersConfig, env sdk.Env) (*orders, error) {
	if c.Token != "" {
		env.Logger.InfoContext(ctx, "logging in", "token", c.Token)
	}
	if c.Currency == "none" {
		return nil, errors.New("the currency none does not exist")
	}
	return &orders{c, env}, nil
}

// Handle does what the body says.
func (o *orders) Handle(ctx context.Context, m *sdk.Message) error {
	body := string(m.Body())
	o.env.Logger.InfoContext(ctx, "got an order", "body", body)
	word, rest, _ := strings.Cut(body, " ")
	switch word {
	case "fail":
		return errors.New("no luck with " + rest)
	case "later":
		return sdk.RetryAfter(errors.New("busy"), 5*time.Second)
	case "reject":
		return sdk.Reject("bad_order", errors.New("not an order: "+rest))
	case "die":
		os.Exit(7)
	case "panic":
		panic("an order\x1b[31m of nothing")
	case "emit":
		m.Emit(sdk.Output{Topic: "Invoices", Body: []byte(rest + " " + o.config.Currency)})
	}
	if d := time.Duration(o.config.Slow); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return o.write(m.Topic() + " " + body + "\n")
}

func (o *orders) write(line string) error {
	if o.config.File == "" {
		return nil
	}
	f, err := os.OpenFile(o.config.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

func servePlugin() {
	if os.Getenv("ORDERS_VERSION") == "2" { // its component has another name, and its config a key more
		serve.Main(sdk.Info{Name: "orders", Version: "2.0.0"},
			sdk.Component("invoice-v2", func(ctx context.Context, c ordersConfigV2, env sdk.Env) (*orders, error) {
				return newOrders(ctx, ordersConfig{Currency: c.Country, File: c.File}, env)
			}))
		return
	}
	serve.Main(sdk.Info{Name: "orders", Version: "1.2.3"},
		sdk.Component("invoice", newOrders).WithSummary("does what the body of an order says"))
}
