// Command blackhole is a plugin whose handlers acknowledge everything, one message or one batch at a time: what
// benchmarks drain into.
package main

import (
	"context"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// None is the config of components that take none.
type None struct{}

func newBlackhole(context.Context, None, sdk.Env) (sdk.Handler, error) {
	return sdk.HandlerFunc(func(context.Context, *sdk.Message) error { return nil }), nil
}

func newBatchBlackhole(context.Context, None, sdk.Env) (sdk.BatchHandler, error) {
	return sdk.BatchHandlerFunc(func(context.Context, *sdk.Batch) error { return nil }), nil
}

func main() {
	serve.Main(sdk.Info{Name: "blackhole", Version: "0.1.0"},
		sdk.Component("blackhole", newBlackhole).WithSummary("acknowledges every message"),
		sdk.BatchComponent("batch", newBatchBlackhole).WithSummary("acknowledges every batch"))
}
