// Command odd is a plugin that does what plugins should not: it prints, panics and dies.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

type none struct{}

func init() { fmt.Println("printed while packages are initialized") }

func main() {
	fmt.Println("printed by main")
	serve.Main(sdk.Info{Name: "odd", Version: "0"}, sdk.Component("odd",
		func(context.Context, none, sdk.Env) (sdk.Handler, error) {
			fmt.Println("printed by the constructor")
			return sdk.HandlerFunc(handle), nil
		}))
}

func handle(_ context.Context, m *sdk.Message) error {
	switch m.ID() {
	case "print":
		for range 10_000 { // more than a pipe holds
			_, _ = fmt.Fprintln(os.Stdout, "printed by the handler")
		}
	case "nil":
		var missing *none
		_ = *missing
	case "die":
		os.Exit(7)
	}
	return nil
}
