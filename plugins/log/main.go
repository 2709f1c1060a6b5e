// Command log is a plugin whose handler logs each message: the smallest useful example.
package main

import (
	"context"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config of the log component.
type Config struct {
	Bodies bool `json:"bodies" doc:"log bodies too; they may hold personal data"`
}

func newLog(_ context.Context, c Config, env sdk.Env) (sdk.Handler, error) {
	return sdk.HandlerFunc(func(ctx context.Context, m *sdk.Message) error {
		attrs := []any{"msg_id", m.ID(), "queue", m.Queue().String(), "offset", m.Offset(), "attempt", m.Attempt(), "bytes", len(m.Body())}
		if c.Bodies {
			attrs = append(attrs, "body", string(m.Body()))
		}
		env.Logger.InfoContext(ctx, "message", attrs...)
		return nil
	}), nil
}

func main() {
	serve.Main(sdk.Info{Name: "log", Version: "0.1.0"},
		sdk.Component("log", newLog).WithSummary("logs each message"))
}
