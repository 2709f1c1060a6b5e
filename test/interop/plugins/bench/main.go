// Command bench is the plugin that the benchmarks drain into. Its handlers do nothing but what the peers' do: count, or note
// when a message came.
//
//	drain        counts messages; at the first and the last it notes the clock and the CPU time of itself and of its host
//	drain_batch  the same, a batch at a time
//	latency      notes how old each message is: its body starts with the producer's clock
//	deliveries   writes down each delivery at once, so that a kill loses none
package main

import (
	"context"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config says where the notes go and after how many messages they are complete.
type Config struct {
	File    string `json:"file" required:"true" doc:"where the notes go; lines are appended"`
	Count   int    `json:"count" doc:"messages after which the notes are complete"`
	Profile string `json:"profile" doc:"where a CPU profile from the first to the last message goes; empty: none"`
}

func main() {
	serve.Main(sdk.Info{Name: "bench", Version: "1.0.0"},
		sdk.Component("drain", newDrain).WithSummary("counts messages"),
		sdk.BatchComponent("drain_batch", newDrainBatch).WithSummary("counts messages, a batch at a time"),
		sdk.Component("latency", newLatency).WithSummary("notes the age of messages"),
		sdk.Component("deliveries", newDeliveries).WithSummary("writes down deliveries"))
}

func newDrain(_ context.Context, c Config, _ sdk.Env) (sdk.Handler, error) {
	d := &drain{Config: c}
	return sdk.HandlerFunc(func(context.Context, *sdk.Message) error { return d.add(1) }), nil
}

func newDrainBatch(_ context.Context, c Config, _ sdk.Env) (sdk.BatchHandler, error) {
	d := &drain{Config: c}
	return sdk.BatchHandlerFunc(func(_ context.Context, b *sdk.Batch) error { return d.add(b.Len()) }), nil
}
