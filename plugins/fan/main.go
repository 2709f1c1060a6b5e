// Command fan is a plugin whose handler emits a copy of each message to every topic of its config.
package main

import (
	"context"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config lists where copies go.
type Config struct {
	Topics []string     `json:"topics" required:"true" min:"1" doc:"topics that get a copy of each message"`
	Delay  sdk.Duration `json:"delay" doc:"how long the copies are held back; 0 = not at all"`
}

func newFan(_ context.Context, c Config, _ sdk.Env) (sdk.Handler, error) {
	return sdk.HandlerFunc(func(_ context.Context, m *sdk.Message) error {
		for _, topic := range c.Topics {
			m.Emit(sdk.Output{
				Topic: topic, Tag: m.Tag(), Keys: m.Keys(), Body: m.Body(), Delay: c.Delay.Std(),
				Properties: map[string]string{"source_id": m.ID()},
			})
		}
		return nil
	}), nil
}

func main() {
	serve.Main(sdk.Info{Name: "fan", Version: "0.1.0"},
		sdk.Component("fan", newFan).WithSummary("copies each message to other topics"))
}
