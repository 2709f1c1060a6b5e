// Command nearest is an allocation strategy as a plugin: members read from brokers in their own zone. It is the example
// for authors of strategies.
package main

import (
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

func main() {
	serve.Main(sdk.Info{Name: "nearest", Version: "0.1.0"},
		serve.Strategy("nearest", newNearest).WithSummary("members read from brokers in their own zone"))
}
