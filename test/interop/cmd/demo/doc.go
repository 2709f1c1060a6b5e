// Command demo shows what `make run` shows, on a real RocketMQ in the place of the embedded broker: the same demo
// (internal/demo), the same config, another address. It is what `make run-real` runs.
//
// It starts the RocketMQ itself, in a temporary folder; both end with it.
package main
