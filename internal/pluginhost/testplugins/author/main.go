// Command author is a plugin as an author writes one, for the host's tests against the SDK: bodies say what to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config shows positions in diagnostics.
type Config struct {
	Currency string `json:"currency"`
}

type handler struct{ instance string }

// Handle does what the body says.
func (handler) Handle(ctx context.Context, m *sdk.Message) error {
	switch string(m.Body()) {
	case "exit":
		os.Exit(9)
	case "panic":
		panic("author's panic")
	case "retry":
		return sdk.RetryAfter(errors.New("later"), 3*time.Second)
	case "reject":
		return sdk.Reject("bad_order", errors.New("no such customer"))
	case "emit":
		m.Emit(sdk.Output{Topic: "Invoices", Body: make([]byte, 1<<20)})
	case "wait":
		<-ctx.Done()
		return ctx.Err()
	case "deaf":
		select {} // ignores its context
	}
	return nil
}

// Revoked shows in the log which queues go.
func (handler) Revoked(_ context.Context, queues []sdk.Queue) error {
	fmt.Fprintln(os.Stderr, "revoked", queues)
	return nil
}

// Close shows in the log which instance goes.
func (h handler) Close() error { //nolint:unparam // sdk.Closer has it
	fmt.Fprintln(os.Stderr, "closed", h.instance)
	return nil
}

// build shows in the log which instance comes.
func build(_ context.Context, _ Config, env sdk.Env) (handler, error) {
	fmt.Fprintln(os.Stderr, "built", env.Instance)
	return handler{env.Instance}, nil
}

func main() {
	fmt.Println("a print before the handshake") // the SDK sends it to stderr
	serve.Main(sdk.Info{Name: "author", Version: "1.2.3"}, sdk.Component("main", build))
}
